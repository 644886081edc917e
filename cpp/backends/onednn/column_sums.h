// The gradient of a bias: for each channel, the sum over all samples and pixels.
#pragma once

#include <algorithm>
#include <cstdint>

namespace timetrial::onednn {

// sums[columns] of values[rows][columns]: in double precision, since there are as many terms as pixels in a
// batch. A thread adds a cache line of neighbors side by side.
inline void sum_columns(const float* values, std::int64_t rows, std::int64_t columns, float* sums) {
    constexpr std::int64_t block = 16;
#pragma omp parallel for schedule(static)
    for (std::int64_t first = 0; first < columns; first += block) {
        const std::int64_t count = std::min(block, columns - first);
        double added[block] = {};
        for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t c = 0; c < count; ++c) added[c] += values[i * columns + first + c];
        for (std::int64_t c = 0; c < count; ++c) sums[first + c] = static_cast<float>(added[c]);
    }
}

}  // namespace timetrial::onednn
