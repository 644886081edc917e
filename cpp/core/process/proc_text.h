// What files of /proc say: lines of /proc/PID/status and its like, and /proc/PID/stat.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace timetrial {

std::string proc_folder(pid_t pid);

/// The rest of the line that begins with `name`, without the blanks before it; "" if there is none.
std::string_view proc_field(std::string_view text, std::string_view name);

/// The number that such a line begins with; 0 if there is none.
std::uint64_t proc_number(std::string_view text, std::string_view name);

/// The same of a line in kB, in bytes.
std::uint64_t proc_bytes(std::string_view text, std::string_view name);

/// The fields of /proc/PID/stat that follow the name, which may hold blanks and parentheses.
struct ProcStat {
    char state = 0;  // 0: there is no such process
    std::uint64_t minor_faults = 0;
    std::uint64_t major_faults = 0;
    std::uint64_t ended_children_ticks = 0;  // CPU time of children that ended and were waited for

    static ProcStat parse(const std::string& text);
    static ProcStat read(pid_t pid);
    bool has_ended() const { return state == 0 || state == 'Z' || state == 'X'; }
};

/// CPU time of a process, to the nanosecond, and of its children that ended and were waited for, to the tick.
/// A zombie has used its time as well, until its parent asks for it and has it among its ended children.
std::uint64_t used_cpu_ns(pid_t pid, const ProcStat& stat);
/// The latter alone.
std::uint64_t ended_children_ns(const ProcStat& stat);

}  // namespace timetrial
