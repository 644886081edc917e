// How evenly the caches and the memory of this machine answer: a neighbor who uses what is shared shows here,
// and nowhere in a loop over registers.
#pragma once

#include <cstdint>
#include <vector>

namespace timetrial {

// One array, read line by line in one of two ways, window after window.
struct Reads {
    std::uint64_t bytes = 0;
    bool is_chase = false;            // each line says where the next one is; otherwise one behind the other
    std::vector<double> ns_per_line;  // of each window, in CPU time: waits for a CPU do not count
};

// Reads arrays of these sizes in turn, in both ways, for about `seconds` in all, by the calling thread:
// windows of a few milliseconds, so that each way sees the machine all the time. Throws std::invalid_argument
// without sizes, for one below 4096 bytes, or unless 0 < seconds <= 60; std::bad_alloc where there is no
// room.
std::vector<Reads> read_evenly(const std::vector<std::uint64_t>& sizes, double seconds);

}  // namespace timetrial
