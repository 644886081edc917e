// What a process tree holds that is backed by no file.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace timetrial {

/// Private memory (RssAnon and VmSwap) of everything below `reaper`, in bytes. Nothing: there is no process
/// of which the kernel tells it.
std::optional<std::uint64_t> held_memory(pid_t reaper);

}  // namespace timetrial
