// upsample2d: every value scale_h x scale_w times; backward the sum over its copies.
#pragma once

#include <algorithm>

#include "layers/activation.h"
#include "layers/layer.h"

namespace timetrial::layers {

template <typename T>
class Upsample final : public LayerOfOne<T> {
  public:
    Upsample(int64_t scale_h, int64_t scale_w) : scale_h_(scale_h), scale_w_(scale_w) {}

    void forward(const Edge<T>& input, const Edge<T>& output, Share images, int) override {
        const int64_t width = input.shape.width, wide = output.shape.width;
        for_each_line(input.shape, images, [&](int64_t line) {
            const T* x = input.value + line * width;
            T* y = output.value + line * scale_h_ * wide;
            for (int64_t i = 0; i < width; ++i) std::fill_n(y + i * scale_w_, scale_w_, x[i]);
            for (int64_t copy = 1; copy < scale_h_; ++copy) std::copy_n(y, wide, y + copy * wide);
        });
    }

    void backward_data(const Edge<T>& input, const Edge<T>& output, Share images, int, bool add) override {
        const int64_t width = input.shape.width, wide = output.shape.width;
        for_each_line(input.shape, images, [&](int64_t line) {
            T* dx = input.gradient + line * width;
            if (!add) std::fill_n(dx, width, T(0));
            for (int64_t copy = 0; copy < scale_h_; ++copy) {
                const T* dy = output.gradient + (line * scale_h_ + copy) * wide;
                for (int64_t column = 0; column < scale_w_; ++column)
                    for (int64_t i = 0; i < width; ++i) dx[i] += dy[i * scale_w_ + column];
            }
        });
    }

  private:
    // Lines of all planes, one behind the other: of y there are scale_h for each of x.
    template <typename F>
    static void for_each_line(const Shape& in, Share images, F&& f) {
        for_each_run(in, images, [&](int64_t first, int64_t count) {
            for (int64_t line = first / in.width; line < (first + count) / in.width; ++line) f(line);
        });
    }

    const int64_t scale_h_, scale_w_;
};

}  // namespace timetrial::layers
