// timetrial/float_mode.h for this thread, and for those of other processes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace timetrial {

// Bits of timetrial/float_mode.h, of the calling thread.
std::uint32_t float_mode() noexcept;
void set_float_mode(std::uint32_t mode) noexcept;

// "on" (both bits), "off", "results" or "operands" (one of them): what the setting flush_to_zero is read as.
std::string float_mode_word(std::uint32_t mode);

// Of a thread of another process, by ptrace: it is stopped for some microseconds, so nothing may be timed.
// Throws std::system_error: ESRCH for a thread that is gone, EPERM where the kernel does not let us.
std::uint32_t float_mode_of(pid_t tid);

}  // namespace timetrial
