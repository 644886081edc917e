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
#include <optional>
#include <string_view>
#include <system_error>

#include "clock/clock.h"
#include "libraries/known.h"
#include "process/cpu_list.h"
#include "process/descendants.h"
#include "process/proc_text.h"
#include "process/small_file.h"

namespace timetrial {
namespace {

[[noreturn]] void refuse(int error, pid_t pid, const std::string& what) {
    throw std::system_error(error, std::generic_category(), what + " process " + std::to_string(pid));
}

void add_threads(pid_t pid, std::vector<ThreadObservation>& threads) {
    const std::string folder = proc_folder(pid) + "/task";
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
        thread.name = proc_field(status, "Name:");
        const std::string_view cpus = proc_field(status, "Cpus_allowed_list:");
        if (!cpus.empty()) thread.allowed_cpus = format_cpu_list(parse_cpu_list(cpus));
        thread.nice = getpriority(PRIO_PROCESS, static_cast<id_t>(thread.tid));
        thread.policy = std::max(0, sched_getscheduler(thread.tid)) & ~SCHED_RESET_ON_FORK;
        thread.voluntary_switches = proc_number(status, "voluntary_ctxt_switches:");
        thread.involuntary_switches = proc_number(status, "nonvoluntary_ctxt_switches:");
        threads.push_back(std::move(thread));
    }
}

// Resident pages of one process, by what is behind them.
struct Pages {
    std::uint64_t all = 0;
    std::uint64_t anonymous = 0;
    std::uint64_t file = 0;
    std::uint64_t shared = 0;
};

// As every process that maps them has them.
Pages pages_of(std::string_view status) {
    return {proc_bytes(status, "VmRSS:"), proc_bytes(status, "RssAnon:") + proc_bytes(status, "VmSwap:"),
            proc_bytes(status, "RssFile:"), proc_bytes(status, "RssShmem:")};
}

// Each page by its share; nothing where the kernel does not tell (before 5.4, or by permission).
std::optional<Pages> shares_of(pid_t pid) {
    const std::string rollup = read_small_file(proc_folder(pid) + "/smaps_rollup");
    if (proc_field(rollup, "Pss_Anon:").empty()) return std::nullopt;
    return Pages{proc_bytes(rollup, "Pss:"), proc_bytes(rollup, "Pss_Anon:") + proc_bytes(rollup, "SwapPss:"),
                 proc_bytes(rollup, "Pss_File:"), proc_bytes(rollup, "Pss_Shmem:")};
}

}  // namespace

std::vector<pid_t> Observer::tree() const {
    std::vector<pid_t> pids = {root_};
    for (const pid_t pid : descendants(reaper_ > 0 ? reaper_ : root_)) {
        if (pid != root_) pids.push_back(pid);
    }
    return pids;
}

Observation Observer::read(Counting counting) const {
    Observation seen;
    seen.time_ns = now_ns();
    if (reaper_ > 0) seen.cpu_ns = ended_children_ns(ProcStat::read(reaper_));
    const std::vector<pid_t> pids = tree();
    for (const pid_t pid : pids) {
        const ProcStat stat = ProcStat::read(pid);
        if (stat.has_ended()) {
            if (pid == root_) refuse(ESRCH, pid, "cannot observe");
            seen.cpu_ns += used_cpu_ns(pid, stat);
            continue;
        }
        const std::string status = read_small_file(proc_folder(pid) + "/status");
        if (pid == root_) seen.stopped = stat.state == 'T' || stat.state == 't';
        seen.cpu_ns += used_cpu_ns(pid, stat);
        const Pages summed = pages_of(status);
        Pages counted = summed;
        if (counting == Counting::kOnce && pids.size() > 1) counted = shares_of(pid).value_or(summed);
        seen.rss_bytes += counted.all;
        seen.peak_rss_bytes += std::max(proc_bytes(status, "VmHWM:") + counted.all, summed.all) - summed.all;
        seen.anonymous_bytes += counted.anonymous;
        seen.file_rss_bytes += counted.file;
        seen.shared_rss_bytes += counted.shared;
        seen.minor_faults += stat.minor_faults;
        seen.major_faults += stat.major_faults;
        ++seen.processes;
        add_threads(pid, seen.threads);
    }
    return seen;
}

std::optional<std::uint64_t> Observer::migrations() const {
    std::optional<std::uint64_t> sum;
    for (const pid_t pid : tree()) {
        const std::string folder = proc_folder(pid) + "/task";
        const std::unique_ptr<DIR, int (*)(DIR*)> tasks(opendir(folder.c_str()), closedir);
        while (const dirent* entry = tasks ? readdir(tasks.get()) : nullptr) {
            if (entry->d_name[0] == '.') continue;
            const std::string sched = read_small_file(folder + "/" + entry->d_name + "/sched");
            const std::string_view line = proc_field(sched, "se.nr_migrations");
            const std::size_t digit = line.find_first_of("0123456789");
            if (digit == std::string_view::npos) continue;
            sum = sum.value_or(0) + std::strtoull(std::string(line.substr(digit)).c_str(), nullptr, 10);
        }
    }
    return sum;
}

void Observer::reset_peak() const {
    for (const pid_t pid : tree()) {
        const int fd = open((proc_folder(pid) + "/clear_refs").c_str(), O_WRONLY | O_CLOEXEC);
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
        const std::string maps = read_small_file(proc_folder(pid) + "/maps");
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
    std::uint64_t total_ns = used_cpu_ns(root, ProcStat::read(root));
    for (const pid_t pid : descendants(root)) total_ns += used_cpu_ns(pid, ProcStat::read(pid));
    return total_ns;
}

}  // namespace timetrial
