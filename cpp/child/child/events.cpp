#include "events.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "process/small_file.h"

namespace timetrial {

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

std::uint64_t resident_bytes() {
    const std::string statm = read_small_file("/proc/self/statm");  // pages: total, resident, ...
    const std::size_t second = statm.find(' ');
    if (second == std::string::npos) return 0;
    return std::strtoull(statm.c_str() + second, nullptr, 10) *
           static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace timetrial
