// max_pool2d and avg_pool2d: each channel of each image by itself.
#pragma once

#include <cstdint>
#include <vector>

#include "layer.h"
#include "window.h"

namespace timetrial::reference {

// Calls row(x, y, count) for every row of every plane that a tap of the window reaches, taps in row-major
// order.
template <class Row>
void for_each_pooled_row(const Window& window, const Tensor& x, const Tensor& y, Row&& row) {
    const int64_t in_h = x.shape[2], in_w = x.shape[3], out_h = y.shape[2], out_w = y.shape[3];
    for (int64_t plane = 0; plane < x.shape[0] * x.shape[1]; ++plane) {
        slide(window, in_h, in_w, out_h, out_w, [&](int64_t, int64_t in, int64_t out, int64_t count) {
            row(static_cast<std::size_t>(plane * in_h * in_w + in),
                static_cast<std::size_t>(plane * out_h * out_w + out), static_cast<std::size_t>(count));
        });
    }
}

// y = the largest value in the window; padding never wins. The maximum passes its value on, so all of the
// gradient goes back to it, and to no other. Of equal values the first in row-major order wins: canonical
// in timetrial.
class MaxPool2d final : public Function {
  public:
    explicit MaxPool2d(const Attributes& attributes) : window_(attributes) {}

    void forward(const Tensor& x, Tensor& y) override {
        constexpr std::size_t nobody = static_cast<std::size_t>(-1);
        winner_.assign(y.size(), nobody);
        const auto stride = static_cast<std::size_t>(window_.stride_w);
        for_each_pooled_row(window_, x, y, [&](std::size_t in, std::size_t out, std::size_t count) {
            for (std::size_t i = 0; i < count; ++i) {
                std::size_t& winner = winner_[out + i];
                const std::size_t candidate = in + i * stride;
                if (winner == nobody || x.value[candidate] > x.value[winner]) winner = candidate;
            }
        });
        for (std::size_t i = 0; i < y.size(); ++i) y.value[i] = x.value[winner_[i]];
    }

    void backward(Tensor& x, const Tensor& y) override {
        for (std::size_t i = 0; i < y.size(); ++i) x.gradient[winner_[i]] += y.gradient[i];
    }

  private:
    const Window window_;
    std::vector<std::size_t> winner_;  // for each output, the input that it came from
};

// y = sum over the window / (kernel_h * kernel_w); padded zeros count.
class AvgPool2d final : public Function {
  public:
    explicit AvgPool2d(const Attributes& attributes) : window_(attributes) {}

    void forward(const Tensor& x, Tensor& y) override {
        const auto stride = static_cast<std::size_t>(window_.stride_w);
        std::fill(y.value.begin(), y.value.end(), 0.0);
        for_each_pooled_row(window_, x, y, [&](std::size_t in, std::size_t out, std::size_t count) {
            for (std::size_t i = 0; i < count; ++i) y.value[out + i] += x.value[in + i * stride];
        });
        for (double& value : y.value) value /= area();
    }

    void backward(Tensor& x, const Tensor& y) override {
        const auto stride = static_cast<std::size_t>(window_.stride_w);
        for_each_pooled_row(window_, x, y, [&](std::size_t in, std::size_t out, std::size_t count) {
            for (std::size_t i = 0; i < count; ++i)
                x.gradient[in + i * stride] += y.gradient[out + i] / area();
        });
    }

  private:
    double area() const { return static_cast<double>(window_.kernel_h * window_.kernel_w); }

    const Window window_;
};

}  // namespace timetrial::reference
