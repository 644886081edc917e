// How fast this machine's memory, or a cache of it, can be read and written: measured, like its peak.
#pragma once

#include <cstdint>

namespace timetrial {

struct Bandwidth {
    int threads = 0;
    std::uint64_t bytes = 0;    // of all arrays of all threads
    double bytes_per_s = 0;     // of all threads together, read and written
    bool is_streaming = false;  // whether the stores that pass the caches by were faster
};

// n threads, pinned nowhere, each compute a = b + s c over three f32 arrays of its own, for `seconds` in all;
// the best of several short windows counts. An element counts 12 bytes, 8 read and 4 written: ordinary stores
// read what they overwrite first, so windows with stores that do not take turns with theirs. Arrays of all
// threads together have `bytes`; that says which level of memory answers: more than the last cache holds, and
// it is the memory.
// Throws std::invalid_argument unless threads >= 1, seconds > 0 and there are 4096 bytes for each thread;
// std::bad_alloc where there is no room for the arrays.
Bandwidth measure_bandwidth(int threads, double seconds, std::uint64_t bytes);

}  // namespace timetrial
