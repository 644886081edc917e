// conv2d (a cross-correlation, as every framework means it) by im2col and matrix products.
#pragma once

#include <algorithm>
#include <vector>

#include "layers/columns.h"
#include "layers/layer.h"
#include "layers/product.h"

namespace timetrial::layers {

template <typename T, typename Product>
class Convolution final : public Layer<T> {
  public:
    explicit Convolution(const Window& window) : window_(window) {}

    void prepare(const Edge<T>& input, const Edge<T>& output, int threads) override {
        taps_ = input.shape.channels * window_.kernel_h * window_.kernel_w;
        const int64_t per_image = taps_ * output.shape.plane();
        block_ = std::clamp<int64_t>(columns_bytes / (per_image * int64_t{sizeof(T)}), 1, input.shape.batch);
        for (int thread = 0; thread < threads; ++thread) {
            own_.push_back({Buffer<T>(per_image * block_), Buffer<T>(taps_ * output.shape.channels),
                            Buffer<T>(output.shape.channels)});
        }
    }

    void forward(const Edge<T>& input, const Edge<T>& output, Share images, int thread) override {
        const int64_t channels = output.shape.channels, row = output.shape.batch * output.shape.plane();
        for_each_block(images, [&](Share block) {
            const int64_t first = block.begin * output.shape.plane();
            const int64_t count = (block.end - block.begin) * output.shape.plane();
            const T* columns = gather(input, output, block, thread);
            if (const T* b = bias()) {
                for (int64_t c = 0; c < channels; ++c)
                    std::fill_n(output.value + c * row + first, count, b[c]);
            }
            Product::template multiply<T>(
                matrix<const T>(weight(), channels, taps_), matrix<const T>(columns, taps_, count),
                matrix(output.value + first, channels, count, row), bias() != nullptr);
        });
    }

    void backward(const Edge<T>& input, const Edge<T>& output, Share images, int thread, bool add) override {
        const int64_t channels = output.shape.channels, row = output.shape.batch * output.shape.plane();
        Own& own = own_[static_cast<size_t>(thread)];
        own.weight_gradient.zero();
        own.bias_gradient.zero();
        if (input.gradient && !add) clear(input, images);
        for_each_block(images, [&](Share block) {
            const int64_t first = block.begin * output.shape.plane();
            const int64_t count = (block.end - block.begin) * output.shape.plane();
            const auto dy = matrix<const T>(output.gradient + first, channels, count, row);
            const T* columns = gather(input, output, block, thread);
            // Transposed (taps x channels): the long extent first is the faster product.
            Product::template multiply<T>(matrix<const T>(columns, taps_, count), !dy,
                                          matrix(own.weight_gradient.data(), taps_, channels), true);
            for (int64_t c = 0; c < channels && bias(); ++c) {
                own.bias_gradient.data()[c] += sum_of(dy.data + c * row, count);
            }
            if (!input.gradient) return;
            T* back = own.columns.data();
            Product::template multiply<T>(!matrix<const T>(weight(), channels, taps_), dy,
                                          matrix(back, taps_, count), false);
            scatter_columns(input.shape, output.shape, window_, input.gradient, back, block);
        });
    }

    void parameter_gradients(const Edge<T>&, const Edge<T>& output, int thread, int threads,
                             const typename Layer<T>::Each& each) override {
        const int64_t channels = output.shape.channels;
        const Share mine = share_of(channels, thread, threads);
        auto& weights = *this->parameters[0];
        for (int64_t c = mine.begin; c < mine.end; ++c) {
            T* gradient = weights.gradient.data() + c * taps_;
            for (int64_t tap = 0; tap < taps_; ++tap) {
                T sum = 0;
                for (const Own& own : own_) sum += own.weight_gradient.data()[tap * channels + c];
                gradient[tap] = sum;
            }
        }
        each(weights, mine.begin * taps_, mine.end * taps_);
        if (this->parameters.size() > 1) {
            auto& biases = *this->parameters[1];
            for (int64_t c = mine.begin; c < mine.end; ++c) {
                T sum = 0;
                for (const Own& own : own_) sum += own.bias_gradient.data()[c];
                biases.gradient.data()[c] = sum;
            }
            each(biases, mine.begin, mine.end);
        }
    }

  private:
    static constexpr int64_t columns_bytes = 256 * 1024;  // a quarter to a half of today's L2 caches

    struct Own {
        Buffer<T> columns;
        Buffer<T> weight_gradient;  // taps x channels
        Buffer<T> bias_gradient;
    };

    template <typename F>
    void for_each_block(Share images, F&& f) const {
        for (int64_t n = images.begin; n < images.end; n += block_)
            f(Share{n, std::min(n + block_, images.end)});
    }

    const T* gather(const Edge<T>& input, const Edge<T>& output, Share block, int thread) {
        T* columns = own_[static_cast<size_t>(thread)].columns.data();
        gather_columns(input.shape, output.shape, window_, input.value, columns, block);
        return columns;
    }

    // In sixteen sums side by side: one after the other, each addition would wait for the one before.
    static T sum_of(const T* values, int64_t count) {
        T lanes[16] = {}, rest = 0;
        int64_t i = 0;
        for (; i + 16 <= count; i += 16)
            for (int64_t lane = 0; lane < 16; ++lane) lanes[lane] += values[i + lane];
        for (; i < count; ++i) rest += values[i];
        for (const T lane : lanes) rest += lane;
        return rest;
    }

    static void clear(const Edge<T>& input, Share images) {
        const int64_t plane = input.shape.plane();
        for (int64_t c = 0; c < input.shape.channels; ++c) {
            T* first = input.gradient + (c * input.shape.batch + images.begin) * plane;
            std::fill_n(first, (images.end - images.begin) * plane, T(0));
        }
    }

    const T* weight() const { return this->parameters[0]->value.data(); }
    const T* bias() const {
        return this->parameters.size() > 1 ? this->parameters[1]->value.data() : nullptr;
    }

    const Window window_;
    int64_t taps_ = 0;   // inputs per output: C * kernel_h * kernel_w
    int64_t block_ = 1;  // images per product
    std::vector<Own> own_;
};

}  // namespace timetrial::layers
