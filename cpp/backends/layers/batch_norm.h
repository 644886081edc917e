// batch_norm: y = w (x - mean) / sqrt(variance + epsilon) + b for each channel. While it learns, mean and
// biased variance are those of the batch, and move the running ones; inference takes these.
//
// In C x N x H x W a channel of the whole batch is one row, so threads share the channels: none has to add up
// what others saw, and the numbers are the same for any number of threads. Each pass reads a row from memory
// once; what it reads again lies in the cache still.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "layers/layer.h"
#include "timetrial/backend.hpp"

namespace timetrial::layers {

// Sums of f(i) and g(i) for i < count, in double: in several parts, so that additions need not wait for each
// other.
template <typename F, typename G>
inline std::pair<double, double> two_sums(int64_t count, F&& f, G&& g) {
    constexpr int64_t parts = 16;
    double first[parts] = {}, second[parts] = {};
    int64_t i = 0;
    for (; i + parts <= count; i += parts) {
        for (int64_t j = 0; j < parts; ++j) first[j] += f(i + j);
        for (int64_t j = 0; j < parts; ++j) second[j] += g(i + j);
    }
    for (; i < count; ++i) first[0] += f(i), second[0] += g(i);
    for (int64_t j = 1; j < parts; ++j) first[0] += first[j], second[0] += second[j];
    return {first[0], second[0]};
}

template <typename T>
class BatchNorm final : public LayerOfOne<T> {
  public:
    explicit BatchNorm(const Attributes& attributes)
        : epsilon_(attributes.number("epsilon")), momentum_(attributes.number("momentum")) {}

    bool is_by_channel() const override { return true; }
    bool may_be_recomputed() const override { return true; }
    bool may_write_over_gradient() const override { return true; }

    void prepare(const Edge<T>& input, const Edge<T>&, int) override {
        mean_.resize(static_cast<std::size_t>(input.shape.channels));
        slope_.resize(mean_.size());
    }

    // One pass over a row: the variance from the squares of the distance to its first value, which lies among
    // the others, so that hardly anything cancels.
    void forward(const Edge<T>& input, const Edge<T>& output, Share channels, int) override {
        for_each_row(input.shape, channels, [&](int64_t c, int64_t first, int64_t count, auto step) {
            const T* x = input.value + first;
            const auto near = static_cast<double>(x[0]);
            const auto distance = [&](int64_t i) { return static_cast<double>(x[i * step]) - near; };
            const auto [sum, squares] =
                two_sums(count, distance, [&](int64_t i) { return distance(i) * distance(i); });
            const double mean = sum / static_cast<double>(count);
            const double variance = std::max(squares / static_cast<double>(count) - mean * mean, 0.0);
            const double slope = 1 / std::sqrt(variance + epsilon_);
            mean_[static_cast<std::size_t>(c)] = near + mean;
            slope_[static_cast<std::size_t>(c)] = slope;
            keep(c, near + mean, variance);
            write(x, output.value + first, count, step, line(c));
        });
    }

    void recompute(Inputs<T> inputs, const Edge<T>& output, int64_t channel, Share images) override {
        const int64_t plane = output.shape.plane();
        const int64_t begin = (channel * output.shape.batch + images.begin) * plane;
        write(inputs[0].edge->value + begin, output.value + begin, (images.end - images.begin) * plane, one,
              line(channel));
    }

    void infer(Inputs<T> inputs, const Edge<T>& output, Share images, int) override {
        const T* const x = inputs[0].edge->value;
        for_each_row(
            output.shape, {0, output.shape.channels}, [&](int64_t c, int64_t first, int64_t, auto step) {
                const double slope = weight(c) / std::sqrt(state(1)[c] + epsilon_);
                const int64_t begin = first + images.begin * output.shape.plane() * step;
                write(x + begin, output.value + begin, (images.end - images.begin) * output.shape.plane(),
                      step, {static_cast<double>(state(0)[c]), slope, bias(c)});
            });
    }

    // The sums are the gradients of the bias and, times the slope, of the weight.
    void backward_weights(const Edge<T>& input, const Edge<T>& output, Share channels, int) override {
        for_each_row(input.shape, channels, [&](int64_t c, int64_t first, int64_t count, auto step) {
            const T *x = input.value + first, *dy = output.gradient + first;
            const double mean = mean_[static_cast<std::size_t>(c)];
            const auto g = [&](int64_t i) { return static_cast<double>(dy[i * step]); };
            const auto of_x = [&](int64_t i) { return g(i) * (static_cast<double>(x[i * step]) - mean); };
            const auto [sum, product] = two_sums(count, g, of_x);
            gradient(1)[c] = static_cast<T>(sum);
            gradient(0)[c] = static_cast<T>(product * slope_[static_cast<std::size_t>(c)]);
        });
    }

    // w slope (dy - mean of dy - xhat * mean of (dy xhat)), with xhat = (x - mean) slope.
    void backward_data(const Edge<T>& input, const Edge<T>& output, Share channels, int, bool add) override {
        for_each_row(input.shape, channels, [&](int64_t c, int64_t first, int64_t count, auto step) {
            const T *x = input.value + first, *dy = output.gradient + first;
            T* dx = input.gradient + first;
            const double slope = slope_[static_cast<std::size_t>(c)], all = weight(c) * slope;
            const auto share = static_cast<double>(count);
            const auto mean = static_cast<T>(mean_[static_cast<std::size_t>(c)]);
            const auto of_dy = static_cast<T>(all);
            const auto of_x = static_cast<T>(-all * slope * static_cast<double>(gradient(0)[c]) / share);
            const auto rest = static_cast<T>(-all * static_cast<double>(gradient(1)[c]) / share);
            const auto value = [&](const T* of, int64_t i) {
                return of_dy * of[i] + (of_x * (x[i] - mean) + rest);
            };
            if (add) {
                for (int64_t i = 0; i < count; ++i) dx[i * step] += value(dy, i * step);
            } else if (dx == dy) {  // the compiler sees that no value meets another
                for (int64_t i = 0; i < count; ++i) dx[i * step] = value(dx, i * step);
            } else {
                for (int64_t i = 0; i < count; ++i) dx[i * step] = value(dy, i * step);
            }
        });
    }

    bool keeps_output_gradient() const override { return false; }

    void parameter_gradients(const Edge<T>& input, const Edge<T>&, int thread, int threads,
                             const typename Layer<T>::Each& each) override {
        const Share mine = share_of(input.shape.channels, thread, threads);
        for (const auto& parameter : this->parameters) each(*parameter, mine.begin, mine.end);
    }

  private:
    struct Line {
        double mean, slope, bias;
    };
    static constexpr std::integral_constant<int64_t, 1> one{};

    // Of the last batch.
    Line line(int64_t c) const {
        const auto i = static_cast<std::size_t>(c);
        return {mean_[i], slope_[i] * weight(c), bias(c)};
    }

    // y = slope (x - mean) + bias
    template <typename Step>
    static void write(const T* x, T* y, int64_t count, Step step, const Line& line) {
        const auto mean = static_cast<T>(line.mean), slope = static_cast<T>(line.slope);
        const auto bias = static_cast<T>(line.bias);
        for (int64_t i = 0; i < count; ++i) y[i * step] = (x[i * step] - mean) * slope + bias;
    }

    // Calls f(channel, offset, count, step) for the values of each channel of the batch. Of images, one is
    // next to the other, and the step a constant.
    template <typename F>
    static void for_each_row(const Shape& shape, Share channels, F&& f) {
        for (int64_t c = channels.begin; c < channels.end; ++c) {
            if (shape.flat) {
                f(c, c, shape.batch, shape.channels);
            } else {
                const int64_t count = shape.batch * shape.plane();
                f(c, c * count, count, one);
            }
        }
    }

    void keep(int64_t c, double mean, double variance) {
        const auto move = [&](T& running, double to) {
            running = static_cast<T>((1 - momentum_) * static_cast<double>(running) + momentum_ * to);
        };
        move(state(0)[c], mean);
        move(state(1)[c], variance);
    }

    double weight(int64_t c) const { return static_cast<double>(this->parameters[0]->value.data()[c]); }
    double bias(int64_t c) const { return static_cast<double>(this->parameters[1]->value.data()[c]); }
    T* gradient(std::size_t which) const { return this->parameters[which]->gradient.data(); }
    T* state(std::size_t which) const { return this->states[which]->value.data(); }

    const double epsilon_, momentum_;
    std::vector<double> mean_, slope_;  // of the last batch, for the way back
};

}  // namespace timetrial::layers
