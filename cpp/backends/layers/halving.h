// Max pooling with a 2 x 2 window and stride 2: the usual case, in two passes that compilers turn into vector
// code although an output line is short. First the rows of a pair are compared, line by line; then neighbors,
// over many lines at once. A last odd column, like a last odd row, belongs to no window.
#pragma once

#include <cstdint>
#include <type_traits>

#include "layers/columns.h"
#include "layers/layer.h"

namespace timetrial::layers {

// A winner is its place in the window: 0 and 1 above, 2 and 3 below. As wide as T, so that vectors of both
// have the same number of lanes.
template <typename T>
using Place = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

template <typename T>
class Halving {
  public:
    static bool fits(const Window& w, const Shape& in) {
        return w.kernel_h == 2 && w.kernel_w == 2 && w.stride_h == 2 && w.stride_w == 2 && w.padding_h == 0 &&
               w.padding_w == 0 && in.width <= room;
    }

    // One plane, of any height: y and winner from x.
    static void forward(const Shape& in, const Shape& out, const T* x, T* y, Place<T>* winner) {
        T best[room];
        Place<T> below[room];
        const int64_t used = 2 * out.width, lines = room / used;
        for (int64_t oh = 0; oh < out.height; oh += lines) {
            const int64_t count = std::min(lines, out.height - oh);
            detail::with_width(used, [&](auto width) {
                for (int64_t line = 0; line < count; ++line) {
                    const T* upper = x + 2 * (oh + line) * in.width;
                    compare_rows<width.value>(upper, upper + in.width, used, best + line * used,
                                              below + line * used);
                }
            });
            compare_neighbors(count * out.width, best, below, y + oh * out.width, winner + oh * out.width);
        }
    }

    // One plane: every value of dx that a window covers is written (`add`: added to).
    static void backward(const Shape& in, const Shape& out, const T* dy, const Place<T>* winner, T* dx,
                         bool add) {
        T gradient[room];
        Place<T> place[room];
        const int64_t used = 2 * out.width, lines = room / used;
        for (int64_t oh = 0; oh < out.height; oh += lines) {
            const int64_t count = std::min(lines, out.height - oh);
            spread(count * out.width, dy + oh * out.width, winner + oh * out.width, gradient, place);
            detail::with_width(used, [&](auto width) {
                for (int64_t line = 0; line < count; ++line) {
                    T *upper = dx + 2 * (oh + line) * in.width, *lower = upper + in.width;
                    const T* g = gradient + line * used;
                    const Place<T>* p = place + line * used;
                    if (add) {
                        give<width.value, true>(g, p, used, upper, lower);
                    } else {
                        give<width.value, false>(g, p, used, upper, lower);
                        if (used < in.width) upper[used] = lower[used] = 0;
                    }
                }
            });
        }
    }

  private:
    static constexpr int64_t room = 1024;

    template <int64_t W>
    static void compare_rows(const T* __restrict upper, const T* __restrict lower, int64_t width,
                             T* __restrict best, Place<T>* __restrict below) {
#pragma GCC \
    unroll 1  // a loop of eight would otherwise be unrolled to scalars before anyone thinks of vectors
        for (int64_t j = 0; j < (W > 0 ? W : width); ++j) {
            below[j] = lower[j] > upper[j] ? 2 : 0;
            best[j] = lower[j] > upper[j] ? lower[j] : upper[j];
        }
    }

    // Of equal values the first in row-major order wins: the right one only if it is above and the left one
    // below.
    static void compare_neighbors(int64_t count, const T* __restrict best, const Place<T>* __restrict below,
                                  T* __restrict y, Place<T>* __restrict winner) {
        for (int64_t i = 0; i < count; ++i) {
            const T left = best[2 * i], right = best[2 * i + 1];
            const Place<T> left_place = below[2 * i], right_place = below[2 * i + 1] + 1;
            const bool take_right = (right > left) | ((right == left) & (right_place < left_place));
            y[i] = take_right ? right : left;
            winner[i] = take_right ? right_place : left_place;
        }
    }

    // Each value twice, with the place that would make it that of its column: 0 above, 2 below, else neither.
    static void spread(int64_t count, const T* __restrict dy, const Place<T>* __restrict winner,
                       T* __restrict gradient, Place<T>* __restrict place) {
        for (int64_t i = 0; i < count; ++i) {
            gradient[2 * i] = dy[i];
            gradient[2 * i + 1] = dy[i];
            place[2 * i] = winner[i];
            place[2 * i + 1] = winner[i] - 1;
        }
    }

    template <int64_t W, bool Add>
    static void give(const T* __restrict gradient, const Place<T>* __restrict place, int64_t width,
                     T* __restrict upper, T* __restrict lower) {
#pragma GCC \
    unroll 1  // a loop of eight would otherwise be unrolled to scalars before anyone thinks of vectors
        for (int64_t j = 0; j < (W > 0 ? W : width); ++j) {
            const T above = place[j] == 0 ? gradient[j] : T(0), beneath = place[j] == 2 ? gradient[j] : T(0);
            upper[j] = Add ? upper[j] + above : above;
            lower[j] = Add ? lower[j] + beneath : beneath;
        }
    }
};

}  // namespace timetrial::layers
