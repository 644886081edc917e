#include "events.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "process/small_file.h"

namespace timetrial {
namespace {

// /proc/self/statm counts pages: of address space, resident, of them mapped, ...
std::uint64_t statm_bytes(int place) {
    const std::string statm = read_small_file("/proc/self/statm");
    const char* next = statm.c_str();
    std::uint64_t pages = 0;
    for (int i = 0; i <= place; ++i) {
        char* end = nullptr;
        pages = std::strtoull(next, &end, 10);
        next = end;
    }
    return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

void Events::send(const nlohmann::ordered_json& event) const {
    const std::string line =
        event.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    for (std::size_t sent = 0; sent < line.size();) {
        const ssize_t written = write(fd_, line.data() + sent, line.size() - sent);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) _exit(1);
        sent += static_cast<std::size_t>(written);
    }
}

std::uint64_t resident_bytes() { return statm_bytes(1); }

std::uint64_t mapped_bytes() { return statm_bytes(2); }

}  // namespace timetrial
