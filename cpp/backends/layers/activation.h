// Layers that treat each value alone, and flatten, which only moves values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "layers/layer.h"
#include "timetrial/backend.hpp"

namespace timetrial::layers {

// Calls f(offset, count) for the contiguous runs that hold a share of the images.
template <typename F>
inline void for_each_run(const Shape& shape, Share images, F&& f) {
    const int64_t rows = shape.flat ? 1 : shape.channels;
    const int64_t width = shape.flat ? shape.features() : shape.plane();
    for (int64_t row = 0; row < rows; ++row) {
        f((row * shape.batch + images.begin) * width, (images.end - images.begin) * width);
    }
}

// A gradient that goes on as it is: dx = dy, or dx += dy.
template <typename T>
inline void pass_on(const T* dy, T* dx, int64_t count, bool add) {
    if (!add) return std::copy_n(dy, count, dx), void();
    for (int64_t i = 0; i < count; ++i) dx[i] += dy[i];
}

// y = f(x), and dx = dy * f'(y): every activation here has a derivative that its output tells.
struct Relu {
    template <typename T>
    static T value(T x) {
        return x < 0 ? T(0) : x;  // in this form NaN stays NaN
    }
    template <typename T>
    static T slope(T y) {
        return y > 0 ? T(1) : T(0);  // relu'(0) = 0
    }
};

// A positive output has a positive input.
struct LeakyRelu {
    double below = 0;
    explicit LeakyRelu(const Attributes& attributes) : below(attributes.number("slope")) {}
    template <typename T>
    T value(T x) const {
        return x > 0 ? x : static_cast<T>(below) * x;
    }
    template <typename T>
    T slope(T y) const {
        return y > 0 ? T(1) : static_cast<T>(below);
    }
};

struct Relu6 {
    template <typename T>
    static T value(T x) {
        return x < 0 ? T(0) : x > 6 ? T(6) : x;
    }
    template <typename T>
    static T slope(T y) {
        return y > 0 && y < 6 ? T(1) : T(0);
    }
};

struct Tanh {
    template <typename T>
    static T value(T x) {
        return std::tanh(x);
    }
    template <typename T>
    static T slope(T y) {
        return 1 - y * y;
    }
};

struct Sigmoid {
    template <typename T>
    static T value(T x) {
        return 1 / (1 + std::exp(-x));
    }
    template <typename T>
    static T slope(T y) {
        return y * (1 - y);
    }
};

template <typename T, typename F>
class Activation final : public LayerOfOne<T> {
  public:
    explicit Activation(F formula = {}) : formula_(formula) {}

    bool is_elementwise() const override { return true; }
    bool may_write_over_input() const override { return true; }
    bool needs_its_output() const override { return true; }

    void forward(const Edge<T>& input, const Edge<T>& output, Share images, int) override {
        for_each_run(input.shape, images, [&](int64_t first, int64_t count) {
            const T* x = input.value + first;
            T* y = output.value + first;
            const F formula = formula_;  // of the loop alone: nothing it writes can change that
            for (int64_t i = 0; i < count; ++i) y[i] = formula.template value<T>(x[i]);
        });
    }

    void backward_data(const Edge<T>& input, const Edge<T>& output, Share images, int, bool add) override {
        for_each_run(input.shape, images, [&](int64_t first, int64_t count) {
            const T *y = output.value + first, *dy = output.gradient + first;
            T* dx = input.gradient + first;
            const F formula = formula_;
            if (add) {
                for (int64_t i = 0; i < count; ++i) dx[i] += dy[i] * formula.template slope<T>(y[i]);
            } else {
                for (int64_t i = 0; i < count; ++i) dx[i] = dy[i] * formula.template slope<T>(y[i]);
            }
        });
    }

  private:
    const F formula_;
};

// C x N x H x W to N x (C H W): a transpose of whole planes, or to a sequence N x H x (C W): of rows. Flat
// input is copied.
template <typename T, bool by_rows = false>
class Flatten final : public LayerOfOne<T> {
  public:
    void forward(const Edge<T>& input, const Edge<T>& output, Share images, int) override {
        for_each_piece(input.shape, images, [&](int64_t in, int64_t out, int64_t count) {
            std::copy_n(input.value + in, count, output.value + out);
        });
    }

    void backward_data(const Edge<T>& input, const Edge<T>& output, Share images, int, bool add) override {
        for_each_piece(input.shape, images, [&](int64_t in, int64_t out, int64_t count) {
            pass_on(output.gradient + out, input.gradient + in, count, add);
        });
    }

  private:
    template <typename F>
    static void for_each_piece(const Shape& in, Share images, F&& f) {
        if (in.flat || in.channels == 1) {
            return f(images.begin * in.features(), images.begin * in.features(),
                     (images.end - images.begin) * in.features());
        }
        const int64_t pieces = by_rows ? in.height : 1, size = in.plane() / pieces;
        for (int64_t n = images.begin; n < images.end; ++n)
            for (int64_t c = 0; c < in.channels; ++c)
                for (int64_t i = 0; i < pieces; ++i)
                    f(((c * in.batch + n) * pieces + i) * size, ((n * pieces + i) * in.channels + c) * size,
                      size);
    }
};

}  // namespace timetrial::layers
