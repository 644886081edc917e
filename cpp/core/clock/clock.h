// The clock of every measurement: CLOCK_MONOTONIC, read through the vDSO.
#pragma once

#include <time.h>

#include <cstdint>

namespace timetrial {

// Nanoseconds since an arbitrary start that is the same for every process of this machine.
inline std::uint64_t now_ns() noexcept {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

// CPU time of this process, all threads together, in nanoseconds.
inline std::uint64_t process_cpu_ns() noexcept {
    timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(used.tv_nsec);
}

// What one read costs, in nanoseconds: the smallest mean of several short bursts, because everything
// that disturbs a burst only adds. Above 200 ns the kernel has no fast clock (its clocksource is not tsc).
double clock_cost_ns() noexcept;

}  // namespace timetrial
