// rnn: h[t] = tanh(w x[t] + u h[t-1] + b).
#pragma once

#include <array>
#include <cstdint>

#include "layers/cell.h"
#include "layers/curves.h"
#include "layers/lanes.h"

namespace timetrial::layers {

template <typename T>
struct RnnCell {
    static constexpr int64_t gates = 1, columns = 1, kept = 0;
    static constexpr std::array of_input{Gates{0, 1, 0}};
    static constexpr std::array of_state{Gates{0, 1, 0}};
    static constexpr bool adds_to_state = false, resets = false;

    static void forward(const CellRow<T>& row, T* __restrict state) {
        by_registers<T>(row.units, [&](int64_t u, auto some) {
            const auto h = Curves<T>::tanh(some.load(row.sums + u));
            some.store(row.sums + u, h), some.store(state + u, h);
        });
    }

    static void backward(const CellRow<T>& row, T* __restrict of_state, T*) {
        for (int64_t u = 0; u < row.units; ++u) row.sums[u] = of_state[u] * (1 - row.sums[u] * row.sums[u]);
    }
};

}  // namespace timetrial::layers
