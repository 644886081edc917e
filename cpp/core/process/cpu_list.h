// Sets of CPUs in words: "0", "0-1", "0+2", "0,2", "0-3+8".
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace timetrial {

/// Ascending and without repetition. '+' and ',' both join. Throws std::invalid_argument, saying what
/// was wrong and what is expected.
std::vector<int> parse_cpu_list(std::string_view text);

/// The one form we print: ranges joined by '+', because a comma separates values on our command line.
/// format_cpu_list(parse_cpu_list("1,0")) is "0-1".
std::string format_cpu_list(const std::vector<int>& cpus);

/// The CPUs that a thread may run on (0: the calling one). Throws std::system_error.
std::vector<int> allowed_cpus(pid_t thread = 0);

/// Binds the calling thread. The kernel drops CPUs outside the cpuset in silence, so this one checks
/// first: a CPU that is not among allowed_cpus() is std::invalid_argument, naming both.
void set_affinity(const std::vector<int>& cpus);

}  // namespace timetrial
