#include "process/held_memory.h"

#include <string>

#include "process/descendants.h"
#include "process/proc_text.h"
#include "process/small_file.h"

namespace timetrial {

std::optional<std::uint64_t> held_memory(pid_t reaper) {
    std::optional<std::uint64_t> held;
    for (const pid_t pid : descendants(reaper)) {
        const std::string status = read_small_file(proc_folder(pid) + "/status");
        if (proc_field(status, "RssAnon:").empty()) continue;  // ended, or not ours to see
        held = held.value_or(0) + proc_bytes(status, "RssAnon:") + proc_bytes(status, "VmSwap:");
    }
    return held;
}

}  // namespace timetrial
