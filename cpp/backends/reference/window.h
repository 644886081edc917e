// A window that slides over an image: what convolution and pooling share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "timetrial/backend.hpp"

namespace timetrial::reference {

struct Window {
    int64_t kernel_h, kernel_w, stride_h, stride_w, padding_h, padding_w;

    explicit Window(const Attributes& of)
        : kernel_h(of.integer("kernel_h")),
          kernel_w(of.integer("kernel_w")),
          stride_h(of.integer("stride_h")),
          stride_w(of.integer("stride_w")),
          padding_h(of.integer("padding_h", 0)),
          padding_w(of.integer("padding_w", 0)) {}
};

// The output positions whose input position (output * stride + shift) lies inside the image: the rest
// would read padding.
struct Span {
    int64_t begin;
    int64_t end;

    Span(int64_t outputs, int64_t inputs, int64_t stride, int64_t shift) {
        begin = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
        end = shift >= inputs ? 0 : std::min(outputs, (inputs - 1 - shift) / stride + 1);
    }
};

// One output plane over one input plane, tap by tap. Calls row(tap, x, y, count) for each output row that a
// tap of the kernel reaches: output y + i meets input x + i * stride_w, for i < count. Offsets are within
// the planes; tap counts row by row through the kernel. The innermost loop is the caller's: long, without
// conditions.
template <class Row>
void slide(const Window& w, int64_t in_h, int64_t in_w, int64_t out_h, int64_t out_w, Row&& row) {
    for (int64_t kh = 0; kh < w.kernel_h; ++kh) {
        for (int64_t kw = 0; kw < w.kernel_w; ++kw) {
            const Span rows(out_h, in_h, w.stride_h, kh - w.padding_h);
            const Span columns(out_w, in_w, w.stride_w, kw - w.padding_w);
            if (columns.begin >= columns.end) continue;
            for (int64_t oh = rows.begin; oh < rows.end; ++oh) {
                const int64_t ih = oh * w.stride_h + kh - w.padding_h;
                const int64_t iw = columns.begin * w.stride_w + kw - w.padding_w;
                row(kh * w.kernel_w + kw, ih * in_w + iw, oh * out_w + columns.begin,
                    columns.end - columns.begin);
            }
        }
    }
}

}  // namespace timetrial::reference
