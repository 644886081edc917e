// Losses: the mean over the batch, and its gradient with respect to the prediction (N x classes).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>

#include "layers/layer.h"
#include "timetrial/backend.hpp"
#include "timetrial/kinds.hpp"

namespace timetrial::layers {

template <typename T>
class Loss {
  public:
    virtual ~Loss() = default;
    // The images' part of the loss (a sum that adds up to the mean over all shares), and the gradient; both
    // times the weight.
    virtual double evaluate(const Edge<T>& prediction, const Target& target, Share images, T weight) = 0;
};

// -log softmax(x)[label], mean over N; gradient (softmax(x) - onehot) / N. The maximum is subtracted first.
template <typename T>
class SoftmaxCrossEntropy final : public Loss<T> {
  public:
    double evaluate(const Edge<T>& prediction, const Target& target, Share images, T weight) override {
        const int64_t* labels = target.labels;
        const int64_t classes = prediction.shape.channels;
        const T share = weight / static_cast<T>(prediction.shape.batch);
        double total = 0;
        for (int64_t n = images.begin; n < images.end; ++n) {
            const T* x = prediction.value + n * classes;
            T* dx = prediction.gradient + n * classes;
            const T largest = *std::max_element(x, x + classes);
            T sum = 0;
            for (int64_t c = 0; c < classes; ++c) sum += dx[c] = std::exp(x[c] - largest);
            for (int64_t c = 0; c < classes; ++c) dx[c] *= share / sum;
            dx[labels[n]] -= share;
            total += static_cast<double>(largest - x[labels[n]]) + std::log(static_cast<double>(sum));
        }
        return weight * total / static_cast<double>(prediction.shape.batch);
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
    Kind<MakeLoss<T>>{"squared_error", make_loss<T, SquaredError<T, OneHot>>},
    Kind<MakeLoss<T>>{"mean_squared_error", make_loss<T, SquaredError<T, Numbers>>},
};

// A sum of losses is no function: read_losses() says what it adds.
inline constexpr std::array loss_sums = {Kind<std::nullptr_t>{"loss_sum", nullptr}};

}  // namespace timetrial::layers
