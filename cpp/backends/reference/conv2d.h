// conv2d: a cross-correlation, as every framework means it.
//   y[n][o][i][j] = b[o] + sum over c, k, l of
//       w[o][c][k][l] * x[n][c][i * stride_h + k * dilation_h - padding_h]
//                              [j * stride_w + l * dilation_w - padding_w]
// where x outside the image is 0, and c goes over the channels of o's group: with G groups the first C / G
// channels make the first O / G outputs, and so on.
//
// conv_transpose2d: the same terms with x and y in each other's place, without groups and dilation.
//   y[n][o][i * stride_h + k - padding_h][j * stride_w + l - padding_w] += w[c][o][k][l] * x[n][c][i][j]
#pragma once

#include "terms.h"
#include "window.h"

namespace timetrial::reference {

class Conv2d final : public Sum<Conv2d> {
  public:
    explicit Conv2d(const Attributes& attributes)
        : window_(attributes), groups_(static_cast<std::size_t>(attributes.integer("groups", 1))) {}

    template <class Terms>
    void define(Terms terms, std::span<Tensor* const> inputs, Tensor& y) const {
        Tensor& x = *inputs[0];
        const std::size_t batch = x.extent(0), channels = x.extent(1), outputs = y.extent(1);
        const std::size_t in_plane = x.extent(2) * x.extent(3), out_plane = y.extent(2) * y.extent(3);
        const std::size_t of_group = channels / groups_;
        for (std::size_t n = 0; n < batch; ++n) {
            for (std::size_t o = 0; o < outputs; ++o) {
                const std::size_t out = (n * outputs + o) * out_plane;
                const std::size_t first = o / (outputs / groups_) * of_group;
                if (has_bias()) terms.value({y, out, 1}, {bias(), o, 0}, out_plane);
                for (std::size_t c = 0; c < of_group; ++c) {
                    const std::size_t in = (n * channels + first + c) * in_plane;
                    const std::size_t kernel = (o * of_group + c) * window_.taps();
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
    const std::size_t groups_;
};

class ConvTranspose2d final : public Sum<ConvTranspose2d> {
  public:
    explicit ConvTranspose2d(const Attributes& attributes) : window_(attributes) {}

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
                    const std::size_t kernel = (c * outputs + o) * window_.taps();
                    slide(window_, y, x, [&](std::size_t tap, const Reach& reach) {
                        terms.product({y, out + reach.x, window_.step()}, {weight(), kernel + tap, 0},
                                      {x, in + reach.y, 1}, reach.count);
                    });
                }
            }
        }
    }

  private:
    const Window window_;
};

}  // namespace timetrial::reference
