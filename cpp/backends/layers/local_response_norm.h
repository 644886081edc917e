// local_response_norm: y[c] = x[c] / s[c]^beta with s[c] = k + a * sum of x[d]^2 over the channels d around
// c. Some positions at a time, so that all their channels lie in the cache; what the way back needs of the
// sums it computes again, which is faster than reading them from memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "layers/layer.h"
#include "timetrial/backend.hpp"

namespace timetrial::layers {

template <typename T>
class LocalResponseNorm final : public LayerOfOne<T> {
  public:
    explicit LocalResponseNorm(const Attributes& attributes)
        : half_(attributes.integer("size") / 2),
          a_(static_cast<T>(attributes.number("alpha") /
                            (attributes.integer("alpha_over_size") != 0
                                 ? static_cast<double>(attributes.integer("size"))
                                 : 1.0))),
          beta_(static_cast<T>(attributes.number("beta"))),
          k_(static_cast<T>(attributes.number("k"))),
          is_usual_(attributes.number("beta") == 0.75) {}

    void prepare(const Edge<T>& input, const Edge<T>&, int threads) override {
        const auto room = static_cast<std::size_t>(2 * input.shape.channels * width);
        rooms_.assign(static_cast<std::size_t>(threads), std::vector<T>(room));
    }

    void forward(const Edge<T>& input, const Edge<T>& output, Share images, int thread) override {
        const Shape& shape = input.shape;
        T* const sums = rooms_[static_cast<std::size_t>(thread)].data();
        for_each_block(shape, images, [&](int64_t first, int64_t count) {
            add_squares(shape, input.value + first, sums, count);
            for (int64_t c = 0; c < shape.channels; ++c) {
                const T *x = input.value + first + c * apart(shape), *s = sums + c * width;
                T* y = output.value + first + c * apart(shape);
                with_power([&](auto power) {
                    for (int64_t i = 0; i < count; ++i) y[i] = x[i] * power(s[i]);
                });
            }
        });
    }

    // dx[c] = dy[c] / s[c]^beta - 2 a beta x[c] * sum over d of dy[d] x[d] / s[d]^(beta + 1)
    void backward_data(const Edge<T>& input, const Edge<T>& output, Share images, int thread,
                       bool add) override {
        const Shape& shape = input.shape;
        T* const powers = rooms_[static_cast<std::size_t>(thread)].data();
        T* const ways = powers + shape.channels * width;
        for_each_block(shape, images, [&](int64_t first, int64_t count) {
            add_squares(shape, input.value + first, powers, count);
            for (int64_t c = 0; c < shape.channels; ++c) {
                const T *x = input.value + first + c * apart(shape),
                        *dy = output.gradient + first + c * apart(shape);
                T *p = powers + c * width, *way = ways + c * width;
                with_power([&](auto power) {
                    for (int64_t i = 0; i < count; ++i) {
                        const T s = p[i];
                        p[i] = power(s);
                        way[i] = dy[i] * x[i] * p[i] / s;
                    }
                });
            }
            for (int64_t c = 0; c < shape.channels; ++c) {
                const T *x = input.value + first + c * apart(shape),
                        *dy = output.gradient + first + c * apart(shape);
                T* dx = input.gradient + first + c * apart(shape);
                T all[width] = {};
                for_each_neighbor(shape, c, [&](int64_t d) {
                    for (int64_t i = 0; i < count; ++i) all[i] += ways[d * width + i];
                });
                const T *p = powers + c * width, factor = 2 * a_ * beta_;
                for (int64_t i = 0; i < count; ++i)
                    dx[i] = (add ? dx[i] : T(0)) + (dy[i] * p[i] - factor * x[i] * all[i]);
            }
        });
    }

  private:
    static constexpr int64_t width = 64;  // positions at a time

    static int64_t apart(const Shape& shape) { return shape.batch * shape.plane(); }

    // Calls f(offset in the first channel, count).
    template <typename F>
    static void for_each_block(const Shape& shape, Share images, F&& f) {
        const int64_t end = images.end * shape.plane();
        for (int64_t first = images.begin * shape.plane(); first < end; first += width)
            f(first, std::min(width, end - first));
    }

    template <typename F>
    void for_each_neighbor(const Shape& shape, int64_t c, F&& f) const {
        const int64_t last = std::min(c + half_, shape.channels - 1);
        for (int64_t d = std::max<int64_t>(c - half_, 0); d <= last; ++d) f(d);
    }

    void add_squares(const Shape& shape, const T* x, T* sums, int64_t count) const {
        for (int64_t c = 0; c < shape.channels; ++c) {
            T sum[width] = {};
            for_each_neighbor(shape, c, [&](int64_t d) {
                const T* from = x + d * apart(shape);
                for (int64_t i = 0; i < count; ++i) sum[i] += from[i] * from[i];
            });
            for (int64_t i = 0; i < count; ++i) sums[c * width + i] = k_ + a_ * sum[i];
        }
    }

    // Calls f with s -> s^-beta. The usual beta needs no pow().
    template <typename F>
    void with_power(F&& f) const {
        if (is_usual_) return f([](T s) { return 1 / (std::sqrt(s) * std::sqrt(std::sqrt(s))); });
        f([this](T s) { return std::pow(s, -beta_); });
    }

    const int64_t half_;
    const T a_, beta_, k_;
    const bool is_usual_;
    std::vector<std::vector<T>> rooms_;  // of each thread: sums, and what neighbors share, by channel
};

}  // namespace timetrial::layers
