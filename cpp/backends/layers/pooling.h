// Max and average pooling over C x N x H x W, plane by plane, and the mean of whole planes.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "layers/columns.h"
#include "layers/halving.h"
#include "layers/layer.h"

namespace timetrial::layers {

// Calls f(input plane, output plane) as offsets, for every channel of the share's images.
template <typename F>
inline void for_each_plane(const Shape& in, const Shape& out, Share images, F&& f) {
    for (int64_t c = 0; c < in.channels; ++c) {
        for (int64_t n = images.begin; n < images.end; ++n) {
            f((c * in.batch + n) * in.plane(), (c * out.batch + n) * out.plane());
        }
    }
}

// The first maximum wins (in row-major order of the window); padding never does.
template <typename T>
class MaxPool final : public LayerOfOne<T> {
  public:
    explicit MaxPool(const Window& window) : window_(window) {}

    void prepare(const Edge<T>& input, const Edge<T>& output, int) override {
        winner_.resize(static_cast<size_t>(output.shape.size()));
        halves_ = Halving<T>::fits(window_, input.shape);
    }

    void forward(const Edge<T>& input, const Edge<T>& output, Share images, int) override {
        if (halves_) {
            return for_each_tall(input.shape, output.shape, images,
                                 [&](const Shape& in, const Shape& out, int64_t x, int64_t y) {
                                     Halving<T>::forward(in, out, input.value + x, output.value + y,
                                                         winner_.data() + y);
                                 });
        }
        for_each_plane(input.shape, output.shape, images, [&](int64_t x, int64_t y) {
            general(input.shape, output.shape, input.value + x, output.value + y, winner_.data() + y);
        });
    }

    void backward_data(const Edge<T>& input, const Edge<T>& output, Share images, int, bool add) override {
        if (halves_) {
            return for_each_tall(
                input.shape, output.shape, images,
                [&](const Shape& in, const Shape& out, int64_t x, int64_t y) {
                    T* dx = input.gradient + x;
                    Halving<T>::backward(in, out, output.gradient + y, winner_.data() + y, dx, add);
                    if (!add)
                        std::fill(dx + 2 * out.height * in.width, dx + in.plane(), T(0));  // a last odd row
                });
        }
        for_each_plane(input.shape, output.shape, images, [&](int64_t x, int64_t y) {
            T* dx = input.gradient + x;
            if (!add) std::fill_n(dx, input.shape.plane(), T(0));
            for (int64_t i = 0; i < output.shape.plane(); ++i)
                dx[winner_[static_cast<size_t>(y + i)]] += output.gradient[y + i];
        });
    }

  private:
    // Of even height, the images of a channel are one tall image: longer runs for small planes.
    template <typename F>
    static void for_each_tall(const Shape& in, const Shape& out, Share images, F&& f) {
        if (images.begin == images.end) return;
        Shape tall_in = in, tall_out = out;
        if (in.height % 2 == 0) {
            tall_in.height *= images.end - images.begin;
            tall_out.height *= images.end - images.begin;
            images.end = images.begin + 1;
        }
        for_each_plane(in, out, images, [&](int64_t x, int64_t y) { f(tall_in, tall_out, x, y); });
    }

    void general(const Shape& in, const Shape& out, const T* x, T* y, Place<T>* winner) const {
        for (int64_t oh = 0; oh < out.height; ++oh) {
            for (int64_t ow = 0; ow < out.width; ++ow) {
                T best = -std::numeric_limits<T>::infinity();
                int64_t index = -1;
                for (int64_t kh = 0; kh < window_.kernel_h; ++kh) {
                    const int64_t ih = oh * window_.stride_h + kh - window_.padding_h;
                    if (ih < 0 || ih >= in.height) continue;
                    for (int64_t kw = 0; kw < window_.kernel_w; ++kw) {
                        const int64_t iw = ow * window_.stride_w + kw - window_.padding_w;
                        if (iw < 0 || iw >= in.width) continue;
                        const int64_t at = ih * in.width + iw;
                        if (index < 0 || x[at] > best) best = x[at], index = at;
                    }
                }
                *y++ = best;
                *winner++ = static_cast<Place<T>>(index);
            }
        }
    }

    const Window window_;
    bool halves_ = false;
    std::vector<Place<T>>
        winner_;  // for each output: its place in the window (halves_), or in the input plane
};

// The divisor is the size of the window: padded zeros count.
template <typename T>
class AveragePool final : public LayerOfOne<T> {
  public:
    explicit AveragePool(const Window& window) : window_(window) {}

    void forward(const Edge<T>& input, const Edge<T>& output, Share images, int) override {
        for_each_window(input, output, images, [&](Share rows, Share columns, int64_t plane, int64_t out) {
            T sum = 0;
            for (int64_t ih = rows.begin; ih < rows.end; ++ih) {
                const T* line = input.value + plane + ih * input.shape.width;
                for (int64_t iw = columns.begin; iw < columns.end; ++iw) sum += line[iw];
            }
            output.value[out] = sum / area();
        });
    }

    void backward_data(const Edge<T>& input, const Edge<T>& output, Share images, int, bool add) override {
        if (!add) {
            for_each_plane(input.shape, output.shape, images, [&](int64_t in, int64_t) {
                std::fill_n(input.gradient + in, input.shape.plane(), T(0));
            });
        }
        for_each_window(input, output, images, [&](Share rows, Share columns, int64_t plane, int64_t out) {
            const T each = output.gradient[out] / area();
            for (int64_t ih = rows.begin; ih < rows.end; ++ih) {
                T* line = input.gradient + plane + ih * input.shape.width;
                for (int64_t iw = columns.begin; iw < columns.end; ++iw) line[iw] += each;
            }
        });
    }

  private:
    T area() const { return static_cast<T>(window_.kernel_h * window_.kernel_w); }

    // f(rows and columns of the input that the window sees, offset of the input plane, output)
    template <typename F>
    void for_each_window(const Edge<T>& input, const Edge<T>& output, Share images, F&& f) const {
        const Shape &in = input.shape, &out = output.shape;
        const auto seen = [](int64_t at, int64_t stride, int64_t padding, int64_t kernel, int64_t extent) {
            const int64_t first = at * stride - padding;
            return Share{std::max<int64_t>(first, 0), std::min(first + kernel, extent)};
        };
        for_each_plane(in, out, images, [&](int64_t x, int64_t y) {
            for (int64_t oh = 0; oh < out.height; ++oh) {
                const Share rows = seen(oh, window_.stride_h, window_.padding_h, window_.kernel_h, in.height);
                for (int64_t ow = 0; ow < out.width; ++ow, ++y) {
                    f(rows, seen(ow, window_.stride_w, window_.padding_w, window_.kernel_w, in.width), x, y);
                }
            }
        });
    }

    const Window window_;
};

// The mean of each plane: C x N x H x W to N x C.
template <typename T>
class GlobalAveragePool final : public LayerOfOne<T> {
  public:
    void forward(const Edge<T>& input, const Edge<T>& output, Share images, int) override {
        const int64_t plane = input.shape.plane();
        for_each(input.shape, images, [&](int64_t in, int64_t out) {
            const T* x = input.value + in;
            constexpr int64_t parts = 8;  // apart, so that the additions need not wait for each other
            T sum[parts] = {};
            int64_t i = 0;
            for (; i + parts <= plane; i += parts)
                for (int64_t j = 0; j < parts; ++j) sum[j] += x[i + j];
            for (; i < plane; ++i) sum[0] += x[i];
            for (int64_t j = 1; j < parts; ++j) sum[0] += sum[j];
            output.value[out] = sum[0] / static_cast<T>(plane);
        });
    }

    void backward_data(const Edge<T>& input, const Edge<T>& output, Share images, int, bool add) override {
        const int64_t plane = input.shape.plane();
        for_each(input.shape, images, [&](int64_t in, int64_t out) {
            const T each = output.gradient[out] / static_cast<T>(plane);
            T* dx = input.gradient + in;
            for (int64_t i = 0; i < plane; ++i) dx[i] = (add ? dx[i] : T(0)) + each;
        });
    }

  private:
    // Calls f(offset of the plane, place of its mean).
    template <typename F>
    static void for_each(const Shape& in, Share images, F&& f) {
        for (int64_t c = 0; c < in.channels; ++c)
            for (int64_t n = images.begin; n < images.end; ++n)
                f((c * in.batch + n) * in.plane(), n * in.channels + c);
    }
};

}  // namespace timetrial::layers
