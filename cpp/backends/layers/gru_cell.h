// gru: h[t] = (1 - z) n + z h[t-1], of the gates r, z, n, in both of its forms.
#pragma once

#include <array>
#include <cstdint>

#include "layers/cell.h"
#include "layers/curves.h"
#include "layers/lanes.h"

namespace timetrial::layers {

// The reset behind the product: n = tanh(a + r q), a of the input and q of the state. Sums in the order n, r,
// z, q, so that those of the state, r, z, q, are one product.
template <typename T>
struct GruCell {
    static constexpr int64_t gates = 3, columns = 4, kept = 0;
    static constexpr std::array of_input{Gates{0, 2, 1}, Gates{2, 1, 0}};
    static constexpr std::array of_state{Gates{0, 3, 1}};
    static constexpr bool adds_to_state = true, resets = false;

    static void forward(const CellRow<T>& row, T* __restrict state) {
        using Register = typename Lanes<T>::Register;
        const int64_t h = row.units;
        by_registers<T>(h, [&](int64_t u, auto some) {
            T* const at = row.sums + u;
            const Register r = Curves<T>::sigmoid(some.load(at + h)),
                           z = Curves<T>::sigmoid(some.load(at + 2 * h)), q = some.load(at + 3 * h);
            const Register n = Curves<T>::tanh(some.load(at) + r * q);
            some.store(at, n), some.store(at + h, r), some.store(at + 2 * h, z);
            some.store(state + u, n + z * (some.load(row.state + u) - n));
        });
    }

    static void backward(const CellRow<T>& row, T* __restrict of_state, T*) {
        const int64_t h = row.units;
        T* __restrict an = row.sums, * __restrict ar = an + h, * __restrict az = ar + h, * __restrict aq = az + h;
        for (int64_t u = 0; u < h; ++u) {
            const T n = an[u], r = ar[u], z = az[u], dh = of_state[u];
            const T dn = dh * (1 - z) * (1 - n * n);
            an[u] = dn;
            ar[u] = dn * aq[u] * r * (1 - r);
            az[u] = dh * (row.state[u] - n) * z * (1 - z);
            aq[u] = dn * r;
            of_state[u] = dh * z;
        }
    }
};

// The reset in front of the product, which is with r h; that is kept. Sums in the order r, z, n.
template <typename T>
struct GruCellResetBefore {
    static constexpr int64_t gates = 3, columns = 3, kept = 1;
    static constexpr std::array of_input{Gates{0, 3, 0}};
    static constexpr std::array of_state{Gates{0, 2, 0}, Gates{2, 1, 2, true}};
    static constexpr bool adds_to_state = true, resets = true;

    static void reset(const CellRow<T>& row) {
        using Register = typename Lanes<T>::Register;
        const int64_t h = row.units;
        by_registers<T>(h, [&](int64_t u, auto some) {
            T* const at = row.sums + u;
            const Register r = Curves<T>::sigmoid(some.load(at));
            some.store(at, r), some.store(at + h, Curves<T>::sigmoid(some.load(at + h)));
            some.store(row.kept + u, r * some.load(row.state + u));
        });
    }

    static void forward(const CellRow<T>& row, T* __restrict state) {
        using Register = typename Lanes<T>::Register;
        const int64_t h = row.units;
        by_registers<T>(h, [&](int64_t u, auto some) {
            T* const at = row.sums + u;
            const Register z = some.load(at + h), n = Curves<T>::tanh(some.load(at + 2 * h));
            some.store(at + 2 * h, n);
            some.store(state + u, n + z * (some.load(row.state + u) - n));
        });
    }

    static void backward(const CellRow<T>& row, T* __restrict of_state, T*) {
        const int64_t h = row.units;
        T* __restrict az = row.sums + h, * __restrict an = az + h;
        for (int64_t u = 0; u < h; ++u) {
            const T z = az[u], n = an[u], dh = of_state[u];
            az[u] = dh * (row.state[u] - n) * z * (1 - z);
            an[u] = dh * (1 - z) * (1 - n * n);
            of_state[u] = dh * z;
        }
    }

    static void reset_back(const CellRow<T>& row, T* __restrict of_state, const T* __restrict of_reset) {
        T* __restrict ar = row.sums;
        for (int64_t u = 0; u < row.units; ++u) {
            const T r = ar[u];
            ar[u] = of_reset[u] * row.state[u] * r * (1 - r);
            of_state[u] += of_reset[u] * r;
        }
    }
};

}  // namespace timetrial::layers
