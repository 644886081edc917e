// Milliseconds that the gates of an LSTM take in one training step, forward and backward, without any
// product: gate_cost UNITS STEPS BATCH. The smallest of several passes counts, because what disturbs only
// adds.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <vector>

#include "layers/lstm_cell.h"

namespace {

using Cell = timetrial::layers::LstmCell<float>;
using timetrial::layers::CellRow;

constexpr int passes = 15;

}  // namespace

int main(int count, char** words) {
    if (count != 4) return 2;
    const std::int64_t units = std::atoll(words[1]), steps = std::atoll(words[2]),
                       batch = std::atoll(words[3]);
    const auto size = [&](std::int64_t columns) { return static_cast<std::size_t>(columns * units); };
    std::vector<float> sums(size(steps * batch * Cell::columns)), kept(size(steps * batch * Cell::kept));
    std::vector<float> states(size(steps * batch)), of_states(size(batch)), of_cells(size(batch));
    const auto row = [&](std::int64_t t, std::int64_t n) {
        const std::int64_t place = t * batch + n;
        const float* earlier = t > 0 ? &kept[size((place - batch) * Cell::kept)] : nullptr;
        return CellRow<float>{&sums[size(place * Cell::columns)], &states[size(place)], earlier,
                              &kept[size(place * Cell::kept)], units};
    };
    double best = std::numeric_limits<double>::infinity();
    for (int pass = 0; pass < passes; ++pass) {
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<float>(i % 4001) / 1000.0F - 2.0F;
        std::fill(of_states.begin(), of_states.end(), 0.01F);
        std::fill(of_cells.begin(), of_cells.end(), 0.01F);
        const auto start = std::chrono::steady_clock::now();
        for (std::int64_t t = 0; t < steps; ++t)
            for (std::int64_t n = 0; n < batch; ++n) Cell::forward(row(t, n), &states[size(t * batch + n)]);
        for (std::int64_t t = steps; t-- > 0;)
            for (std::int64_t n = 0; n < batch; ++n)
                Cell::backward(row(t, n), &of_states[size(n)], &of_cells[size(n)]);
        const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
        best = std::min(best, took.count());
    }
    std::printf("%.6f\n", best);
    return 0;
}
