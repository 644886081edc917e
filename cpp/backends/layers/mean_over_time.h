// mean_over_time: (N, T, F) to (N, F), over the steps that count.
#pragma once

#include <algorithm>
#include <cstdint>

#include "layers/layer.h"

namespace timetrial::layers {

template <typename T>
class MeanOverTime final : public Layer<T> {
  public:
    void forward(Inputs<T> inputs, const Edge<T>& output, Share images, int) override {
        const int64_t features = output.shape.channels;
        for_each_sample(inputs, images, [&](int64_t n, int64_t first, int64_t count) {
            T* y = output.value + n * features;
            std::fill_n(y, features, T(0));
            for (int64_t t = 0; t < count; ++t) {
                const T* x = inputs[0].edge->value + first + t * features;
                for (int64_t f = 0; f < features; ++f) y[f] += x[f];
            }
            for (int64_t f = 0; f < features; ++f) y[f] /= static_cast<T>(count);
        });
    }

    void backward_data(Inputs<T> inputs, const Edge<T>& output, Share images, int) override {
        const int64_t features = output.shape.channels, steps = inputs[0].edge->shape.steps;
        for_each_sample(inputs, images, [&](int64_t n, int64_t first, int64_t count) {
            const T* dy = output.gradient + n * features;
            T* dx = inputs[0].edge->gradient + first;
            const T share = T(1) / static_cast<T>(count);
            for (int64_t t = 0; t < count; ++t, dx += features) {
                if (inputs[0].add) {
                    for (int64_t f = 0; f < features; ++f) dx[f] += share * dy[f];
                } else {
                    for (int64_t f = 0; f < features; ++f) dx[f] = share * dy[f];
                }
            }
            if (!inputs[0].add) std::fill_n(dx, (steps - count) * features, T(0));
        });
    }

  private:
    // f(sample, its first value, how many of its steps count)
    template <typename F>
    static void for_each_sample(Inputs<T> inputs, Share images, F&& f) {
        const Shape& in = inputs[0].edge->shape;
        const T* const lengths = inputs.size() > 1 ? inputs[1].edge->value : nullptr;
        for (int64_t n = images.begin; n < images.end; ++n)
            f(n, n * in.features(), lengths ? checked_length(lengths[n], n, in.steps) : in.steps);
    }
};

}  // namespace timetrial::layers
