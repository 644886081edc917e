// Layers along time. Sequences lie as N x T x F; oneDNN's recurrent layers read T x N x F, and compute all
// steps: they know no lengths. What does not count is left out behind it, and gets no gradient, so that the
// others' numbers are those of the definition.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "onednn/dense.h"

namespace timetrial::onednn {

// Extents of a sequence N x T x F.
struct Steps {
    std::int64_t batch, steps, features;

    explicit Steps(const Shape& shape) : batch(shape[0]), steps(shape[1]), features(shape[2]) {}
    std::int64_t rows() const { return batch * steps; }
};

// How many steps of a sample count, read in each step anew.
class Lengths {
  public:
    Lengths(const Inputs& inputs, const Steps& of) : steps_(of.steps) {
        if (inputs.size() > 1) memory_ = inputs[1]->value.made().memory;
    }
    std::int64_t of(std::int64_t sample) const {
        if (!memory_) return steps_;
        const std::int64_t length = static_cast<const std::int64_t*>(memory_.get_data_handle())[sample];
        if (length < 1 || length > steps_)
            throw std::invalid_argument("length " + std::to_string(length) + " of sample " +
                                        std::to_string(sample) + " is outside 1 to " +
                                        std::to_string(steps_));
        return length;
    }

  private:
    std::int64_t steps_;
    dnnl::memory memory_;  // of an input of the network: whole numbers
};

// A parameter in the format of the outside.
inline void keep_plain(const Builder& builder, Parameter& parameter) {
    keep(builder, parameter, plain(parameter.shape), plain(parameter.shape));
}

// A layer of our own loops; `run` on whatever memory its tensors have then.
inline void append_own(Builder& builder, std::vector<Operation>& program, const Purpose& purpose,
                       std::function<void()> run) {
    program.push_back({purpose.node, purpose.direction, std::move(run), builder.runs});
}

// Rows of all maps, N x C x H x W, as steps N x H x (C W).
class MapToSequence final : public LayerOfOne {
  public:
    void build_forward(Builder& builder, Node& input, Node& output) override {
        const Purpose purpose = output.purpose(TT_DIRECTION_FORWARD);
        output.value = Value(allocate(builder.engine(), plain(output.shape)));
        const Tensor from = builder.in(builder.forward, purpose, input.value, plain(input.shape), "source");
        append_own(builder, builder.forward, purpose, [maps = input.shape, from, to = output.value.made()] {
            for_each_row(maps, [&](std::int64_t row, std::int64_t step) {
                std::copy_n(from.data() + row, maps[3], to.data() + step);
            });
        });
    }

    void build_backward(Builder& builder, Node& input, Node& output) override {
        if (!input.learns) return;
        const Purpose purpose = output.purpose(TT_DIRECTION_BACKWARD_DATA);
        const Tensor gradient =
            builder.in(builder.backward, purpose, output.gradient, plain(output.shape), "gradient");
        Value made(allocate(builder.engine(), plain(input.shape)));
        append_own(builder, builder.backward, purpose, [maps = input.shape, gradient, to = made.made()] {
            for_each_row(maps, [&](std::int64_t row, std::int64_t step) {
                std::copy_n(gradient.data() + step, maps[3], to.data() + row);
            });
        });
        hand_back(builder, purpose, input,
                  builder.in(builder.backward, purpose, made, input.value.desc(), "gradient"));
    }

  private:
    // f(where a row of a map begins, where its part of a step does).
    template <typename F>
    static void for_each_row(const Shape& maps, F&& f) {
        for (std::int64_t n = 0; n < maps[0]; ++n)
            for (std::int64_t c = 0; c < maps[1]; ++c)
                for (std::int64_t t = 0; t < maps[2]; ++t)
                    f(((n * maps[1] + c) * maps[2] + t) * maps[3],
                      ((n * maps[2] + t) * maps[1] + c) * maps[3]);
    }
};

class Embedding final : public LayerOfOne {
  public:
    void build_forward(Builder& builder, Node& input, Node& output) override {
        keep_plain(builder, *parameters[0]);
        output.value = Value(allocate(builder.engine(), plain(output.shape)));
        const Steps of(output.shape);
        const std::int64_t vocabulary = parameters[0]->shape[0];
        append_own(
            builder, builder.forward, output.purpose(TT_DIRECTION_FORWARD),
            [=, tokens = input.value.made(), to = output.value.made(), weight = parameters[0]->value.made()] {
                for (std::int64_t i = 0; i < of.rows(); ++i) {
                    const std::int64_t token = tokens_of(tokens)[i];
                    if (token < 0 || token >= vocabulary)
                        throw std::invalid_argument("token " + std::to_string(token) +
                                                    " is outside the vocabulary, 0 to " +
                                                    std::to_string(vocabulary - 1));
                    std::copy_n(weight.data() + token * of.features, of.features,
                                to.data() + i * of.features);
                }
            });
    }

    void build_backward(Builder& builder, Node& input, Node& output) override {
        const Purpose purpose = output.purpose(TT_DIRECTION_BACKWARD_WEIGHTS);
        const Steps of(output.shape);
        const Tensor gradient =
            builder.in(builder.backward, purpose, output.gradient, plain(output.shape), "gradient");
        append_own(builder, builder.backward, purpose,
                   [=, tokens = input.value.made(), to = parameters[0]->gradient,
                    is_first = !parameters[0]->is_tied] {
                       if (is_first) std::fill_n(to.data(), to.stored_elements(), 0.0F);
                       for (std::int64_t i = 0; i < of.rows(); ++i) {
                           float* row = to.data() + tokens_of(tokens)[i] * of.features;
                           const float* dy = gradient.data() + i * of.features;
                           for (std::int64_t f = 0; f < of.features; ++f) row[f] += dy[f];
                       }
                   });
    }

  private:
    static const std::int64_t* tokens_of(const Tensor& tensor) {
        return static_cast<const std::int64_t*>(tensor.memory.get_data_handle());
    }
};

class MeanOverTime final : public Layer {
  public:
    void build_forward(Builder& builder, const Inputs& inputs, Node& output) override {
        const Purpose purpose = output.purpose(TT_DIRECTION_FORWARD);
        const Steps of(inputs[0]->shape);
        output.value = Value(allocate(builder.engine(), plain(output.shape)));
        const Tensor from =
            builder.in(builder.forward, purpose, inputs[0]->value, plain(inputs[0]->shape), "source");
        append_own(builder, builder.forward, purpose,
                   [=, lengths = Lengths(inputs, of), to = output.value.made()] {
                       for (std::int64_t n = 0; n < of.batch; ++n) {
                           const std::int64_t count = lengths.of(n);
                           const float* x = from.data() + n * of.steps * of.features;
                           float* y = to.data() + n * of.features;
                           std::fill_n(y, of.features, 0.0F);
                           for (std::int64_t t = 0; t < count; ++t, x += of.features)
                               for (std::int64_t f = 0; f < of.features; ++f) y[f] += x[f];
                           for (std::int64_t f = 0; f < of.features; ++f) y[f] /= static_cast<float>(count);
                       }
                   });
    }

    void build_backward(Builder& builder, const Inputs& inputs, Node& output) override {
        if (!inputs[0]->learns) return;
        const Purpose purpose = output.purpose(TT_DIRECTION_BACKWARD_DATA);
        const Steps of(inputs[0]->shape);
        const Tensor from =
            builder.in(builder.backward, purpose, output.gradient, plain(output.shape), "gradient");
        Value made(allocate(builder.engine(), plain(inputs[0]->shape)));
        append_own(builder, builder.backward, purpose, [=, lengths = Lengths(inputs, of), to = made.made()] {
            for (std::int64_t n = 0; n < of.batch; ++n) {
                const std::int64_t count = lengths.of(n);
                const float* dy = from.data() + n * of.features;
                for (std::int64_t t = 0; t < of.steps; ++t) {
                    float* dx = to.data() + (n * of.steps + t) * of.features;
                    const float share = t < count ? 1 / static_cast<float>(count) : 0.0F;
                    for (std::int64_t f = 0; f < of.features; ++f) dx[f] = share * dy[f];
                }
            }
        });
        hand_back(builder, purpose, *inputs[0],
                  builder.in(builder.backward, purpose, made, inputs[0]->value.desc(), "gradient"));
    }
};

// dense of each step: that of as many flat rows.
class DenseSteps final : public LayerOfOne {
  public:
    void build_forward(Builder& builder, Node& input, Node& output) override {
        const Steps in(input.shape), out(output.shape);
        input_.learns = input.learns, input_.readers = 1;
        input_.shape = {in.rows(), in.features};
        output_.index = output.index, output_.name = output.name, output_.readers = 1;
        output_.shape = {out.rows(), out.features};
        const Purpose purpose = output.purpose(TT_DIRECTION_FORWARD);
        const Tensor from = builder.in(builder.forward, purpose, input.value, plain(input.shape), "source");
        if (input.layer) {
            input_.value = Value(alias(builder.engine(), from, plain(input_.shape)));
        } else {  // where an input of the network lies is known in each step only
            input_.value = Value(allocate(builder.engine(), plain(input_.shape)));
            append_own(builder, builder.forward, purpose, [from, to = input_.value.made()] {
                std::copy_n(from.data(), to.stored_elements(), to.data());
            });
        }
        std::swap(rows_.parameters, parameters);
        rows_.tied = tied;
        rows_.build_forward(builder, input_, output_);
        std::swap(rows_.parameters, parameters);
        const Tensor made =
            builder.in(builder.forward, purpose, output_.value, plain(output_.shape), "destination");
        output.value = Value(alias(builder.engine(), made, plain(output.shape)));
    }

    void build_backward(Builder& builder, Node& input, Node& output) override {
        const Purpose purpose = output.purpose(TT_DIRECTION_BACKWARD_DATA);
        const Tensor gradient =
            builder.in(builder.backward, purpose, output.gradient, plain(output.shape), "gradient");
        Value rows(alias(builder.engine(), gradient, plain(output_.shape)));
        output_.gradient =
            Value(builder.in(builder.backward, purpose, rows, output_.value.desc(), "gradient"));
        std::swap(rows_.parameters, parameters);
        rows_.build_backward(builder, input_, output_);
        std::swap(rows_.parameters, parameters);
        output_.gradient = Value();  // read for the last time, as that of the input below
        if (!input.learns) return;
        const Tensor made =
            builder.in(builder.backward, purpose, input_.gradient, plain(input_.shape), "gradient");
        Value part(alias(builder.engine(), made, plain(input.shape)));
        hand_back(builder, purpose, input,
                  builder.in(builder.backward, purpose, part, input.value.desc(), "gradient"));
        input_.gradient = Value();
    }

  private:
    Dense rows_;
    Node input_, output_;
};

}  // namespace timetrial::onednn
