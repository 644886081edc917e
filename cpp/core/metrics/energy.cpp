#include "metrics/energy.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <system_error>

#include "process/small_file.h"

namespace timetrial {
namespace {

std::string first_line(const std::string& path) {
    const std::string text = read_small_file(path);
    return text.substr(0, text.find('\n'));
}

// The counter itself: what may be refused. An errno, or 0.
int read_counter(const std::string& path, std::uint64_t& value) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno;
    std::array<char, 32> text{};
    const ssize_t got = read(fd, text.data(), text.size() - 1);
    const int error = got < 0 ? errno : 0;
    close(fd);
    if (error != 0) return error;
    char* end = nullptr;
    value = std::strtoull(text.data(), &end, 10);
    return end == text.data() ? ENODATA : 0;
}

}  // namespace

std::vector<EnergyZone> read_energy(const std::string& root) {
    constexpr std::string_view prefix = "intel-rapl:";
    const std::string folder = root + (root.ends_with('/') ? "" : "/") + "sys/class/powercap";
    const std::unique_ptr<DIR, int (*)(DIR*)> zones(opendir(folder.c_str()), closedir);
    if (!zones) throw std::system_error(errno, std::generic_category(), folder);
    std::vector<EnergyZone> found;
    while (const dirent* entry = readdir(zones.get())) {
        const std::string_view zone = entry->d_name;
        if (!zone.starts_with(prefix)) continue;
        const std::string place = folder + "/" + entry->d_name;
        EnergyZone one;
        one.zone = zone;
        one.name = first_line(place + "/name");
        one.range_uj = std::strtoull(first_line(place + "/max_energy_range_uj").c_str(), nullptr, 10);
        one.error = read_counter(place + "/energy_uj", one.energy_uj);
        found.push_back(std::move(one));
    }
    if (found.empty()) throw std::system_error(ENOENT, std::generic_category(), folder);
    std::sort(found.begin(), found.end(),
              [](const EnergyZone& one, const EnergyZone& other) { return one.zone < other.zone; });
    return found;
}

}  // namespace timetrial
