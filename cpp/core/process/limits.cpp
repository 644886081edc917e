#include "process/limits.h"

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>

#include "process/cpu_list.h"
#include "process/small_file.h"

namespace timetrial {
namespace {

void set_limit(decltype(RLIMIT_DATA) resource, std::uint64_t value, const std::string& what) {
    const rlimit limit{value, value};
    if (setrlimit(resource, &limit) != 0) {
        throw std::system_error(errno, std::generic_category(),
                                "cannot set " + what + " to " + std::to_string(value));
    }
}

std::uint64_t count_threads_of_user(uid_t user) {
    std::uint64_t threads = 0;
    const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), closedir);
    while (const dirent* entry = proc ? readdir(proc.get()) : nullptr) {
        if (std::strtol(entry->d_name, nullptr, 10) <= 0) continue;
        const std::string folder = std::string("/proc/") + entry->d_name;
        struct stat owner{};
        if (stat(folder.c_str(), &owner) != 0 || owner.st_uid != user) continue;
        const std::string status = read_small_file(folder + "/status");
        const std::size_t line = status.find("\nThreads:");
        if (line != std::string::npos) threads += std::strtoull(status.c_str() + line + 9, nullptr, 10);
    }
    return threads;
}

}  // namespace

void Limits::apply() const {
    if (cpus) set_affinity(*cpus);
    if (nice && setpriority(PRIO_PROCESS, 0, *nice) != 0) {
        throw std::system_error(
            errno, std::generic_category(),
            "cannot set nice to " + std::to_string(*nice) + " (below 0 needs CAP_SYS_NICE)");
    }
    if (no_huge_pages && prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) {
        throw std::system_error(errno, std::generic_category(), "cannot refuse huge pages");
    }
    if (memory_bytes) set_limit(RLIMIT_DATA, *memory_bytes, "the memory limit");
    if (processes) {
        if (getuid() == 0) {
            throw std::invalid_argument(
                "a limit on processes has no effect for root: run as another user, or leave it out");
        }
        set_limit(RLIMIT_NPROC, count_threads_of_user(getuid()) + *processes, "the process limit");
    }
}

}  // namespace timetrial
