// conv2d: a cross-correlation, as every framework means it.
//   y[n][o][i][j] = b[o] + sum over c, k, l of w[o][c][k][l] * x[n][c][i * stride_h + k - padding_h]
//                                                                    [j * stride_w + l - padding_w]
// where x outside the image is 0.
#pragma once

#include "terms.h"
#include "window.h"

namespace timetrial::reference {

class Conv2d final : public Sum<Conv2d> {
  public:
    explicit Conv2d(const Attributes& attributes) : window_(attributes) {}

    template <class Terms>
    void define(Terms terms, std::span<Tensor* const> inputs, Tensor& y) const {
        Tensor& x = *inputs[0];
        const std::size_t batch = x.extent(0), channels = x.extent(1), outputs = y.extent(1);
        const std::size_t in_plane = x.extent(2) * x.extent(3), out_plane = y.extent(2) * y.extent(3);
        for (std::size_t n = 0; n < batch; ++n) {
            for (std::size_t o = 0; o < outputs; ++o) {
                const std::size_t out = (n * outputs + o) * out_plane;
                if (has_bias()) terms.value({y, out, 1}, {bias(), o, 0}, out_plane);
                for (std::size_t c = 0; c < channels; ++c) {
                    const std::size_t in = (n * channels + c) * in_plane;
                    const std::size_t kernel = (o * channels + c) * window_.taps();
                    slide(window_, x, y, [&](std::size_t tap, const Reach& reach) {
                        terms.product({y, out + reach.y, 1}, {weight(), kernel + tap, 0},
                                      {x, in + reach.x, window_.step()}, reach.count);
                    });
                }
            }
        }
    }

  private:
    const Window window_;
};

}  // namespace timetrial::reference
