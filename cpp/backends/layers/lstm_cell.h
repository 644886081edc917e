// What an LSTM does with the sums of its gates, for all units of one sample at one step.
#pragma once

#include <algorithm>
#include <cstdint>

#include "layers/curves.h"
#include "layers/lanes.h"

namespace timetrial::layers {

// `units` numbers each; `gates` has four times as many, in the order i, f, g, o.
template <typename T>
struct LstmRow {
    T* __restrict gates;
    const T* __restrict before;  // c behind the step before; null: 0
    T* __restrict cell;          // c behind this one
    T* __restrict curved;        // tanh of it
    int64_t units;
};

// Sums in `gates` become what the gates let through; h goes to `state`.
template <typename T>
inline void lstm_forward(const LstmRow<T>& row, T* __restrict state) {
    using L = Lanes<T>;
    using Register = typename L::Register;
    const int64_t h = row.units;
    struct Step {
        Register i, f, g, o, c, t, h;
    };
    const auto step = [](Register i, Register f, Register g, Register o, Register c) {
        Step s{};
        s.i = Curves<T>::sigmoid(i), s.f = Curves<T>::sigmoid(f);
        s.g = Curves<T>::tanh(g), s.o = Curves<T>::sigmoid(o);
        s.c = s.f * c + s.i * s.g;
        s.t = Curves<T>::tanh(s.c);
        s.h = s.o * s.t;
        return s;
    };
    int64_t u = 0;
    for (; u + L::count <= h; u += L::count) {
        T* const z = row.gates + u;
        const Register before = row.before ? L::load(row.before + u) : Register{};
        const Step s = step(L::load(z), L::load(z + h), L::load(z + 2 * h), L::load(z + 3 * h), before);
        L::store(z, s.i), L::store(z + h, s.f), L::store(z + 2 * h, s.g), L::store(z + 3 * h, s.o);
        L::store(row.cell + u, s.c), L::store(row.curved + u, s.t), L::store(state + u, s.h);
    }
    if (u == h) return;
    const int64_t left = h - u;
    const auto some = [left](const T* from) {
        Register full{};
        for (int64_t j = 0; j < left; ++j) full[j] = from[j];
        return full;
    };
    const auto keep = [left](T* to, Register full) {
        for (int64_t j = 0; j < left; ++j) to[j] = full[j];
    };
    T* const z = row.gates + u;
    const Register before = row.before ? some(row.before + u) : Register{};
    const Step s = step(some(z), some(z + h), some(z + 2 * h), some(z + 3 * h), before);
    keep(z, s.i), keep(z + h, s.f), keep(z + 2 * h, s.g), keep(z + 3 * h, s.o);
    keep(row.cell + u, s.c), keep(row.curved + u, s.t), keep(state + u, s.h);
}

// With the gradients of h and c behind the step: what the gates let through becomes the gradients of their
// sums, and `of_cell` that of c before it.
template <typename T>
inline void lstm_backward(const LstmRow<T>& row, const T* __restrict of_state, T* __restrict of_cell) {
    const int64_t h = row.units;
    T* __restrict zi = row.gates, * __restrict zf = zi + h, * __restrict zg = zf + h, * __restrict zo = zg + h;
    const auto go_back = [&](auto before) {
        for (int64_t u = 0; u < h; ++u) {
            const T i = zi[u], f = zf[u], g = zg[u], o = zo[u], t = row.curved[u];
            const T dh = of_state[u];
            const T dc = of_cell[u] + dh * o * (1 - t * t);
            zi[u] = dc * g * i * (1 - i);
            zf[u] = dc * before(u) * f * (1 - f);
            zg[u] = dc * i * (1 - g * g);
            zo[u] = dh * t * o * (1 - o);
            of_cell[u] = dc * f;
        }
    };
    if (row.before != nullptr) return go_back([c = row.before](int64_t u) { return c[u]; });
    go_back([](int64_t) { return T(0); });
}

}  // namespace timetrial::layers
