// conv2d (a cross-correlation, as every framework means it) by im2col and matrix products.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "layers/columns.h"
#include "layers/layer.h"
#include "layers/product.h"

namespace timetrial::layers {

template <typename T, typename Product>
class Convolution final : public LayerOfOne<T> {
  public:
    explicit Convolution(const Window& window) : window_(window) {}

    void prepare(const Edge<T>& input, const Edge<T>& output, int threads) override {
        taps_ = input.shape.channels * window_.kernel_h * window_.kernel_w;
        const int64_t per_row = taps_ * output.shape.width, per_image = per_row * output.shape.height;
        const int64_t room = columns_bytes() / int64_t{sizeof(T)};
        images_ = std::clamp<int64_t>(room / per_image, 1, input.shape.batch);
        rows_ = std::clamp<int64_t>(room / per_row, 1, output.shape.height);
        for (int thread = 0; thread < threads; ++thread) {
            own_.push_back({Buffer<T>(per_row * rows_ * images_), Buffer<T>(taps_ * output.shape.channels),
                            Buffer<T>(output.shape.channels)});
        }
    }

    void forward(const Edge<T>& input, const Edge<T>& output, Share images, int thread) override {
        const int64_t channels = output.shape.channels, row = output.shape.batch * output.shape.plane();
        for_each_tile(images, output.shape, [&](const Tile& tile) {
            const int64_t first = tile.first(output.shape), count = tile.positions(output.shape);
            const T* columns = gather(input, output, tile, thread);
            if (const T* b = bias()) {
                for (int64_t c = 0; c < channels; ++c)
                    std::fill_n(output.value + c * row + first, count, b[c]);
            }
            Product::template multiply<T>(
                matrix<const T>(weight(), channels, taps_), matrix<const T>(columns, taps_, count),
                matrix(output.value + first, channels, count, row), bias() != nullptr);
        });
    }

    void backward_weights(const Edge<T>& input, const Edge<T>& output, Share images, int thread) override {
        const int64_t channels = output.shape.channels, row = output.shape.batch * output.shape.plane();
        Own& own = own_[static_cast<size_t>(thread)];
        own.weight_gradient.zero();
        own.bias_gradient.zero();
        for_each_tile(images, output.shape, [&](const Tile& tile) {
            const int64_t first = tile.first(output.shape), count = tile.positions(output.shape);
            const auto dy = matrix<const T>(output.gradient + first, channels, count, row);
            const T* columns = gather(input, output, tile, thread);
            // Transposed (taps x channels): the long extent first is the faster product.
            Product::template multiply<T>(matrix<const T>(columns, taps_, count), !dy,
                                          matrix(own.weight_gradient.data(), taps_, channels), true);
            for (int64_t c = 0; c < channels && bias(); ++c) {
                own.bias_gradient.data()[c] += sum_of(dy.data + c * row, count);
            }
        });
    }

    void backward_data(const Edge<T>& input, const Edge<T>& output, Share images, int thread,
                       bool add) override {
        const int64_t channels = output.shape.channels, row = output.shape.batch * output.shape.plane();
        if (!add) clear(input, images);
        for_each_tile(images, output.shape, [&](const Tile& tile) {
            const int64_t first = tile.first(output.shape), count = tile.positions(output.shape);
            T* columns = own_[static_cast<size_t>(thread)].columns.data();
            Product::template multiply<T>(!matrix<const T>(weight(), channels, taps_),
                                          matrix<const T>(output.gradient + first, channels, count, row),
                                          matrix(columns, taps_, count), false);
            scatter_columns(input.shape, output.shape, window_, input.gradient, columns, tile);
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
    struct Own {
        Buffer<T> columns;
        Buffer<T> weight_gradient;  // taps x channels
        Buffer<T> bias_gradient;
    };

    template <typename F>
    void for_each_tile(Share images, const Shape& out, F&& f) const {
        for (int64_t n = images.begin; n < images.end; n += images_) {
            for (int64_t row = 0; row < out.height; row += rows_)
                f(Tile{{n, std::min(n + images_, images.end)}, {row, std::min(row + rows_, out.height)}});
        }
    }

    const T* gather(const Edge<T>& input, const Edge<T>& output, const Tile& tile, int thread) {
        T* columns = own_[static_cast<size_t>(thread)].columns.data();
        gather_columns(input.shape, output.shape, window_, input.value, columns, tile);
        return columns;
    }

    // Half of the L2 cache: the columns are written, and read by the product, while they are there.
    static int64_t columns_bytes() {
        const int64_t l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);  // 0 or -1: the system does not say
        return l2 <= 0 ? 256 * 1024 : std::clamp<int64_t>(l2 / 2, 128 * 1024, 1024 * 1024);
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
    int64_t taps_ = 0;    // inputs per output: C * kernel_h * kernel_w
    int64_t images_ = 1;  // per product; one where not all its rows fit
    int64_t rows_ = 0;    // of the output, per product
    std::vector<Own> own_;
};

}  // namespace timetrial::layers
