// The formulas of recurrent layers, of one unit at one step (recurrent.h). s: the sigmoid; h, c: the states
// before; what is added up is in the comments. A gate's products of the input go to the sum of its own
// number, those of the state to `of_state`.
#pragma once

#include <array>
#include <cstddef>

#include "activations.h"

namespace timetrial::reference {

// z = w x + u h + b:  h' = tanh(z)
struct RnnCell {
    static constexpr std::size_t gates = 1, sums = 1, states = 1;
    static constexpr bool resets = false;
    static constexpr std::size_t of_state(std::size_t gate) { return gate; }

    template <class Real>
    static std::array<Real, 1> next(const std::array<Real, 1>& z, const std::array<Real, 1>&) {
        return {Tanh::of(z[0])};
    }
};

// z = w x + u h + b, in the order of the gates i, f, g, o:  c' = s(f) c + s(i) tanh(g),  h' = s(o) tanh(c')
struct LstmCell {
    static constexpr std::size_t gates = 4, sums = 4, states = 2;
    static constexpr bool resets = false;
    static constexpr std::size_t of_state(std::size_t gate) { return gate; }

    template <class Real>
    static std::array<Real, 2> next(const std::array<Real, 4>& z, const std::array<Real, 2>& before) {
        const Real c = Sigmoid::of(z[1]) * before[1] + Sigmoid::of(z[0]) * Tanh::of(z[2]);
        return {Sigmoid::of(z[3]) * Tanh::of(c), c};
    }
};

// r, z = w x + b + u h + c;  n = w x + b;  q = u h + c, with the rows of n:
//   h' = (1 - s(z)) tanh(n + s(r) q) + s(z) h
struct GruCell {
    static constexpr std::size_t gates = 3, sums = 4, states = 1;
    static constexpr bool resets = false;
    static constexpr std::size_t of_state(std::size_t gate) { return gate == 2 ? 3 : gate; }

    template <class Real>
    static std::array<Real, 1> next(const std::array<Real, 4>& sums, const std::array<Real, 1>& before) {
        const Real z = Sigmoid::of(sums[1]), n = Tanh::of(sums[2] + Sigmoid::of(sums[0]) * sums[3]);
        return {(Real(1.0) - z) * n + z * before[0]};
    }
};

// r, z = w x + u h + b;  n = w x + u (s(r) h) + b:  h' = (1 - s(z)) tanh(n) + s(z) h
struct GruCellResetBefore {
    static constexpr std::size_t gates = 3, sums = 3, states = 1;
    static constexpr bool resets = true;
    static constexpr std::size_t of_state(std::size_t gate) { return gate; }

    template <class Real>
    static std::array<Real, 1> next(const std::array<Real, 3>& sums, const std::array<Real, 1>& before) {
        const Real z = Sigmoid::of(sums[1]);
        return {(Real(1.0) - z) * Tanh::of(sums[2]) + z * before[0]};
    }
};

}  // namespace timetrial::reference
