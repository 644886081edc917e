// A window that slides over an image: what convolution and pooling share. Padding behind the image shows in
// the number of outputs only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tensor.h"

namespace timetrial::reference {

struct Window {
    int64_t kernel_h, kernel_w, stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w;

    explicit Window(const Attributes& of)
        : kernel_h(of.integer("kernel_h")),
          kernel_w(of.integer("kernel_w")),
          stride_h(of.integer("stride_h")),
          stride_w(of.integer("stride_w")),
          padding_h(of.integer("padding_h", 0)),
          padding_w(of.integer("padding_w", 0)),
          dilation_h(of.integer("dilation_h", 1)),
          dilation_w(of.integer("dilation_w", 1)) {}

    std::size_t taps() const { return static_cast<std::size_t>(kernel_h * kernel_w); }
    // From one output of a row to the next, its input moves so far.
    std::size_t step() const { return static_cast<std::size_t>(stride_w); }
};

// The outputs that a tap of the kernel reaches in one row: output y + i meets input x + i * step, for i <
// count. Places are within the planes.
struct Reach {
    std::size_t x, y, count;
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

// One plane of y (N x C x H x W) over one of x, tap by tap: calls row(tap, reach) for each output row that a
// tap reaches. Taps count row by row through the kernel. The innermost loop is the caller's: long, without
// conditions.
template <class Each>
void slide(const Window& w, const Tensor& x, const Tensor& y, Each&& row) {
    const int64_t in_h = x.shape[2], in_w = x.shape[3], out_h = y.shape[2], out_w = y.shape[3];
    for (int64_t kh = 0; kh < w.kernel_h; ++kh) {
        for (int64_t kw = 0; kw < w.kernel_w; ++kw) {
            const int64_t down = kh * w.dilation_h - w.padding_h, right = kw * w.dilation_w - w.padding_w;
            const Span rows(out_h, in_h, w.stride_h, down);
            const Span columns(out_w, in_w, w.stride_w, right);
            if (columns.begin >= columns.end) continue;
            for (int64_t oh = rows.begin; oh < rows.end; ++oh) {
                const int64_t ih = oh * w.stride_h + down, iw = columns.begin * w.stride_w + right;
                row(static_cast<std::size_t>(kh * w.kernel_w + kw),
                    Reach{static_cast<std::size_t>(ih * in_w + iw),
                          static_cast<std::size_t>(oh * out_w + columns.begin),
                          static_cast<std::size_t>(columns.end - columns.begin)});
            }
        }
    }
}

}  // namespace timetrial::reference
