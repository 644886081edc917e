// im2col and its transpose, for images in C x N x H x W.
//
// Row k = (channel, kernel row, kernel column) of the columns holds, for each output position of a block of
// images, the input value that weight k meets there (Chellapilla et al. 2006; Caffe's im2col). Rows of an
// output line are contiguous in both when the stride is 1: whole lines are copied.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "layers/layer.h"

namespace timetrial::layers {

struct Window {
    int64_t kernel_h, kernel_w, stride_h, stride_w, padding_h, padding_w;
    int64_t dilation_h = 1, dilation_w = 1;

    // Where the last tap of a kernel lies behind its first.
    int64_t reach_h() const { return (kernel_h - 1) * dilation_h; }
    int64_t reach_w() const { return (kernel_w - 1) * dilation_w; }
    // Without padding, at any side, and with stride 1 along the lines.
    bool fills_lines(int64_t height, int64_t width, int64_t out_height, int64_t out_width) const {
        return stride_w == 1 && padding_h == 0 && padding_w == 0 &&
               (out_height - 1) * stride_h + reach_h() < height && out_width - 1 + reach_w() < width;
    }
};

// What is gathered at a time: whole images, or some output rows of one.
struct Tile {
    Share images;
    Share rows;
    // Of its output, in every channel: one contiguous run, since several images come with all their rows.
    int64_t first(const Shape& out) const { return images.begin * out.plane() + rows.begin * out.width; }
    int64_t positions(const Shape& out) const {
        return (images.end - images.begin) * (rows.end - rows.begin) * out.width;
    }
};

namespace detail {

// Compilers turn a copy of a known length into one or two moves; a call of memcpy for eight floats costs more
// than the floats.
template <typename T, int64_t N>
inline void copy_line(T* __restrict to, const T* __restrict from) {
    std::memcpy(to, from, N * sizeof(T));
}

template <typename T, int64_t N>
inline void add_line(T* __restrict to, const T* __restrict from) {
    for (int64_t i = 0; i < N; ++i) to[i] += from[i];
}

// Calls f with the width as a constant where it is a common one, so that the line loops above unroll.
template <typename F>
inline void with_width(int64_t width, F&& f) {
    switch (width) {
        case 4:
            return f(std::integral_constant<int64_t, 4>{});
        case 6:
            return f(std::integral_constant<int64_t, 6>{});
        case 8:
            return f(std::integral_constant<int64_t, 8>{});
        case 10:
            return f(std::integral_constant<int64_t, 10>{});
        case 12:
            return f(std::integral_constant<int64_t, 12>{});
        case 14:
            return f(std::integral_constant<int64_t, 14>{});
        case 16:
            return f(std::integral_constant<int64_t, 16>{});
        case 24:
            return f(std::integral_constant<int64_t, 24>{});
        case 28:
            return f(std::integral_constant<int64_t, 28>{});
        case 30:
            return f(std::integral_constant<int64_t, 30>{});
        case 32:
            return f(std::integral_constant<int64_t, 32>{});
        default:
            return f(std::integral_constant<int64_t, 0>{});
    }
}

// The output columns [begin, end) whose input column lies inside the image, for one kernel column.
inline Share inside(int64_t outputs, int64_t inputs, int64_t stride, int64_t offset) {
    const int64_t begin = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
    const int64_t end = offset >= inputs ? 0 : std::min(outputs, (inputs - 1 - offset) / stride + 1);
    return {std::min(begin, outputs), std::max(end, std::min(begin, outputs))};
}

// Visits every (row k, image, output line) of a tile: f(column line, input line or null, span, how
// far to the right the tap is).
template <typename T, typename F>
inline void for_each_line(const Shape& in, const Shape& out, const Window& w, T* input, T* columns,
                          const Tile& tile, F&& f) {
    const int64_t count = tile.positions(out);
    T* row = columns;
    for (int64_t c = 0; c < in.channels; ++c) {
        for (int64_t kh = 0; kh < w.kernel_h; ++kh) {
            for (int64_t kw = 0; kw < w.kernel_w; ++kw, row += count) {
                const int64_t right = kw * w.dilation_w - w.padding_w;
                const Share span = inside(out.width, in.width, w.stride_w, right);
                T* line = row;
                for (int64_t n = tile.images.begin; n < tile.images.end; ++n) {
                    T* image = input + (c * in.batch + n) * in.plane();
                    for (int64_t oh = tile.rows.begin; oh < tile.rows.end; ++oh, line += out.width) {
                        const int64_t ih = oh * w.stride_h + kh * w.dilation_h - w.padding_h;
                        const bool visible = ih >= 0 && ih < in.height;
                        f(line, visible ? image + ih * in.width : nullptr, span, right);
                    }
                }
            }
        }
    }
}

// The same without padding and with stride 1 along the lines: f(column line, input line), nothing to ask.
template <typename T, typename F>
inline void for_each_full_line(const Shape& in, const Shape& out, const Window& w, T* input, T* columns,
                               const Tile& tile, F&& f) {
    const int64_t step = w.stride_h * in.width;
    T* line = columns;
    for (int64_t c = 0; c < in.channels; ++c) {
        for (int64_t kh = 0; kh < w.kernel_h; ++kh) {
            for (int64_t kw = 0; kw < w.kernel_w; ++kw) {
                T* image = input + (c * in.batch + tile.images.begin) * in.plane() + tile.rows.begin * step +
                           kh * w.dilation_h * in.width + kw * w.dilation_w;
                for (int64_t n = tile.images.begin; n < tile.images.end; ++n, image += in.plane()) {
                    T* seen = image;
                    for (int64_t oh = tile.rows.begin; oh < tile.rows.end; ++oh) {
                        f(line, seen);
                        line += out.width, seen += step;
                    }
                }
            }
        }
    }
}

}  // namespace detail

template <typename T>
void gather_columns(const Shape& in, const Shape& out, const Window& w, const T* input, T* columns,
                    const Tile& tile) {
    T* source = const_cast<T*>(input);  // read only below; the visitor serves both directions
    if (w.fills_lines(in.height, in.width, out.height, out.width)) {
        detail::with_width(out.width, [&](auto width) {
            detail::for_each_full_line(in, out, w, source, columns, tile, [&](T* line, const T* from) {
                if constexpr (width.value > 0) {
                    detail::copy_line<T, width.value>(line, from);
                } else {
                    std::memcpy(line, from, static_cast<size_t>(out.width) * sizeof(T));
                }
            });
        });
        return;
    }
    detail::for_each_line(
        in, out, w, source, columns, tile, [&](T* line, T* from, Share span, int64_t right) {
            if (!from) return std::fill_n(line, out.width, T(0)), void();
            std::fill_n(line, span.begin, T(0));
            if (w.stride_w == 1) {
                std::copy(from + span.begin + right, from + span.end + right, line + span.begin);
            } else {
                for (int64_t ow = span.begin; ow < span.end; ++ow) line[ow] = from[ow * w.stride_w + right];
            }
            std::fill(line + span.end, line + out.width, T(0));
        });
}

// The transpose: adds every column to the input position it was gathered from.
template <typename T>
void scatter_columns(const Shape& in, const Shape& out, const Window& w, T* input, T* columns,
                     const Tile& tile) {
    if (w.fills_lines(in.height, in.width, out.height, out.width)) {
        detail::with_width(out.width, [&](auto width) {
            detail::for_each_full_line(in, out, w, input, columns, tile, [&](const T* line, T* to) {
                if constexpr (width.value > 0) {
                    detail::add_line<T, width.value>(to, line);
                } else {
                    for (int64_t ow = 0; ow < out.width; ++ow) to[ow] += line[ow];
                }
            });
        });
        return;
    }
    detail::for_each_line(in, out, w, input, columns, tile, [&](T* line, T* to, Share span, int64_t right) {
        if (!to) return;
        for (int64_t ow = span.begin; ow < span.end; ++ow) to[ow * w.stride_w + right] += line[ow];
    });
}

}  // namespace timetrial::layers
