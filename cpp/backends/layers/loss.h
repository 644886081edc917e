// Losses: the mean over the batch, and its gradient with respect to the prediction (N x classes), of which a
// sequence has a row for each step.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>

#include "layers/curves.h"
#include "layers/lanes.h"
#include "layers/layer.h"
#include "timetrial/backend.hpp"
#include "timetrial/kinds.hpp"

namespace timetrial::layers {

template <typename T>
class Loss {
  public:
    virtual ~Loss() = default;
    // The images' part of the loss (a sum that adds up to the mean over what counts in the batch), and the
    // gradient; both times the weight.
    virtual double evaluate(const Edge<T>& prediction, const Target& target, Share images, T weight) = 0;
};

// A NaN may be passed over: its exponential is NaN again.
template <typename T>
T largest_of(const T* x, int64_t count) {
    T largest = x[0];
    int64_t i = 0;
    if (count >= Lanes<T>::count) {
        typename Lanes<T>::Register each = Lanes<T>::load(x);
        for (i = Lanes<T>::count; i + Lanes<T>::count <= count; i += Lanes<T>::count) {
            const typename Lanes<T>::Register next = Lanes<T>::load(x + i);
            each = next > each ? next : each;
        }
        for (int64_t lane = 0; lane < Lanes<T>::count; ++lane) largest = std::max(largest, T(each[lane]));
    }
    for (; i < count; ++i) largest = std::max(largest, x[i]);
    return largest;
}

// y <- e^(x - largest), 0 where that is next to nothing (a share of it would be subnormal, and slow); their
// sum
template <typename T>
T exponentials(const T* x, int64_t count, T largest, T* y) {
    typename Lanes<T>::Register sums{};
    int64_t i = 0;
    for (; i + Lanes<T>::count <= count; i += Lanes<T>::count) {
        const typename Lanes<T>::Register below = Lanes<T>::load(x + i) - largest;
        const typename Lanes<T>::Register some = Curves<T>::exp(below);
        const typename Lanes<T>::Register kept = below < T(-80) ? typename Lanes<T>::Register{} : some;
        Lanes<T>::store(y + i, kept);
        sums += kept;
    }
    T sum = 0;
    for (int64_t lane = 0; lane < Lanes<T>::count; ++lane) sum += sums[lane];
    for (; i < count; ++i) sum += y[i] = x[i] - largest < T(-80) ? T(0) : std::exp(x[i] - largest);
    return sum;
}

// -log softmax(x)[label], mean over the rows that count; gradient (softmax(x) - onehot) over their number.
// The maximum is subtracted first.
template <typename T>
class SoftmaxCrossEntropy final : public Loss<T> {
  public:
    double evaluate(const Edge<T>& prediction, const Target& target, Share images, T weight) override {
        const int64_t classes = prediction.shape.step_features(), steps = prediction.shape.steps;
        const T share = weight / static_cast<T>(target.counted);
        double total = 0;
        for (int64_t row = images.begin * steps; row < images.end * steps; ++row) {
            const int64_t label = target.labels[row];
            const T* x = prediction.value + row * classes;
            T* dx = prediction.gradient + row * classes;
            if (label < 0) {
                std::fill_n(dx, classes, T(0));
                continue;
            }
            const T largest = largest_of(x, classes);
            const T sum = exponentials(x, classes, largest, dx);
            for (int64_t c = 0; c < classes; ++c) dx[c] *= share / sum;
            dx[label] -= share;
            total += static_cast<double>(largest - x[label]) + std::log(static_cast<double>(sum));
        }
        return weight * total / static_cast<double>(target.counted);
    }
};

// (x - t)^2, mean over N and F. What t is: At::of(target, n, c, F).
template <typename T, typename At>
class SquaredError final : public Loss<T> {
  public:
    double evaluate(const Edge<T>& prediction, const Target& target, Share images, T weight) override {
        const int64_t classes = prediction.shape.channels;
        const auto count = static_cast<T>(prediction.shape.size());
        double total = 0;
        for (int64_t n = images.begin; n < images.end; ++n) {
            for (int64_t c = 0; c < classes; ++c) {
                const T difference =
                    prediction.value[n * classes + c] - static_cast<T>(At::of(target, n, c, classes));
                prediction.gradient[n * classes + c] = 2 * weight * difference / count;
                total += static_cast<double>(difference) * static_cast<double>(difference);
            }
        }
        return weight * total / static_cast<double>(count);
    }
};

struct OneHot {
    static float of(const Target& target, int64_t n, int64_t c, int64_t) {
        return target.labels[n] == c ? 1.0F : 0.0F;
    }
};

struct Numbers {
    static float of(const Target& target, int64_t n, int64_t c, int64_t width) {
        return target.values[n * width + c];
    }
};

template <typename T>
using MakeLoss = std::unique_ptr<Loss<T>> (*)(const Attributes&);

template <typename T, typename Made>
std::unique_ptr<Loss<T>> make_loss(const Attributes&) {
    return std::make_unique<Made>();
}

template <typename T>
inline constexpr std::array loss_kinds = {
    Kind<MakeLoss<T>>{"softmax_cross_entropy", make_loss<T, SoftmaxCrossEntropy<T>>},
    Kind<MakeLoss<T>>{"sequence_cross_entropy", make_loss<T, SoftmaxCrossEntropy<T>>},
    Kind<MakeLoss<T>>{"squared_error", make_loss<T, SquaredError<T, OneHot>>},
    Kind<MakeLoss<T>>{"mean_squared_error", make_loss<T, SquaredError<T, Numbers>>},
};

// A sum of losses is no function: read_losses() says what it adds.
inline constexpr std::array loss_sums = {Kind<std::nullptr_t>{"loss_sum", nullptr}};

}  // namespace timetrial::layers
