// Losses: one number from the prediction x (N x C) and the labels. Backpropagation starts here.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "layer.h"

namespace timetrial::reference {

class Loss {
  public:
    virtual ~Loss() = default;
    virtual double forward(const Tensor& x, const int64_t* labels) = 0;
    // Adds to x.gradient.
    virtual void backward(Tensor& x, const int64_t* labels) = 0;
};

// p = softmax(x[n]), p[c] = exp(x[n][c]) / sum over d of exp(x[n][d]);  loss = mean over n of -log p[label].
// Its gradient is (p - onehot(label)) / N. The maximum is subtracted before exp(), which changes nothing in p
// and keeps exp() in range.
class SoftmaxCrossEntropy final : public Loss {
  public:
    double forward(const Tensor& x, const int64_t* labels) override {
        const std::size_t batch = x.extent(0), classes = x.extent(1);
        double total = 0;
        for (std::size_t n = 0; n < batch; ++n) {
            const double* logits = x.value.data() + n * classes;
            total += log_sum_exp(logits, classes) - logits[labels[n]];
        }
        return total / static_cast<double>(batch);
    }

    void backward(Tensor& x, const int64_t* labels) override {
        const std::size_t batch = x.extent(0), classes = x.extent(1);
        for (std::size_t n = 0; n < batch; ++n) {
            const double* logits = x.value.data() + n * classes;
            const double log_sum = log_sum_exp(logits, classes);
            for (std::size_t c = 0; c < classes; ++c) {
                const double p = std::exp(logits[c] - log_sum);
                const double onehot = static_cast<int64_t>(c) == labels[n] ? 1.0 : 0.0;
                x.gradient[n * classes + c] += (p - onehot) / static_cast<double>(batch);
            }
        }
    }

  private:
    static double log_sum_exp(const double* logits, std::size_t classes) {
        const double largest = *std::max_element(logits, logits + classes);
        double sum = 0;
        for (std::size_t c = 0; c < classes; ++c) sum += std::exp(logits[c] - largest);
        return largest + std::log(sum);
    }
};

// loss = mean over n and c of (x[n][c] - onehot(label)[c])^2
class SquaredError final : public Loss {
  public:
    double forward(const Tensor& x, const int64_t* labels) override {
        double total = 0;
        for (std::size_t i = 0; i < x.size(); ++i)
            total += difference(x, labels, i) * difference(x, labels, i);
        return total / static_cast<double>(x.size());
    }

    void backward(Tensor& x, const int64_t* labels) override {
        for (std::size_t i = 0; i < x.size(); ++i)
            x.gradient[i] += 2 * difference(x, labels, i) / static_cast<double>(x.size());
    }

  private:
    static double difference(const Tensor& x, const int64_t* labels, std::size_t i) {
        const std::size_t classes = x.extent(1);
        return x.value[i] - (static_cast<int64_t>(i % classes) == labels[i / classes] ? 1.0 : 0.0);
    }
};

}  // namespace timetrial::reference
