// conv2d: a cross-correlation, as every framework means it.
//   y[n][o][i][j] = b[o] + sum over c, k, l of w[o][c][k][l] * x[n][c][i * stride_h + k - padding_h]
//                                                                    [j * stride_w + l - padding_w]
// where x outside the image is 0.
#pragma once

#include "layer.h"
#include "window.h"

namespace timetrial::reference {

class Conv2d final : public Function {
  public:
    explicit Conv2d(const Attributes& attributes) : window_(attributes) {}

    void forward(const Tensor& x, Tensor& y) override {
        const int64_t plane = y.shape[2] * y.shape[3];
        const int64_t stride = window_.stride_w;
        for (int64_t at = 0; at < y.shape[0] * y.shape[1]; ++at) {  // n, o
            const double b =
                has_bias() ? parameters[1]->value[static_cast<std::size_t>(at % y.shape[1])] : 0.0;
            std::fill_n(y.value.begin() + at * plane, plane, b);
        }
        for_each_row(x, y, [&](std::size_t weight, std::size_t in, std::size_t out, int64_t count) {
            const double w = parameters[0]->value[weight];
            const double* from = x.value.data() + in;
            double* to = y.value.data() + out;
            for (int64_t i = 0; i < count; ++i) to[i] += w * from[i * stride];
        });
    }

    // dy/dx = w, dy/dw = x, dy/db = 1, at each position where they met; the uses of a weight add up.
    void backward(Tensor& x, const Tensor& y) override {
        const int64_t plane = y.shape[2] * y.shape[3];
        const int64_t stride = window_.stride_w;
        for (int64_t at = 0; has_bias() && at < y.shape[0] * y.shape[1]; ++at) {
            double& gb = parameters[1]->gradient[static_cast<std::size_t>(at % y.shape[1])];
            for (int64_t i = 0; i < plane; ++i) gb += y.gradient[static_cast<std::size_t>(at * plane + i)];
        }
        for_each_row(x, y, [&](std::size_t weight, std::size_t in, std::size_t out, int64_t count) {
            const double w = parameters[0]->value[weight];
            const double* from = x.value.data() + in;
            double* gx = x.gradient.data() + in;
            const double* gy = y.gradient.data() + out;
            double gw = 0.0;
            for (int64_t i = 0; i < count; ++i) gx[i * stride] += w * gy[i];
            for (int64_t i = 0; i < count; ++i) gw += from[i * stride] * gy[i];
            parameters[0]->gradient[weight] += gw;
        });
    }

  private:
    bool has_bias() const { return parameters.size() > 1; }

    // row(index into w, into x, into y, count) for every image, output channel, input channel and tap.
    template <class Row>
    void for_each_row(const Tensor& x, const Tensor& y, Row&& row) const {
        const int64_t batch = x.shape[0], channels = x.shape[1], height = x.shape[2], width = x.shape[3];
        const int64_t outputs = y.shape[1], out_h = y.shape[2], out_w = y.shape[3];
        for (int64_t n = 0; n < batch; ++n) {
            for (int64_t o = 0; o < outputs; ++o) {
                for (int64_t c = 0; c < channels; ++c) {
                    const int64_t w = (o * channels + c) * window_.kernel_h * window_.kernel_w;
                    const int64_t in = (n * channels + c) * height * width;
                    const int64_t out = (n * outputs + o) * out_h * out_w;
                    slide(window_, height, width, out_h, out_w,
                          [&](int64_t tap, int64_t i, int64_t j, int64_t count) {
                              row(static_cast<std::size_t>(w + tap), static_cast<std::size_t>(in + i),
                                  static_cast<std::size_t>(out + j), count);
                          });
                }
            }
        }
    }

    const Window window_;
};

}  // namespace timetrial::reference
