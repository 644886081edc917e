// The processes below a process.
#pragma once

#include <sys/types.h>

#include <vector>

namespace timetrial {

/// Children, their children and so on, parents first; `root` is not among them, zombies are. Follows
/// parentage, so a new session or process group hides nothing. A process that forks meanwhile may be
/// missed: who needs all of them asks again until nothing new turns up.
std::vector<pid_t> descendants(pid_t root);

}  // namespace timetrial
