// The update rules, element by element, for a backend that keeps weights, gradient and states in arrays of
// one order. One pass over all of them; loops without branches on the data, so that the compiler vectorizes
// them.
#pragma once

#include <cmath>
#include <cstdint>

#include "timetrial/optimizer.hpp"

namespace timetrial::layers {

// A piece of one parameter. States that the rule does not have are NULL.
template <typename T>
struct Piece {
    T* __restrict weights;
    const T* __restrict gradient;
    T* __restrict first;
    T* __restrict second;
    int64_t count;
};

// The numbers of one update, in the type of the arithmetic.
template <typename T>
struct UpdateNumbers {
    T rate, scale, keep, decay, momentum, gain, step;
    T beta1, rest1, beta2, rest2, epsilon;
    RuleKind kind;
    bool plain, nesterov;

    UpdateNumbers() = default;
    UpdateNumbers(const Optimizer& is, const UpdateStep& now)
        : rate(static_cast<T>(now.rate)),
          scale(static_cast<T>(now.scale)),
          keep(static_cast<T>(now.keep)),
          decay(is.decoupled ? T{0} : static_cast<T>(is.weight_decay)),
          momentum(static_cast<T>(is.momentum)),
          gain(is.rate_inside ? rate : T{1}),
          step(is.rate_inside ? T{1} : rate),
          beta1(static_cast<T>(is.beta1)),
          rest1(static_cast<T>(1 - is.beta1)),
          beta2(static_cast<T>(has_rho(is) ? is.rho : is.beta2)),
          rest2(static_cast<T>(1 - (has_rho(is) ? is.rho : is.beta2))),
          epsilon(static_cast<T>(is.epsilon)),
          kind(is.rule.kind),
          plain(is.is_plain_sgd()),
          nesterov(is.nesterov) {}

    static bool has_rho(const Optimizer& is) {
        return is.rule.kind == RuleKind::kRmsprop || is.rule.kind == RuleKind::kAdadelta;
    }
};

#define TIMETRIAL_INLINE __attribute__((always_inline)) inline

template <typename T>
TIMETRIAL_INLINE void plain_sgd(const Piece<T>& p, const UpdateNumbers<T>& n) {
    const T rate = n.rate, momentum = n.momentum, decay = n.decay;
    T* __restrict w = p.weights;
    T* __restrict v = p.first;
    const T* __restrict g = p.gradient;
    for (int64_t i = 0; i < p.count; ++i) {
        v[i] = momentum * v[i] + (g[i] + decay * w[i]);
        w[i] -= rate * v[i];
    }
}

template <typename T>
TIMETRIAL_INLINE void sgd(const Piece<T>& p, const UpdateNumbers<T>& n) {
    const T look = n.nesterov ? n.momentum : T{1}, fresh = n.nesterov ? T{1} : T{0};
    T* __restrict w = p.weights;
    T* __restrict v = p.first;
    const T* __restrict g = p.gradient;
    for (int64_t i = 0; i < p.count; ++i) {
        const T gradient = n.gain * (n.scale * g[i] + n.decay * w[i]);
        v[i] = n.momentum * v[i] + gradient;
        w[i] = n.keep * w[i] - n.step * (fresh * gradient + look * v[i]);
    }
}

template <typename T>
TIMETRIAL_INLINE void adam(const Piece<T>& p, const UpdateNumbers<T>& n) {
    T* __restrict w = p.weights;
    T* __restrict m = p.first;
    T* __restrict v = p.second;
    const T* __restrict g = p.gradient;
    for (int64_t i = 0; i < p.count; ++i) {
        const T gradient = n.scale * g[i] + n.decay * w[i];
        m[i] = n.beta1 * m[i] + n.rest1 * gradient;
        v[i] = n.beta2 * v[i] + n.rest2 * gradient * gradient;
        w[i] = n.keep * w[i] - n.rate * m[i] / (std::sqrt(v[i]) + n.epsilon);
    }
}

// Adagrad is RMSprop that forgets nothing.
template <typename T>
TIMETRIAL_INLINE void divided(const Piece<T>& p, const UpdateNumbers<T>& n, T forget, T rest) {
    T* __restrict w = p.weights;
    T* __restrict s = p.first;
    const T* __restrict g = p.gradient;
    for (int64_t i = 0; i < p.count; ++i) {
        const T gradient = n.scale * g[i] + n.decay * w[i];
        s[i] = forget * s[i] + rest * gradient * gradient;
        w[i] = n.keep * w[i] - n.rate * gradient / (std::sqrt(s[i]) + n.epsilon);
    }
}

template <typename T>
TIMETRIAL_INLINE void adadelta(const Piece<T>& p, const UpdateNumbers<T>& n) {
    T* __restrict w = p.weights;
    T* __restrict s = p.first;
    T* __restrict u = p.second;
    const T* __restrict g = p.gradient;
    for (int64_t i = 0; i < p.count; ++i) {
        const T gradient = n.scale * g[i] + n.decay * w[i];
        s[i] = n.beta2 * s[i] + n.rest2 * gradient * gradient;
        const T move = std::sqrt((u[i] + n.epsilon) / (s[i] + n.epsilon)) * gradient;
        u[i] = n.beta2 * u[i] + n.rest2 * move * move;
        w[i] = n.keep * w[i] - n.rate * move;
    }
}

template <typename T>
TIMETRIAL_INLINE void update(const Piece<T>& p, const UpdateNumbers<T>& n) {
    if (n.plain) return plain_sgd(p, n);
    switch (n.kind) {
        case RuleKind::kSgd:
            return sgd(p, n);
        case RuleKind::kAdam:
        case RuleKind::kAdamW:
            return adam(p, n);
        case RuleKind::kRmsprop:
            return divided(p, n, n.beta2, n.rest2);
        case RuleKind::kAdagrad:
            return divided(p, n, T{1}, T{1});
        case RuleKind::kAdadelta:
            return adadelta(p, n);
    }
}

// In double: the squares of a small gradient are below the smallest f32.
template <typename T>
double square_sum(const T* values, int64_t count) {
    double sum[8] = {};  // apart, so that the additions need not wait for each other
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        for (int64_t j = 0; j < 8; ++j) sum[j] += static_cast<double>(values[i + j]) * values[i + j];
    for (; i < count; ++i) sum[0] += static_cast<double>(values[i]) * values[i];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

#undef TIMETRIAL_INLINE

}  // namespace timetrial::layers
