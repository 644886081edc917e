// Images unfolded for a convolution, channels last: a row for each output position, with the input values
// that the taps of the kernel meet there, tap by tap and channel by channel (im2col; Chellapilla et al.
// 2006).
#pragma once

#include <algorithm>
#include <cstdint>

namespace timetrial::onednn {

struct Unfolding {
    struct Pair {
        std::int64_t h, w;
    };
    std::int64_t images, channels;
    Pair source, kernel, output;
    Pair stride, dilation, padding;  // of a dilation of 1 taps are neighbors; padding before the first line

    std::int64_t row() const { return kernel.h * kernel.w * channels; }  // values
    // Lines of output positions of all images; rows of one follow each other.
    std::int64_t lines() const { return images * output.h; }

    // Whether the images are their own unfolding.
    bool is_as_it_lies() const {
        return kernel.h * kernel.w == 1 && stride.h == 1 && stride.w == 1 && padding.h == 0 &&
               padding.w == 0 && output.h == source.h && output.w == source.w;
    }

    // The rows of `count` lines from `first` on.
    void unfold(const float* from, std::int64_t first, std::int64_t count, float* rows) const {
#pragma omp parallel for schedule(static)
        for (std::int64_t line = first; line < first + count; ++line)
            unfold_line(from + line / output.h * source.h * source.w * channels, line % output.h,
                        rows + (line - first) * output.w * row());
    }

  private:
    void unfold_line(const float* image, std::int64_t y, float* to) const {
        for (std::int64_t x = 0; x < output.w; ++x) {
            for (std::int64_t kh = 0; kh < kernel.h; ++kh) {
                const std::int64_t line = y * stride.h - padding.h + kh * dilation.h;
                for (std::int64_t kw = 0; kw < kernel.w; ++kw, to += channels) {
                    const std::int64_t place = x * stride.w - padding.w + kw * dilation.w;
                    if (line < 0 || line >= source.h || place < 0 || place >= source.w)
                        std::fill_n(to, channels, 0.0f);
                    else
                        std::copy_n(image + (line * source.w + place) * channels, channels, to);
                }
            }
        }
    }
};

}  // namespace timetrial::onednn
