#include "loader/plugin.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

namespace timetrial {
namespace {

// What ABI 1 began with. A newer table of the same ABI is longer, never shorter.
constexpr std::uint32_t smallest_table = offsetof(tt_backend, close) + sizeof(tt_backend::close);
constexpr std::uint32_t smallest_description =
    offsetof(tt_description, settings) + sizeof(tt_description::settings);
constexpr std::uint32_t newest_abi_to_ask_for = 16;

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
    throw PluginError("plug-in '" + path + "' " + why);
}

// dlerror() names the file that it could not open first: the plug-in itself or a library that it needs.
[[noreturn]] void refuse_dlopen(const std::string& path, std::string_view words) {
    constexpr std::string_view not_found = ": cannot open shared object file";
    const std::size_t end = words.find(not_found);
    if (end != std::string_view::npos && words.substr(0, end) != path) {
        refuse(path, "needs the library '" + std::string(words.substr(0, end)) +
                         "', which is not found on this machine. Install it, or build the plug-in anew.");
    }
    constexpr std::string_view undefined = "undefined symbol: ";
    if (const std::size_t symbol = words.find(undefined); symbol != std::string_view::npos) {
        refuse(path, "needs the symbol '" + std::string(words.substr(symbol + undefined.size())) +
                         "', which none of its libraries has: it was built against another version of them.");
    }
    refuse(path, "cannot be loaded: " + std::string(words));
}

// A plug-in that cannot serve us returns NULL; asking as another host tells its version. The first two
// fields of the table are the same in every ABI.
std::string abi_of(tt_backend_table_function table_function) {
    for (std::uint32_t abi = 0; abi <= newest_abi_to_ask_for; ++abi) {
        if (const tt_backend* table = table_function(abi)) return std::to_string(table->abi_version);
    }
    return "unknown";
}

void check_functions(const std::string& path, const tt_backend& table) {
    const std::pair<const char*, bool> required[] = {
        {"open", table.open != nullptr},
        {"last_error", table.last_error != nullptr},
        {"configure", table.configure != nullptr},
        {"read_setting", table.read_setting != nullptr},
        {"build", table.build != nullptr},
        {"step", table.step != nullptr},
        {"part", table.part != nullptr || table.description->parts == 0},
        {"evaluate", table.evaluate != nullptr || (table.description->flags & TT_UNPROVABLE) != 0},
        {"wait", table.wait != nullptr},
        {"reset", table.reset != nullptr},
        {"tensor_count", table.tensor_count != nullptr},
        {"tensor_info", table.tensor_info != nullptr},
        {"read_tensor", table.read_tensor != nullptr},
        {"write_tensor", table.write_tensor != nullptr},
        {"close", table.close != nullptr},
    };
    for (const auto& [name, there] : required) {
        if (!there) refuse(path, "has no function '" + std::string(name) + "' in its table");
    }
}

void check_table(const std::string& path, const tt_backend& table) {
    if (table.size < smallest_table) {
        refuse(path, "has a table of " + std::to_string(table.size) + " bytes; ABI version " +
                         std::to_string(TT_BACKEND_ABI) + " has at least " + std::to_string(smallest_table));
    }
    const tt_description* description = table.description;
    if (description == nullptr) refuse(path, "has no description");
    if (description->size < smallest_description) {
        refuse(path, "has a description of " + std::to_string(description->size) + " bytes; ABI version " +
                         std::to_string(TT_BACKEND_ABI) + " has at least " +
                         std::to_string(smallest_description));
    }
    for (const char* text :
         {description->name, description->version, description->library, description->isa}) {
        if (text == nullptr)
            refuse(path, "has a description without name, version, library or isa (\"\" is allowed)");
    }
    check_functions(path, table);
}

}  // namespace

Plugin::Plugin(const std::string& path) : path_(path) {
    struct stat file{};
    if (stat(path.c_str(), &file) != 0)
        refuse(path, std::string("cannot be opened: ") + std::strerror(errno));
    if (!S_ISREG(file.st_mode)) refuse(path, "is not a file");
    if (access(path.c_str(), R_OK) != 0) refuse(path, std::string("cannot be read: ") + std::strerror(errno));
    // A path without '/' would be looked up in the library folders.
    const std::string place = path.find('/') == std::string::npos ? "./" + path : path;
    void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) refuse_dlopen(path, dlerror());
    const auto table_function =
        reinterpret_cast<tt_backend_table_function>(dlsym(library, TT_BACKEND_TABLE_SYMBOL));
    if (table_function == nullptr) {
        refuse(path, "is a library but no plug-in: it exports no " TT_BACKEND_TABLE_SYMBOL "()");
    }
    table_ = table_function(TT_BACKEND_ABI);
    if (table_ == nullptr || table_->abi_version != TT_BACKEND_ABI) {
        const std::string theirs =
            table_ == nullptr ? abi_of(table_function) : std::to_string(table_->abi_version);
        refuse(path, "has ABI version " + theirs + ", this timetrial has " + std::to_string(TT_BACKEND_ABI) +
                         ". Build it against this timetrial's backend.h.");
    }
    check_table(path, *table_);
}

void preload_library(const std::string& path) {
    if (dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr)
        throw PluginError("the library '" + path + "' cannot be loaded: " + dlerror());
}

std::vector<std::string> word_list(const char* const* words) {
    std::vector<std::string> list;
    for (; words != nullptr && *words != nullptr; ++words) list.emplace_back(*words);
    return list;
}

}  // namespace timetrial
