// Losses: one number from the prediction x (N x C, or N x T x C) and the target, the mean over the samples or
// over those of their steps that count. Backpropagation starts here.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "tape.h"
#include "tensor.h"

namespace timetrial::reference {

// -log p[label] with p = softmax(x), p[c] = exp(x[c]) / sum over d of exp(x[d]).
struct SoftmaxCrossEntropy {
    template <class Real>
    static Real of(std::span<const Real> x, const Target& target, std::size_t n) {
        using std::exp, std::log;
        const auto label = static_cast<std::size_t>(target.labels[n]);
        // Subtracted before exp(): that changes nothing in p and keeps exp() in range.
        double largest = value_of(x[0]);
        for (const Real& logit : x) largest = std::max(largest, value_of(logit));
        Real sum = 0.0;
        for (const Real& logit : x) sum = sum + exp(logit - Real(largest));
        return log(sum) + Real(largest) - x[label];
    }
};

// Mean over c of (x[c] - onehot(label)[c])^2.
struct SquaredError {
    template <class Real>
    static Real of(std::span<const Real> x, const Target& target, std::size_t n) {
        Real sum = 0.0;
        for (std::size_t c = 0; c < x.size(); ++c) {
            const Real difference = x[c] - Real(static_cast<int64_t>(c) == target.labels[n] ? 1.0 : 0.0);
            sum = sum + difference * difference;
        }
        return sum / Real(static_cast<double>(x.size()));
    }
};

// Mean over c of (x[c] - t[c])^2, t the numbers that the target has for the sample.
struct MeanSquaredError {
    template <class Real>
    static Real of(std::span<const Real> x, const Target& target, std::size_t n) {
        Real sum = 0.0;
        for (std::size_t c = 0; c < x.size(); ++c) {
            const Real difference = x[c] - Real(static_cast<double>(target.values[n * x.size() + c]));
            sum = sum + difference * difference;
        }
        return sum / Real(static_cast<double>(x.size()));
    }
};

class Loss {
  public:
    virtual ~Loss() = default;
    virtual double forward(const Tensor& x, const Target& target) = 0;
    // Adds to x.gradient; `weight`: of this loss in what is minimized.
    virtual void backward(Tensor& x, const Target& target, double weight) = 0;
};

// From the formula of one sample, or one step.
template <class Formula>
class MeanLoss final : public Loss {
  public:
    double forward(const Tensor& x, const Target& target) override {
        const std::size_t classes = x.shape.back();
        double total = 0;
        for (std::size_t n = 0; n < x.size() / classes; ++n)
            if (counts(target, n))
                total += Formula::of(std::span(x.value).subspan(n * classes, classes), target, n);
        return total / static_cast<double>(target.counted);
    }

    void backward(Tensor& x, const Target& target, double weight) override {
        const std::size_t classes = x.shape.back();
        for (std::size_t n = 0; n < x.size() / classes; ++n) {
            if (!counts(target, n)) continue;
            tape_.clear();
            image_.clear();
            for (std::size_t c = 0; c < classes; ++c)
                image_.push_back(tape_.variable(x.value[n * classes + c]));
            const Number loss = Formula::of(std::span<const Number>(image_), target, n);
            const std::vector<double>& derivatives = tape_.derivatives(loss);
            for (std::size_t c = 0; c < classes; ++c)
                x.gradient[n * classes + c] += weight * derivatives[c] / static_cast<double>(target.counted);
        }
    }

  private:
    static bool counts(const Target& target, std::size_t n) {
        return target.labels == nullptr || target.labels[n] >= 0;
    }

    Tape tape_;
    std::vector<Number> image_;
};

}  // namespace timetrial::reference
