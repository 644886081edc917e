// add and concat: layers of several inputs.
#pragma once

#include <algorithm>

#include "layers/activation.h"
#include "layers/layer.h"

namespace timetrial::layers {

// y = the sum of the inputs. The first may be the memory of the output, and so may its gradient.
template <typename T>
class Add final : public Layer<T> {
  public:
    bool is_elementwise() const override { return true; }
    bool may_write_over_input() const override { return true; }

    void forward(Inputs<T> inputs, const Edge<T>& output, Share images, int) override {
        for_each_run(output.shape, images, [&](int64_t first, int64_t count) {
            T* y = output.value + first;
            const T* a = inputs[0].edge->value + first;
            for (std::size_t k = 1; k < inputs.size(); ++k, a = y) {
                const T* b = inputs[k].edge->value + first;
                for (int64_t i = 0; i < count; ++i) y[i] = a[i] + b[i];
            }
        });
    }

    void backward_data(Inputs<T> inputs, const Edge<T>& output, Share images, int) override {
        for (const Input<T>& input : inputs) {
            T* const gradient = input.edge->gradient;
            if (gradient == nullptr || gradient == output.gradient) continue;
            for_each_run(output.shape, images, [&](int64_t first, int64_t count) {
                pass_on(output.gradient + first, gradient + first, count, input.add);
            });
        }
    }
};

// The inputs one behind the other along the channels.
template <typename T>
class Concat final : public Layer<T> {
  public:
    void forward(Inputs<T> inputs, const Edge<T>& output, Share images, int) override {
        for_each_piece(inputs, output, images,
                       [&](const Input<T>& input, int64_t in, int64_t out, int64_t count) {
                           std::copy_n(input.edge->value + in, count, output.value + out);
                       });
    }

    void backward_data(Inputs<T> inputs, const Edge<T>& output, Share images, int) override {
        for_each_piece(inputs, output, images,
                       [&](const Input<T>& input, int64_t in, int64_t out, int64_t count) {
                           if (input.edge->gradient == nullptr) return;
                           pass_on(output.gradient + out, input.edge->gradient + in, count, input.add);
                       });
    }

  private:
    // Calls f(input, offset in it, offset in the output, count) for the contiguous pieces of a share.
    template <typename F>
    static void for_each_piece(Inputs<T> inputs, const Edge<T>& output, Share images, F&& f) {
        const int64_t features = output.shape.features();
        int64_t channel = 0;  // the input's first
        for (const Input<T>& input : inputs) {
            const Shape& shape = input.edge->shape;
            if (shape.flat) {
                for (int64_t n = images.begin; n < images.end; ++n)
                    f(input, n * shape.channels, n * features + channel, shape.channels);
            } else {
                const int64_t before = channel * shape.batch * shape.plane();
                for_each_run(shape, images,
                             [&](int64_t first, int64_t count) { f(input, first, before + first, count); });
            }
            channel += shape.channels;
        }
    }
};

}  // namespace timetrial::layers
