// The three products of a convolution with its columns, a tile at a time: what conv2d does, and what
// conv_transpose2d does in the other direction. With groups, each group of outputs is a convolution of its
// own over its group of channels, which lie together.
#pragma once

#include <algorithm>
#include <vector>

#include "layers/caches.h"
#include "layers/columns.h"
#include "layers/layer.h"
#include "layers/product.h"

namespace timetrial::layers {

// In sixteen sums side by side: one after the other, each addition would wait for the one before.
template <typename T>
inline T sum_of(const T* values, int64_t count) {
    T lanes[16] = {}, rest = 0;
    int64_t i = 0;
    for (; i + 16 <= count; i += 16)
        for (int64_t lane = 0; lane < 16; ++lane) lanes[lane] += values[i + lane];
    for (; i < count; ++i) rest += values[i];
    for (const T lane : lanes) rest += lane;
    return rest;
}

// x: what the window slides over. y: one value of each channel for each place of the window. Weights are
// (channels of y) x (channels of x in a group) x kernel.
template <typename T, typename Product>
class Correlation {
  public:
    Correlation(const Window& window, int64_t groups) : window_(window), groups_(groups) {}

    void prepare(const Shape& x, const Shape& y, int threads) {
        x_ = x;
        x_.channels /= groups_;
        y_ = y;
        of_group_ = y.channels / groups_;
        taps_ = x_.channels * window_.kernel_h * window_.kernel_w;
        const int64_t per_row = taps_ * y.width, per_image = per_row * y.height;
        const int64_t room = columns_bytes() / int64_t{sizeof(T)};
        images_ = std::clamp<int64_t>(room / per_image, 1, y.batch);
        rows_ = std::clamp<int64_t>(room / per_row, 1, y.height);
        for (int thread = 0; thread < threads; ++thread)
            own_.push_back({Buffer<T>(per_row * rows_ * images_), Buffer<T>(taps_ * y.channels)});
    }

    int64_t taps() const { return taps_; }  // of x, for each value of y

    // y from x; `bias` may be null.
    void forward(const T* weight, const T* bias, const T* x, T* y, bool add, Share images, int thread) {
        T* columns = own_[static_cast<size_t>(thread)].columns.data();
        for_each_part(images, [&](const Tile& tile, int64_t group, int64_t first, int64_t count) {
            gather_columns(x_, y_, window_, x + group * group_size(), columns, tile);
            T* to = y + group * of_group_ * row() + first;
            if (bias)
                for (int64_t c = 0; c < of_group_; ++c)
                    std::fill_n(to + c * row(), count, bias[group * of_group_ + c]);
            Product::template multiply<T>(
                matrix<const T>(weight + group * of_group_ * taps_, of_group_, taps_),
                matrix<const T>(columns, taps_, count), matrix(to, of_group_, count, row()), add || bias);
        });
    }

    // The way back: adds to x what each value of y is made of.
    void add_to_inputs(const T* weight, const T* y, T* x, Share images, int thread) {
        T* columns = own_[static_cast<size_t>(thread)].columns.data();
        for_each_part(images, [&](const Tile& tile, int64_t group, int64_t first, int64_t count) {
            Product::template multiply<T>(
                !matrix<const T>(weight + group * of_group_ * taps_, of_group_, taps_),
                matrix<const T>(y + group * of_group_ * row() + first, of_group_, count, row()),
                matrix(columns, taps_, count), false);
            scatter_columns(x_, y_, window_, x + group * group_size(), columns, tile);
        });
    }

    // Of these images, into the thread's own store. `each` is called with what has been read of y, while it
    // is still in the cache: each(channel, values, count).
    template <typename Each>
    void keep_weight_gradient(const T* x, const T* y, Share images, int thread, Each&& each) {
        Own& own = own_[static_cast<size_t>(thread)];
        own.weight_gradient.zero();
        T* columns = own.columns.data();
        for_each_part(images, [&](const Tile& tile, int64_t group, int64_t first, int64_t count) {
            gather_columns(x_, y_, window_, x + group * group_size(), columns, tile);
            const auto dy = matrix<const T>(y + group * of_group_ * row() + first, of_group_, count, row());
            // Transposed (taps x channels): the long extent first is the faster product.
            Product::template multiply<T>(
                matrix<const T>(columns, taps_, count), !dy,
                matrix(own.weight_gradient.data() + group * taps_ * of_group_, taps_, of_group_), true);
            for (int64_t c = 0; c < of_group_; ++c) each(group * of_group_ + c, dy.data + c * row(), count);
        });
    }

    // That store, for whoever computes the gradient otherwise.
    T* own_weight_gradient(int thread) { return own_[static_cast<size_t>(thread)].weight_gradient.data(); }

    // Those of all threads, in their order, for some channels of y. By squares of whole cache lines: a
    // column of a store, value by value, is a line for each of them, and of wide layers all in one set.
    void sum_weight_gradient(Share channels, T* gradient) const {
        for (int64_t c = channels.begin; c < channels.end;) {
            const int64_t group = c / of_group_;
            const int64_t many = std::min({kSquare, channels.end - c, (group + 1) * of_group_ - c});
            const int64_t from = group * of_group_ * taps_ + c % of_group_;
            for (int64_t tap = 0; tap < taps_; tap += kSquare)
                sum_square(from + tap * of_group_, many, std::min(kSquare, taps_ - tap),
                           gradient + c * taps_ + tap);
            c += many;
        }
    }

  private:
    struct Own {
        Buffer<T> columns;
        Buffer<T> weight_gradient;  // for each group: taps x channels
    };

    static constexpr int64_t kSquare = 64 / sizeof(T);

    // `from`: of the first value in each store; `to`: channels x taps.
    void sum_square(int64_t from, int64_t channels, int64_t taps, T* to) const {
        T sums[kSquare][kSquare] = {};
        for (const Own& own : own_) {
            const T* row = own.weight_gradient.data() + from;
            for (int64_t tap = 0; tap < taps; ++tap, row += of_group_)
                for (int64_t c = 0; c < channels; ++c) sums[tap][c] += row[c];
        }
        for (int64_t c = 0; c < channels; ++c)
            for (int64_t tap = 0; tap < taps; ++tap) to[c * taps_ + tap] = sums[tap][c];
    }

    int64_t row() const { return y_.batch * y_.plane(); }            // of one channel of y
    int64_t group_size() const { return x_.batch * x_.features(); }  // of x

    // f(tile, group, the tile's first value in a channel of y, how many there are)
    template <typename F>
    void for_each_part(Share images, F&& f) const {
        for (int64_t n = images.begin; n < images.end; n += images_) {
            for (int64_t row = 0; row < y_.height; row += rows_) {
                const Tile tile{{n, std::min(n + images_, images.end)},
                                {row, std::min(row + rows_, y_.height)}};
                for (int64_t group = 0; group < groups_; ++group)
                    f(tile, group, tile.first(y_), tile.positions(y_));
            }
        }
    }

    // Half of the L2 cache: the columns are written, and read by the product, while they are there.
    static int64_t columns_bytes() { return std::clamp<int64_t>(l2_bytes() / 2, 128 * 1024, 1024 * 1024); }

    const Window window_;
    const int64_t groups_;
    Shape x_;  // of one group
    Shape y_;
    int64_t of_group_ = 0;  // channels of y
    int64_t taps_ = 0;
    int64_t images_ = 1;  // per product; one where not all its rows fit
    int64_t rows_ = 0;    // of y, per product
    std::vector<Own> own_;
};

}  // namespace timetrial::layers
