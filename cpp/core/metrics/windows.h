// A rate of the machine, by the best of several short windows of all threads at once: everything that
// disturbs one only takes away.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace timetrial {

struct Best {
    std::size_t kernel = 0;  // the one that had it
    double rate = 0;         // of all threads together
};

// What thread `thread`, from 0, does per second with one of the kernels, in a window of about so long.
using Window = std::function<double(std::size_t kernel, std::size_t thread, std::uint64_t window_ns)>;

// n threads, pinned nowhere, run the same window at the same time, each kernel in turn, for `seconds` in all.
// Throws std::invalid_argument unless threads >= 1 and seconds > 0.
Best best_of_windows(int threads, double seconds, std::size_t kernels, const Window& run);

}  // namespace timetrial
