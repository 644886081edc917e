#include "process/limits.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

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

// "0" is whoever writes it.
void enter_group(const std::string& folder) {
    const int fd = open((folder + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC);
    const bool has_entered = fd >= 0 && write(fd, "0", 1) == 1;
    const int error = errno;
    if (fd >= 0) close(fd);
    if (!has_entered) {
        throw std::system_error(error, std::generic_category(), "cannot enter the control group " + folder);
    }
}

}  // namespace

void Limits::apply() const {
    for (const std::string& group : groups) enter_group(group);
    if (cpus) set_affinity(*cpus);
    if (nice && setpriority(PRIO_PROCESS, 0, *nice) != 0) {
        throw std::system_error(
            errno, std::generic_category(),
            "cannot set nice to " + std::to_string(*nice) + " (below 0 needs CAP_SYS_NICE)");
    }
    if (no_huge_pages && prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) {
        throw std::system_error(errno, std::generic_category(), "cannot refuse huge pages");
    }
    if (processes) {
        if (getuid() == 0) {
            throw std::invalid_argument(
                "a limit on processes has no effect for root: run as another user, or leave it out");
        }
        set_limit(RLIMIT_NPROC, count_threads_of_user(getuid()) + *processes, "the process limit");
    }
    if (open_files) set_limit(RLIMIT_NOFILE, *open_files, "the limit on open files");
    // The last ones: what is left to do allocates nothing.
    if (address_bytes) set_limit(RLIMIT_AS, *address_bytes, "the limit on address space");
    if (memory_bytes) set_limit(RLIMIT_DATA, *memory_bytes, "the memory limit");
}

std::array<char, 160> limits_in_force() {
    using Row = std::pair<decltype(RLIMIT_DATA), const char*>;
    std::array<char, 160> text{};
    std::size_t length = 0;
    for (const auto& [resource, name] : {Row{RLIMIT_DATA, "data"}, Row{RLIMIT_AS, "address_space"},
                                         Row{RLIMIT_NPROC, "processes"}, Row{RLIMIT_NOFILE, "open_files"}}) {
        rlimit limit{};
        getrlimit(resource, &limit);
        std::array<char, 24> value{"-"};
        if (limit.rlim_cur != RLIM_INFINITY) {
            std::snprintf(value.data(), value.size(), "%llu",
                          static_cast<unsigned long long>(limit.rlim_cur));
        }
        const int added = std::snprintf(text.data() + length, text.size() - length, "%s%s %s",
                                        length > 0 ? " " : "", name, value.data());
        length += static_cast<std::size_t>(added > 0 ? added : 0);
    }
    return text;
}

}  // namespace timetrial
