// The three products of a convolution with its columns, a tile at a time: what conv2d does, and what
// conv_transpose2d does in the other direction. With groups, each group of outputs is a convolution of its
// own over its group of channels, which lie together.
#pragma once

#include <algorithm>
#include <vector>

#include "layers/caches.h"
#include "layers/columns.h"
#include "layers/convolved.h"
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

    void prepare(const Shape& x, const Shape& y, int threads, Rooms<T>& rooms) {
        threads_ = threads;
        x_ = x;
        x_.channels /= groups_;
        y_ = y;
        of_group_ = y.channels / groups_;
        taps_ = x_.channels * window_.kernel_h * window_.kernel_w;
        const int64_t per_row = taps_ * y.width, per_image = per_row * y.height;
        const int64_t room = columns_bytes() / int64_t{sizeof(T)};
        images_ = std::clamp<int64_t>(room / per_image, 1, y.batch);
        rows_ = std::clamp<int64_t>(room / per_row, 1, y.height);
        is_pointwise_ = window_.fills_lines(x.height, x.width, y.height, y.width) && window_.stride_h == 1 &&
                        window_.kernel_h == 1 && window_.kernel_w == 1;
        rooms_ = &rooms;
        rooms_->call.ask(per_row * rows_ * images_);
        const int64_t weights = taps_ * y.channels;
        if (weights * int64_t{sizeof(T)} > most_kept) {
            rooms_->sums.ask(weights);
            return;
        }
        for (int thread = 0; thread < threads; ++thread) own_.emplace_back(weights);
    }

    // y from x; `bias` may be null.
    void forward(const T* weight, const T* bias, const T* x, T* y, bool add, Share images, int thread) {
        T* const columns = rooms_->call.of(thread);
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

    // The way back: x, or what is added to it, is for each of its values the sum of those of y that it is in.
    void backward(const T* weight, const T* y, T* x, bool add, Share images, int thread) {
        T* const columns = rooms_->call.of(thread);
        for (int64_t group = 0; group < groups_ && !add && !is_pointwise_; ++group)
            clear(x_, images, x + group * group_size());
        for_each_part(images, [&](const Tile& tile, int64_t group, int64_t first, int64_t count) {
            const auto multiply = [&](const Matrix<T>& to, bool add_to_it) {
                Product::template multiply<T>(
                    !matrix<const T>(weight + group * of_group_ * taps_, of_group_, taps_),
                    matrix<const T>(y + group * of_group_ * row() + first, of_group_, count, row()), to,
                    add_to_it);
            };
            T* const of_group = x + group * group_size();
            if (is_pointwise_) return multiply(matrix(of_group + first, taps_, count, row()), add);
            multiply(matrix(columns, taps_, count), false);
            scatter_columns(x_, y_, window_, of_group, columns, tile);
        });
    }

    // Of these images, into the thread's own store. `each` is called with what has been read of y, while it
    // is still in the cache: each(channel, values, count).
    template <typename Each>
    void keep_weight_gradient(const T* x, const T* y, Share images, int thread, Each&& each) {
        T* const own = own_weight_gradient(thread);
        std::fill_n(own, taps_ * y_.channels, T(0));
        T* const columns = rooms_->call.of(thread);
        for_each_part(images, [&](const Tile& tile, int64_t group, int64_t first, int64_t count) {
            gather_columns(x_, y_, window_, x + group * group_size(), columns, tile);
            const auto dy = matrix<const T>(y + group * of_group_ * row() + first, of_group_, count, row());
            // Transposed (taps x channels): the long extent first is the faster product.
            Product::template multiply<T>(matrix<const T>(columns, taps_, count), !dy,
                                          matrix(own + group * taps_ * of_group_, taps_, of_group_), true);
            for (int64_t c = 0; c < of_group_; ++c) each(group * of_group_ + c, dy.data + c * row(), count);
        });
    }

    // That store, for whoever computes the gradient otherwise.
    T* own_weight_gradient(int thread) {
        return sums_at_once() ? rooms_->sums.of(thread) : own_[static_cast<size_t>(thread)].data();
    }
    bool sums_at_once() const { return own_.empty(); }

    // Those of all threads, in their order, for some channels of y; `to`: of the first of them. By squares of
    // whole cache lines: a column of a store, value by value, is a line for each of them, and of wide layers
    // all in one set.
    void sum_weight_gradient(Share channels, T* to) {
        for (int64_t c = channels.begin; c < channels.end;) {
            const int64_t group = c / of_group_;
            const int64_t many = std::min({kSquare, channels.end - c, (group + 1) * of_group_ - c});
            const int64_t from = group * of_group_ * taps_ + c % of_group_;
            for (int64_t tap = 0; tap < taps_; tap += kSquare)
                sum_square(from + tap * of_group_, many, std::min(kSquare, taps_ - tap),
                           to + (c - channels.begin) * taps_ + tap);
            c += many;
        }
    }

  private:
    static constexpr int64_t kSquare = 64 / sizeof(T);

    // `from`: of the first value in each store; `to`: channels x taps.
    void sum_square(int64_t from, int64_t channels, int64_t taps, T* to) {
        T sums[kSquare][kSquare] = {};
        for (int thread = 0; thread < threads_; ++thread) {
            const T* row = own_weight_gradient(thread) + from;
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

    // Bytes of a weight gradient that each thread keeps until the last layer's way back: for more it is worth
    // that all threads meet behind the layer.
    static constexpr int64_t most_kept = 1 << 18;

    // Half of the L2 cache: the columns are written, and read by the product, while they are there.
    static int64_t columns_bytes() { return std::clamp<int64_t>(l2_bytes() / 2, 128 * 1024, 1024 * 1024); }

    const Window window_;
    const int64_t groups_;
    Shape x_;  // of one group
    Shape y_;
    int64_t of_group_ = 0;  // channels of y
    int64_t taps_ = 0;
    int64_t images_ = 1;         // per product; one where not all its rows fit
    int64_t rows_ = 0;           // of y, per product
    bool is_pointwise_ = false;  // one tap, and all of x: columns in order are x itself
    int threads_ = 0;
    Rooms<T>* rooms_ = nullptr;
    // Of each thread, a weight gradient: for each group taps x channels. None: in Rooms::sums.
    std::vector<Buffer<T>> own_;
};

}  // namespace timetrial::layers
