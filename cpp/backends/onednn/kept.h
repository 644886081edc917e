// What trials chose, kept on disk for the launches that follow: these use the same kernels and try nothing.
//
//     <folder>/onednn-<hash of the conditions>.choices
//         timetrial onednn choices 1
//         <hash of all that follows>
//         "<conditions>" "<layout>" "<report>" <count>
//         "<operation>" <among> <chosen> "<form>" "<report>"     one for each operation, `count` of them
//
// Who reads it is not the one that wrote it, so nothing of it is believed that does not fit: a file that is
// cut or changed is as if it were not there, and the next one that tries writes it anew.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iomanip>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "layers/trial.h"

namespace timetrial::onednn {

// FNV-1a of 64 bits, in 16 digits. `state` goes on from an earlier part.
inline std::uint64_t hash_of(std::string_view bytes, std::uint64_t state = 0xcbf29ce484222325U) {
    for (const char byte : bytes) state = (state ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
    return state;
}
inline std::string digits_of(std::uint64_t hash) {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
    return digits;
}

// Of one operation: the form that was chosen, and among how many.
struct Choice : layers::TrialResult {
    std::size_t among = 0;
    std::string form;  // its words: a place in a list alone would fit every list
};
using Choices = std::map<std::string, Choice>;  // by operation: "conv1 forward"

// All choices of a network in the layout that was chosen.
struct Kept {
    std::string layout, report;  // the layout, and what its trial found
    Choices choices;
};

class KeptFile {
  public:
    // Without a folder nothing is kept. `conditions`: all that the choices depend on.
    KeptFile(const std::string& folder, std::string conditions)
        : path_(folder.empty() ? "" : folder + "/onednn-" + digits_of(hash_of(conditions)) + ".choices"),
          conditions_(std::move(conditions)) {}

    const std::string& path() const { return path_; }

    // None: nobody has kept any, or what is there is damaged.
    std::optional<Kept> read() {
        if (path_.empty()) return std::nullopt;
        std::ifstream file(path_, std::ios::binary);
        if (!file) return std::nullopt;
        std::ostringstream text;
        text << file.rdbuf();
        std::optional<Kept> kept = parsed(text.str());
        is_unfit_ = !kept;
        return kept;
    }

    // When it was written: "2026-11-30 13:22:05 UTC".
    std::string date() const {
        struct stat found{};
        std::tm parts{};
        char words[32] = "";
        if (stat(path_.c_str(), &found) == 0 && gmtime_r(&found.st_mtime, &parts))
            std::strftime(words, sizeof words, "%F %T UTC", &parts);
        return words;
    }

    // What was read does not fit what is built, although the conditions are the same: it will be replaced.
    void reject() { is_unfit_ = true; }

    // Appears whole or not at all. Where two launches try at once, the first one's stays, so that it is one
    // choice that all others read. Returns why it is not kept; "" if it is.
    std::string write(const Kept& kept) const {
        std::string name = path_ + ".XXXXXX";
        const int descriptor = mkstemp(name.data());
        if (descriptor < 0) return std::strerror(errno);
        const std::string problem = filled(descriptor, text_of(kept));
        const std::string result = problem.empty() ? placed(name) : problem;
        unlink(name.c_str());
        return result;
    }

  private:
    static constexpr std::string_view first_line = "timetrial onednn choices 1\n";

    std::string text_of(const Kept& kept) const {
        std::ostringstream body;
        body << std::quoted(conditions_) << ' ' << std::quoted(kept.layout) << ' ' << std::quoted(kept.report)
             << ' ' << kept.choices.size() << '\n';
        for (const auto& [operation, choice] : kept.choices)
            body << std::quoted(operation) << ' ' << choice.among << ' ' << choice.chosen << ' '
                 << std::quoted(choice.form) << ' ' << std::quoted(choice.report) << '\n';
        return std::string(first_line) + digits_of(hash_of(body.str())) + '\n' + body.str();
    }

    std::optional<Kept> parsed(const std::string& text) const {
        const std::size_t begin = first_line.size() + 17;
        if (!text.starts_with(first_line) || text.size() < begin) return std::nullopt;
        const std::string hash = digits_of(hash_of(std::string_view(text).substr(begin))) + '\n';
        if (text.compare(first_line.size(), hash.size(), hash) != 0) return std::nullopt;
        std::istringstream body(text.substr(begin));
        std::string conditions;
        Kept kept;
        std::size_t count = 0;
        body >> std::quoted(conditions) >> std::quoted(kept.layout) >> std::quoted(kept.report) >> count;
        if (!body || conditions != conditions_) return std::nullopt;
        for (; count > 0; --count) {
            std::string operation;
            Choice choice;
            body >> std::quoted(operation) >> choice.among >> choice.chosen >> std::quoted(choice.form) >>
                std::quoted(choice.report);
            if (!body || choice.chosen >= choice.among) return std::nullopt;
            kept.choices.emplace(std::move(operation), std::move(choice));
        }
        return kept;
    }

    static std::string filled(int descriptor, const std::string& text) {
        std::FILE* const file = fdopen(descriptor, "wb");
        if (!file) {
            const std::string problem = std::strerror(errno);
            close(descriptor);
            return problem;
        }
        const bool is_written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
        const std::string problem = is_written ? "" : std::strerror(errno);
        const bool is_closed = std::fclose(file) == 0;
        return is_written && !is_closed ? std::strerror(errno) : problem;
    }

    // link() fails where somebody else's is there, which rename() would write over. Some file systems have no
    // links: there the last one's stays.
    std::string placed(const std::string& name) const {
        if (!is_unfit_) {
            if (link(name.c_str(), path_.c_str()) == 0) return "";
            if (errno == EEXIST) return "another launch kept its own meanwhile";
        }
        return std::rename(name.c_str(), path_.c_str()) == 0 ? "" : std::strerror(errno);
    }

    std::string path_, conditions_;
    bool is_unfit_ = false;
};

}  // namespace timetrial::onednn
