// lstm: c[t] = s(f) c[t-1] + s(i) tanh(g), h[t] = s(o) tanh(c[t]), of sums in the order i, f, g, o.
#pragma once

#include <array>
#include <cstdint>

#include "layers/cell.h"
#include "layers/curves.h"
#include "layers/lanes.h"

namespace timetrial::layers {

// Keeps c and tanh(c).
template <typename T>
struct LstmCell {
    static constexpr int64_t gates = 4, columns = 4, kept = 2;
    static constexpr std::array of_input{Gates{0, 4, 0}};
    static constexpr std::array of_state{Gates{0, 4, 0}};
    static constexpr bool adds_to_state = false, resets = false;

    static void forward(const CellRow<T>& row, T* __restrict state) {
        using Register = typename Lanes<T>::Register;
        const int64_t h = row.units;
        by_registers<T>(h, [&](int64_t u, auto some) {
            T *const z = row.sums + u, *const cell = row.kept + u;
            const Register i = Curves<T>::sigmoid(some.load(z)), f = Curves<T>::sigmoid(some.load(z + h)),
                           g = Curves<T>::tanh(some.load(z + 2 * h)),
                           o = Curves<T>::sigmoid(some.load(z + 3 * h));
            const Register before = row.earlier != nullptr ? some.load(row.earlier + u) : Register{};
            const Register c = f * before + i * g, curved = Curves<T>::tanh(c);
            some.store(z, i), some.store(z + h, f), some.store(z + 2 * h, g), some.store(z + 3 * h, o);
            some.store(cell, c), some.store(cell + h, curved), some.store(state + u, o * curved);
        });
    }

    // `of_cell`: the gradient of c, behind the step and then before it.
    static void backward(const CellRow<T>& row, T* __restrict of_state, T* __restrict of_cell) {
        const int64_t h = row.units;
        T* __restrict zi = row.sums, * __restrict zf = zi + h, * __restrict zg = zf + h, * __restrict zo = zg + h;
        const T* __restrict curved = row.kept + h;
        const auto go_back = [&](auto before) {
            for (int64_t u = 0; u < h; ++u) {
                const T i = zi[u], f = zf[u], g = zg[u], o = zo[u], t = curved[u];
                const T dh = of_state[u];
                const T dc = of_cell[u] + dh * o * (1 - t * t);
                zi[u] = dc * g * i * (1 - i);
                zf[u] = dc * before(u) * f * (1 - f);
                zg[u] = dc * i * (1 - g * g);
                zo[u] = dh * t * o * (1 - o);
                of_cell[u] = dc * f;
            }
        };
        if (row.earlier != nullptr) return go_back([c = row.earlier](int64_t u) { return c[u]; });
        go_back([](int64_t) { return T(0); });
    }
};

}  // namespace timetrial::layers
