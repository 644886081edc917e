#include "process/small_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace timetrial {
namespace {

// Calls again what a signal interrupted.
template <typename Call>
auto uninterrupted(Call call) {
    decltype(call()) answer;
    do answer = call();
    while (answer < 0 && errno == EINTR);
    return answer;
}

}  // namespace

std::string read_small_file(const std::string& path) {
    const int fd = uninterrupted([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC); });
    if (fd < 0) return {};
    std::string text;
    constexpr std::size_t chunk = 4096;
    for (;;) {
        const std::size_t length = text.size();
        text.resize(length + chunk);
        const ssize_t got = uninterrupted([&] { return read(fd, text.data() + length, chunk); });
        text.resize(length + (got > 0 ? static_cast<std::size_t>(got) : 0));
        if (got <= 0) break;
    }
    close(fd);
    return text;
}

}  // namespace timetrial
