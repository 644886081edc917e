#include "metrics/observer.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <string_view>
#include <system_error>

#include "clock/clock.h"
#include "libraries/known.h"
#include "process/cpu_list.h"
#include "process/descendants.h"
#include "process/small_file.h"

namespace timetrial {
namespace {

[[noreturn]] void refuse(int error, pid_t pid, const std::string& what) {
    throw std::system_error(error, std::generic_category(), what + " process " + std::to_string(pid));
}

std::string folder_of(pid_t pid) { return "/proc/" + std::to_string(pid); }

// The rest of the line that begins with `name`, without the blanks before it; "" if there is none.
std::string_view field(std::string_view status, std::string_view name) {
    for (std::size_t from = 0; from < status.size();) {
        const std::size_t end = std::min(status.find('\n', from), status.size());
        const std::string_view line = status.substr(from, end - from);
        if (line.substr(0, name.size()) == name) {
            const std::size_t value = line.find_first_not_of(" \t", name.size());
            return value == std::string_view::npos ? std::string_view() : line.substr(value);
        }
        from = end + 1;
    }
    return {};
}

std::uint64_t number(std::string_view text) { return std::strtoull(std::string(text).c_str(), nullptr, 10); }

std::uint64_t kilobytes(std::string_view status, std::string_view name) {
    return 1024 * number(field(status, name));
}

// The fields of /proc/PID/stat that follow the name, which may hold blanks and parentheses.
struct Stat {
    char state = 0;
    std::uint64_t minor_faults = 0;
    std::uint64_t major_faults = 0;
    std::uint64_t ended_children_ticks = 0;  // CPU time of children that ended and were waited for
};

Stat read_stat(pid_t pid) {
    const std::string text = read_small_file(folder_of(pid) + "/stat");
    const std::size_t name_end = text.rfind(')');
    Stat stat;
    if (name_end == std::string::npos) return stat;
    unsigned long long minor = 0;
    unsigned long long major = 0;
    long long user = 0;
    long long system = 0;
    // man 5 proc: state ppid pgrp session tty tpgid flags minflt cminflt majflt cmajflt utime stime cutime
    // cstime
    const int got = std::sscanf(text.c_str() + name_end + 1,
                                " %c %*d %*d %*d %*d %*d %*u %llu %*u %llu %*u %*u %*u %lld %lld",
                                &stat.state, &minor, &major, &user, &system);
    if (got != 5) return {};
    stat.minor_faults = minor;
    stat.major_faults = major;
    stat.ended_children_ticks = static_cast<std::uint64_t>(user + system);
    return stat;
}

std::uint64_t process_cpu_time_ns(pid_t pid) {
    clockid_t clock{};
    timespec used{};
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
    return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(used.tv_nsec);
}

void add_threads(pid_t pid, std::vector<ThreadObservation>& threads) {
    const std::string folder = folder_of(pid) + "/task";
    const std::unique_ptr<DIR, int (*)(DIR*)> tasks(opendir(folder.c_str()), closedir);
    while (const dirent* entry = tasks ? readdir(tasks.get()) : nullptr) {
        ThreadObservation thread;
        thread.pid = pid;
        thread.tid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
        if (thread.tid <= 0) continue;
        const std::string task = folder + "/" + entry->d_name;
        const std::string status = read_small_file(task + "/status");
        if (status.empty()) continue;  // ended meanwhile
        const std::string schedstat = read_small_file(task + "/schedstat");
        char* rest = nullptr;
        thread.cpu_ns = std::strtoull(schedstat.c_str(), &rest, 10);
        thread.wait_ns = std::strtoull(rest, nullptr, 10);
        thread.name = field(status, "Name:");
        const std::string_view cpus = field(status, "Cpus_allowed_list:");
        if (!cpus.empty()) thread.allowed_cpus = format_cpu_list(parse_cpu_list(cpus));
        thread.nice = getpriority(PRIO_PROCESS, static_cast<id_t>(thread.tid));
        thread.policy = std::max(0, sched_getscheduler(thread.tid)) & ~SCHED_RESET_ON_FORK;
        thread.voluntary_switches = number(field(status, "voluntary_ctxt_switches:"));
        thread.involuntary_switches = number(field(status, "nonvoluntary_ctxt_switches:"));
        threads.push_back(std::move(thread));
    }
}

bool has_ended(const Stat& stat) { return stat.state == 0 || stat.state == 'Z' || stat.state == 'X'; }

std::uint64_t ended_children_ns(const Stat& stat) {
    static const auto tick_ns = 1'000'000'000u / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
    return stat.ended_children_ticks * tick_ns;
}

// A zombie has used its time as well, until its parent asks for it and has it among its ended children.
std::uint64_t used_ns(pid_t pid, const Stat& stat) {
    return process_cpu_time_ns(pid) + ended_children_ns(stat);
}

}  // namespace

std::vector<pid_t> Observer::tree() const {
    std::vector<pid_t> pids = {root_};
    for (const pid_t pid : descendants(reaper_ > 0 ? reaper_ : root_)) {
        if (pid != root_) pids.push_back(pid);
    }
    return pids;
}

Observation Observer::read() const {
    Observation seen;
    seen.time_ns = now_ns();
    if (reaper_ > 0) seen.cpu_ns = ended_children_ns(read_stat(reaper_));
    for (const pid_t pid : tree()) {
        const Stat stat = read_stat(pid);
        if (has_ended(stat)) {
            if (pid == root_) refuse(ESRCH, pid, "cannot observe");
            seen.cpu_ns += used_ns(pid, stat);
            continue;
        }
        const std::string status = read_small_file(folder_of(pid) + "/status");
        if (pid == root_) seen.stopped = stat.state == 'T' || stat.state == 't';
        seen.cpu_ns += used_ns(pid, stat);
        seen.rss_bytes += kilobytes(status, "VmRSS:");
        seen.peak_rss_bytes += kilobytes(status, "VmHWM:");
        seen.file_rss_bytes += kilobytes(status, "RssFile:");
        seen.shared_rss_bytes += kilobytes(status, "RssShmem:");
        seen.minor_faults += stat.minor_faults;
        seen.major_faults += stat.major_faults;
        ++seen.processes;
        add_threads(pid, seen.threads);
    }
    return seen;
}

void Observer::reset_peak() const {
    for (const pid_t pid : tree()) {
        const int fd = open((folder_of(pid) + "/clear_refs").c_str(), O_WRONLY | O_CLOEXEC);
        const bool written = fd >= 0 && write(fd, "5", 1) == 1;  // man 5 proc: resets the peak resident set
        const int error = errno;
        if (fd >= 0) close(fd);
        if (written) continue;
        if (pid == root_) refuse(error == ENOENT ? ESRCH : error, pid, "cannot reset the peak memory of");
    }
}

std::vector<MappedLibrary> Observer::libraries() const {
    std::map<std::string, std::string> kinds;
    for (const pid_t pid : tree()) {
        const std::string maps = read_small_file(folder_of(pid) + "/maps");
        if (maps.empty() && pid == root_) refuse(ESRCH, pid, "cannot read the mapped files of");
        for (std::size_t from = 0; from < maps.size();) {
            const std::size_t end = std::min(maps.find('\n', from), maps.size());
            // address permissions offset device inode path
            const std::string_view line(maps.data() + from, end - from);
            from = end + 1;
            const std::size_t slash = line.find('/');
            if (slash == std::string_view::npos) continue;
            std::string_view path = line.substr(slash);
            constexpr std::string_view deleted = " (deleted)";
            if (path.size() > deleted.size() && path.substr(path.size() - deleted.size()) == deleted) {
                path.remove_suffix(deleted.size());
            }
            if (const std::string_view kind = library_kind(path); !kind.empty())
                kinds[std::string(path)] = kind;
        }
    }
    std::vector<MappedLibrary> found;
    for (const auto& [path, kind] : kinds) found.push_back({path, kind});
    return found;
}

std::uint64_t tree_cpu_ns(pid_t root) {
    std::uint64_t total_ns = used_ns(root, read_stat(root));
    for (const pid_t pid : descendants(root)) total_ns += used_ns(pid, read_stat(pid));
    return total_ns;
}

}  // namespace timetrial
