// Convolution with a 3 x 3 kernel and stride 1 by Winograd's minimal filtering: a quarter of the
// multiplications of im2col, as 36 matrix products over the channels, and the transforms around them
// (winograd_matrices.h, winograd_tiles.h).
#pragma once

#include <algorithm>

#include "layers/caches.h"
#include "layers/product.h"
#include "layers/winograd_tiles.h"

namespace timetrial::layers::winograd {

// Tiles at a time: what belongs to them lies in the second-level cache, but never so few that the products
// get slow.
inline int64_t tiles_at_a_time(int64_t channels, int64_t bytes) {
    return std::clamp<int64_t>(l2_bytes() / (products * channels * bytes), 64, 256);
}

// 36 matrices, one for each place in a transformed tile.
template <typename T>
class Stack {
  public:
    Stack(Cutter<T>& cutter, int64_t rows, int64_t columns)
        : rows_(rows),
          line_(Lanes<T>::round_up(columns)),
          step_(rows * line_ + 16),
          values_(cutter.cut(step_ * products)) {}

    T* row(int64_t number) const { return values_ + number * line_; }
    // From matrix to matrix; uneven, so that they do not all fall into the same lines of the cache.
    int64_t step() const { return step_; }
    // The first `columns` of matrix k.
    Matrix<T> factor(int64_t k, int64_t columns) const {
        return matrix(values_ + k * step_, rows_, columns, line_);
    }
    Matrix<const T> read(int64_t k, int64_t columns) const {
        return matrix<const T>(values_ + k * step_, rows_, columns, line_);
    }
    void zero() const { std::fill_n(values_, step_ * products, T(0)); }

  private:
    int64_t rows_, line_, step_;
    T* values_;
};

// Padding above and to the left.
struct Padding {
    int64_t h, w;
};

// The convolution itself, or (`is_gradient`) the gradient of its input, which is one too: of the gradient of
// the output, with the kernel turned by half a turn, and as much padding as is needed to give the input's
// extents.
template <typename T, typename Product>
class Filtering {
  public:
    // `input`, `output`: of the convolution.
    Filtering(const Shape& input, const Shape& output, Padding padding, bool is_gradient)
        : from_(is_gradient ? output : input),
          to_(is_gradient ? input : output),
          padding_(is_gradient ? Padding{2 - padding.h, 2 - padding.w} : padding),
          is_gradient_(is_gradient),
          tiling_(to_, tiles_at_a_time(from_.channels + to_.channels, sizeof(T))) {}

    // Numbers of T that run() needs.
    int64_t room() const {
        Cutter<T> counter(nullptr);
        Parts(counter, *this);
        return counter.taken();
    }

    // `weights`: output channels x input channels x 3 x 3. `bias`: of each channel made, or null. `add`: to
    // what is there.
    void run(const T* weights, const T* from, T* to, const T* bias, bool add, Share images, T* memory) const {
        Cutter<T> cutter(memory);
        const Parts parts(cutter, *this);
        transform_filters(weights, parts.filters);
        tiling_.for_each_block(images, [&](const Block& block) {
            const int64_t tiles = block.tiles();
            for (int64_t c = 0; c < from_.channels; ++c)
                gather_inputs<T>(channel(from, from_, c), block, parts.work, parts.inputs.row(c),
                                 parts.inputs.step());
            for (int64_t k = 0; k < products; ++k) {
                const Matrix<const T> filter = parts.filters.read(k, outside_input());
                Product::template multiply<T>(is_gradient_ ? !filter : filter, parts.inputs.read(k, tiles),
                                              parts.outputs.factor(k, tiles), false);
            }
            for (int64_t c = 0; c < to_.channels; ++c)
                scatter_outputs<T>(parts.outputs.row(c), parts.outputs.step(), block, parts.work,
                                   bias ? bias[c] : T(0), add, channel(to, to_, c));
        });
    }

  private:
    struct Parts {
        Parts(Cutter<T>& cutter, const Filtering& of)
            : work(cutter, of.tiling_.most_values()),
              filters(cutter, of.is_gradient_ ? of.from_.channels : of.to_.channels, of.outside_input()),
              inputs(cutter, of.from_.channels, of.tiling_.most_tiles()),
              outputs(cutter, of.to_.channels, of.tiling_.most_tiles()) {}
        Workshop<T> work;
        Stack<T> filters;  // output channels x input channels, of the convolution
        Stack<T> inputs, outputs;
    };

    int64_t outside_input() const { return is_gradient_ ? to_.channels : from_.channels; }

    template <typename P>
    Channel<P> channel(P* data, const Shape& shape, int64_t c) const {
        return {data + c * shape.batch * shape.plane(), shape.height, shape.width, padding_.h, padding_.w};
    }

    // G g G', some filters side by side.
    void transform_filters(const T* weights, const Stack<T>& filters) const {
        using Register = typename Lanes<T>::Register;
        const int64_t inputs = outside_input(), outputs = is_gradient_ ? from_.channels : to_.channels;
        T taps[9][Lanes<T>::count] = {};
        for (int64_t o = 0; o < outputs; ++o) {
            for (int64_t c = 0; c < inputs; c += Lanes<T>::count) {
                const T* some = weights + (o * inputs + c) * 9;
                for (int64_t i = 0; i < std::min(Lanes<T>::count, inputs - c); ++i)
                    for (int64_t tap = 0; tap < 9; ++tap)
                        taps[is_gradient_ ? 8 - tap : tap][i] = some[i * 9 + tap];
                Register g[9], made[products];
                for (int64_t tap = 0; tap < 9; ++tap) g[tap] = Lanes<T>::load(taps[tap]);
                transform_tile<3, 6>(g, made,
                                     [](const Line<Register, 3>& line) { return transform_filter<T>(line); });
                for (int64_t k = 0; k < products; ++k)
                    Lanes<T>::store(filters.row(o) + c + k * filters.step(), made[k]);
            }
        }
    }

    const Shape from_, to_;
    const Padding padding_;
    const bool is_gradient_;
    const Tiling tiling_;
};

// The gradient of the weights: sums over the tiles, in the transformed space until the last.
template <typename T, typename Product>
class FilterGradient {
  public:
    FilterGradient(const Shape& input, const Shape& output, Padding padding)
        : input_(input),
          output_(output),
          padding_(padding),
          tiling_(output, tiles_at_a_time(input.channels + output.channels, sizeof(T))) {}

    // Numbers of T that run() needs.
    int64_t room() const {
        Cutter<T> counter(nullptr);
        Parts(counter, *this);
        return counter.taken();
    }

    // `gradient`: taps (input channel, kernel row, kernel column) x output channels.
    void run(const T* from, const T* output_gradient, T* gradient, Share images, T* memory) const {
        Cutter<T> cutter(memory);
        const Parts parts(cutter, *this);
        parts.sums.zero();
        tiling_.for_each_block(images, [&](const Block& block) {
            for (int64_t c = 0; c < input_.channels; ++c)
                gather_inputs<T>({from + c * input_.batch * input_.plane(), input_.height, input_.width,
                                  padding_.h, padding_.w},
                                 block, parts.work, parts.inputs.row(c), parts.inputs.step());
            for (int64_t c = 0; c < output_.channels; ++c)
                gather_output_gradients<T>({output_gradient + c * output_.batch * output_.plane(),
                                            output_.height, output_.width, 0, 0},
                                           block, parts.work, parts.outputs.row(c), parts.outputs.step());
            for (int64_t k = 0; k < products; ++k)
                Product::template multiply<T>(parts.inputs.read(k, block.tiles()),
                                              !parts.outputs.read(k, block.tiles()),
                                              parts.sums.factor(k, output_.channels), true);
        });
        transform_sums(parts.sums, gradient);
    }

  private:
    struct Parts {
        Parts(Cutter<T>& cutter, const FilterGradient& of)
            : work(cutter, of.tiling_.most_values()),
              inputs(cutter, of.input_.channels, of.tiling_.most_tiles()),
              outputs(cutter, of.output_.channels, of.tiling_.most_tiles()),
              sums(cutter, of.input_.channels, of.output_.channels) {}
        Workshop<T> work;
        Stack<T> inputs, outputs;
        Stack<T> sums;  // input channels x output channels
    };

    // G' u G, some filters side by side.
    void transform_sums(const Stack<T>& sums, T* gradient) const {
        using Register = typename Lanes<T>::Register;
        const int64_t outputs = output_.channels;
        for (int64_t c = 0; c < input_.channels; ++c) {
            for (int64_t o = 0; o < outputs; o += Lanes<T>::count) {
                Register u[products], made[9];
                for (int64_t k = 0; k < products; ++k)
                    u[k] = Lanes<T>::load(sums.row(c) + o + k * sums.step());
                transform_tile<6, 3>(u, made, [](const Line<Register, 6>& line) {
                    return transform_filter_gradient<T>(line);
                });
                for (int64_t tap = 0; tap < 9; ++tap) {
                    T values[Lanes<T>::count];
                    Lanes<T>::store(values, made[tap]);
                    std::copy_n(values, std::min(Lanes<T>::count, outputs - o),
                                gradient + (c * 9 + tap) * outputs + o);
                }
            }
        }
    }

    const Shape input_, output_;
    const Padding padding_;
    const Tiling tiling_;
};

}  // namespace timetrial::layers::winograd
