// dropout: y = m * x while it learns, with the mask m that the batch brings; y = x in inference.
#pragma once

#include <algorithm>

#include "layers/activation.h"
#include "layers/layer.h"

namespace timetrial::layers {

// Inputs: x, and the mask. The output may be the memory of x.
template <typename T>
class Dropout final : public Layer<T> {
  public:
    bool is_elementwise() const override { return true; }
    bool may_write_over_input() const override { return true; }

    void forward(Inputs<T> inputs, const Edge<T>& output, Share images, int) override {
        for_each_run(output.shape, images, [&](int64_t first, int64_t count) {
            const T *x = inputs[0].edge->value + first, *m = inputs[1].edge->value + first;
            T* y = output.value + first;
            for (int64_t i = 0; i < count; ++i) y[i] = m[i] * x[i];
        });
    }

    void infer(Inputs<T> inputs, const Edge<T>& output, Share images, int) override {
        if (output.value == inputs[0].edge->value) return;
        for_each_run(output.shape, images, [&](int64_t first, int64_t count) {
            std::copy_n(inputs[0].edge->value + first, count, output.value + first);
        });
    }

    void backward_data(Inputs<T> inputs, const Edge<T>& output, Share images, int) override {
        for_each_run(output.shape, images, [&](int64_t first, int64_t count) {
            const T *m = inputs[1].edge->value + first, *dy = output.gradient + first;
            T* dx = inputs[0].edge->gradient + first;
            if (inputs[0].add) {
                for (int64_t i = 0; i < count; ++i) dx[i] += m[i] * dy[i];
            } else {
                for (int64_t i = 0; i < count; ++i) dx[i] = m[i] * dy[i];
            }
        });
    }
};

}  // namespace timetrial::layers
