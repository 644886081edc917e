#include "process/proc_text.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "process/small_file.h"

namespace timetrial {
namespace {

std::uint64_t process_cpu_time_ns(pid_t pid) {
    clockid_t clock{};
    timespec used{};
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
    return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(used.tv_nsec);
}

}  // namespace

std::string proc_folder(pid_t pid) { return "/proc/" + std::to_string(pid); }

std::string_view proc_field(std::string_view text, std::string_view name) {
    for (std::size_t from = 0; from < text.size();) {
        const std::size_t end = std::min(text.find('\n', from), text.size());
        const std::string_view line = text.substr(from, end - from);
        if (line.substr(0, name.size()) == name) {
            const std::size_t value = line.find_first_not_of(" \t", name.size());
            return value == std::string_view::npos ? std::string_view() : line.substr(value);
        }
        from = end + 1;
    }
    return {};
}

std::uint64_t proc_number(std::string_view text, std::string_view name) {
    return std::strtoull(std::string(proc_field(text, name)).c_str(), nullptr, 10);
}

std::uint64_t proc_bytes(std::string_view text, std::string_view name) {
    return 1024 * proc_number(text, name);
}

ProcStat ProcStat::parse(const std::string& text) {
    const std::size_t name_end = text.rfind(')');
    ProcStat stat;
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

ProcStat ProcStat::read(pid_t pid) { return parse(read_small_file(proc_folder(pid) + "/stat")); }

std::uint64_t ended_children_ns(const ProcStat& stat) {
    static const auto tick_ns = 1'000'000'000u / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
    return stat.ended_children_ticks * tick_ns;
}

std::uint64_t used_cpu_ns(pid_t pid, const ProcStat& stat) {
    return process_cpu_time_ns(pid) + ended_children_ns(stat);
}

}  // namespace timetrial
