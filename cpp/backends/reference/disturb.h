// What rounding in the backward pass can do: every gradient that goes from one layer to the next, and the
// sums of terms.h and batch_norm.h while they grow, are off by a random part of themselves, as large as what
// sums of some hundred terms are off by in f32. The gradients of the parameters then move as far as a
// backward pass in f32 throws them (Parker, Monte Carlo arithmetic: exploiting randomness in floating-point
// arithmetic, UCLA CSD-970002, 1997; here of whole layers). The inside of recurrent layers and of kinds of
// one's own is left alone.
#pragma once

#include <cstdint>

#include "tensor.h"

namespace timetrial::reference {

inline constexpr double kDisturbance = 0x1p-20;  // of a value, at most: 16 units in the last place

// `draw`: which random parts; they go on from call to call.
class Disturbance {
  public:
    explicit Disturbance(uint64_t draw) : state_(draw << 40U) {}  // far from where others are

    void of(Values& values) {
        for (double& one : values) one *= 1 + next();
    }

    // From -kDisturbance to kDisturbance: splitmix64 (Steele, Lea, Flood, Fast splittable pseudorandom number
    // generators, 2014).
    double next() {
        uint64_t z = state_ += 0x9e3779b97f4a7c15U;
        z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
        return static_cast<double>((z ^ (z >> 31U)) >> 11U) * 0x1p-52 * kDisturbance - kDisturbance;
    }

  private:
    uint64_t state_;
};

}  // namespace timetrial::reference
