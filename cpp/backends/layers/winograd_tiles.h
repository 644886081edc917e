// Between images in C x N x H x W and the tiles of Winograd's filtering, a channel at a time.
//
// All tiles of a block lie side by side, so that a register holds as many of them as it has lanes: tile
// p = (row of tiles, image, column of tiles). Its number `k` is in a line of numbers for all tiles; 36 such
// lines, `step` apart, are the factors of 36 matrix products over the channels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "layers/lanes.h"
#include "layers/layer.h"
#include "layers/room.h"
#include "layers/winograd_matrices.h"

namespace timetrial::layers::winograd {

// What is transformed at a time: some images with all their rows of tiles, or some rows of one.
struct Block {
    Share images;
    Share rows;
    int64_t wide;  // tiles in a row

    int64_t n_images() const { return images.end - images.begin; }
    int64_t n_rows() const { return rows.end - rows.begin; }
    int64_t lines() const { return n_rows() * n_images(); }
    int64_t tiles() const { return lines() * wide; }
};

// The tiles that cover a plane, in blocks of about `room` tiles.
class Tiling {
  public:
    Tiling(const Shape& plane, int64_t room)
        : tall_((plane.height + tile - 1) / tile), wide_((plane.width + tile - 1) / tile) {
        images_ = std::clamp<int64_t>(room / (tall_ * wide_), 1, std::max<int64_t>(plane.batch, 1));
        // Equal blocks, where an image is cut.
        const int64_t cuts = std::max<int64_t>(1, (tall_ * wide_ + room / 2) / room);
        rows_ = images_ > 1 ? tall_ : (tall_ + cuts - 1) / cuts;
    }

    int64_t most_tiles() const { return images_ * rows_ * wide_; }
    // With the row below, that of the last tile's reach.
    int64_t most_values() const { return images_ * (rows_ + 1) * wide_; }

    template <typename F>
    void for_each_block(Share images, F&& f) const {
        for (int64_t n = images.begin; n < images.end; n += images_)
            for (int64_t row = 0; row < tall_; row += rows_)
                f(Block{{n, std::min(n + images_, images.end)}, {row, std::min(row + rows_, tall_)}, wide_});
    }

  private:
    int64_t tall_, wide_;  // tiles of a plane
    int64_t images_ = 1, rows_ = 1;
};

// Memory for the transforms of a channel: a line of numbers for each place in a tile, and for the first two
// places of the tile to its right; and the image's lines that they are made of.
template <typename T>
class Workshop {
  public:
    Workshop(Cutter<T>& cutter, int64_t most_values)
        : length_(Lanes<T>::round_up(most_values + Lanes<T>::count)),
          places_(cutter.cut(length_ * tile * reach)),
          lines_(cutter.cut(length_ * tile)),
          ends_(cutter.cut(length_ * 2)) {}

    T* place(int64_t row, int64_t column) const { return places_ + (row * reach + column) * length_; }
    T* lines() const { return lines_; }
    T* ends(int64_t which) const { return ends_ + which * length_; }

  private:
    int64_t length_;
    T *places_, *lines_, *ends_;
};

// A channel of images, and how far the first tile begins above and to the left of it.
template <typename T>
struct Channel {
    T* data;  // of image 0
    int64_t height, width;
    int64_t padding_h, padding_w;

    T* line(int64_t image, int64_t row) const { return data + (image * height + row) * width; }
};

// Line after line of the image row `row` of each tile, four numbers for each tile of it; beyond the image,
// zeros. `next`, `second`, unless null: the two numbers behind each line.
template <typename T>
void copy_lines(const Channel<const T>& from, const Block& block, int64_t groups, int64_t row, T* to, T* next,
                T* second) {
    const int64_t length = tile * block.wide, pad = from.padding_w;
    const auto at = [&](const T* source, int64_t x) { return x - pad < from.width ? source[x - pad] : T(0); };
    const int64_t body = std::clamp<int64_t>(from.width, 0, length - pad);
    int64_t line = 0;
    for (int64_t group = 0; group < groups; ++group) {
        const int64_t y = (block.rows.begin + group) * tile + row - from.padding_h;
        for (int64_t n = block.images.begin; n < block.images.end; ++n, ++line, to += length) {
            if (y < 0 || y >= from.height) {
                std::fill_n(to, length, T(0));
                if (next) next[line] = second[line] = 0;
                continue;
            }
            const T* source = from.line(n, y);
            std::fill_n(to, pad, T(0));
            std::memcpy(to + pad, source, static_cast<std::size_t>(body) * sizeof(T));
            std::fill_n(to + pad + body, length - pad - body, T(0));
            if (!next) continue;
            next[line] = at(source, length);
            second[line] = at(source, length + 1);
        }
    }
}

// Every fourth number into a line of its own.
template <typename T>
void deal(const T* __restrict from, T* __restrict first, T* __restrict second, T* __restrict third,
          T* __restrict fourth, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        first[i] = from[4 * i];
        second[i] = from[4 * i + 1];
        third[i] = from[4 * i + 2];
        fourth[i] = from[4 * i + 3];
    }
}
template <typename T>
void collect(const T* __restrict first, const T* __restrict second, const T* __restrict third,
             const T* __restrict fourth, T* __restrict to, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        to[4 * i] = first[i];
        to[4 * i + 1] = second[i];
        to[4 * i + 2] = third[i];
        to[4 * i + 3] = fourth[i];
    }
}

// B' x B of all tiles of a block.
template <typename T>
void gather_inputs(const Channel<const T>& from, const Block& block, const Workshop<T>& work, T* to,
                   int64_t step) {
    using Register = typename Lanes<T>::Register;
    const int64_t tiles = block.tiles(), below = block.n_images() * block.wide;
    for (int64_t row = 0; row < tile; ++row) {
        // Of the row of tiles below the last one, the first two image rows are within reach.
        const int64_t groups = block.n_rows() + (row < reach - tile ? 1 : 0);
        const int64_t lines = groups * block.n_images(), count = lines * block.wide;
        copy_lines(from, block, groups, row, work.lines(), work.ends(0), work.ends(1));
        deal(work.lines(), work.place(row, 0), work.place(row, 1), work.place(row, 2), work.place(row, 3),
             count);
        for (int64_t i = 0; i < 2; ++i) {
            T* const next = work.place(row, tile + i);
            std::memcpy(next, work.place(row, i) + 1, static_cast<std::size_t>(count - 1) * sizeof(T));
            for (int64_t line = 0; line < lines; ++line)
                next[(line + 1) * block.wide - 1] = work.ends(i)[line];
        }
    }
    for (int64_t p = 0; p < tiles; p += Lanes<T>::count) {
        Register x[products], made[products];
        for (int64_t row = 0; row < reach; ++row)
            for (int64_t column = 0; column < reach; ++column)
                x[row * reach + column] =
                    Lanes<T>::load(work.place(row % tile, column) + p + (row < tile ? 0 : below));
        transform_tile<6, 6>(x, made, [](const Line<Register, 6>& line) { return transform_input<T>(line); });
        for (int64_t k = 0; k < products; ++k) Lanes<T>::store(to + k * step + p, made[k]);
    }
}

// A y A' of all tiles of a block: of the gradient of a channel of outputs.
template <typename T>
void gather_output_gradients(const Channel<const T>& from, const Block& block, const Workshop<T>& work, T* to,
                             int64_t step) {
    using Register = typename Lanes<T>::Register;
    const int64_t tiles = block.tiles();
    for (int64_t row = 0; row < tile; ++row) {
        copy_lines<T>(from, block, block.n_rows(), row, work.lines(), nullptr, nullptr);
        deal(work.lines(), work.place(row, 0), work.place(row, 1), work.place(row, 2), work.place(row, 3),
             tiles);
    }
    for (int64_t p = 0; p < tiles; p += Lanes<T>::count) {
        Register y[tile * tile], made[products];
        for (int64_t row = 0; row < tile; ++row)
            for (int64_t column = 0; column < tile; ++column)
                y[row * tile + column] = Lanes<T>::load(work.place(row, column) + p);
        transform_tile<4, 6>(
            y, made, [](const Line<Register, 4>& line) { return transform_output_gradient<T>(line); });
        for (int64_t k = 0; k < products; ++k) Lanes<T>::store(to + k * step + p, made[k]);
    }
}

// A' m A of all tiles of a block, into the images: plus `bias`, or (`add`) to what is there.
template <typename T>
void scatter_outputs(const T* from, int64_t step, const Block& block, const Workshop<T>& work, T bias,
                     bool add, const Channel<T>& to) {
    using Register = typename Lanes<T>::Register;
    const int64_t tiles = block.tiles();
    for (int64_t p = 0; p < tiles; p += Lanes<T>::count) {
        Register m[products], y[tile * tile];
        for (int64_t k = 0; k < products; ++k) m[k] = Lanes<T>::load(from + k * step + p);
        transform_tile<6, 4>(m, y, [](const Line<Register, 6>& line) { return transform_back<T>(line); });
        for (int64_t row = 0; row < tile; ++row)
            for (int64_t column = 0; column < tile; ++column)
                Lanes<T>::store(work.place(row, column) + p, y[row * tile + column] + bias);
    }
    for (int64_t row = 0; row < tile; ++row) {
        collect(work.place(row, 0), work.place(row, 1), work.place(row, 2), work.place(row, 3), work.lines(),
                tiles);
        const T* line = work.lines();
        for (int64_t group = block.rows.begin; group < block.rows.end; ++group) {
            const int64_t y = group * tile + row;
            if (y >= to.height) break;
            for (int64_t n = block.images.begin; n < block.images.end; ++n, line += tile * block.wide) {
                T* const image = to.line(n, y);
                if (add) {
                    for (int64_t x = 0; x < to.width; ++x) image[x] += line[x];
                } else {
                    std::memcpy(image, line, static_cast<std::size_t>(to.width) * sizeof(T));
                }
            }
        }
    }
}

}  // namespace timetrial::layers::winograd
