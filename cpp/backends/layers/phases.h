// A plane in the order in which a strided window reads it: padded, and taken apart into its phases. Phase
// (p, q) holds the values whose row is p and whose column is q modulo the stride. What a tap of the kernel
// meets at all places of the window is then one run of memory: the outputs of a plane, each line as wide as
// those of a phase, beside the same number of values behind the tap's offset.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "layers/columns.h"
#include "layers/layer.h"

namespace timetrial::layers {

class Phases {
  public:
    Phases() = default;
    // `unit`: the size of a phase is a multiple of it.
    Phases(const Window& window, const Shape& in, const Shape& out, int64_t unit)
        : w_(window), in_(in), out_(out) {
        lines_ = out.height + w_.reach_h() / w_.stride_h;
        pitch_ = out.width + w_.reach_w() / w_.stride_w;
        phase_size_ = (lines_ * pitch_ + unit - 1) / unit * unit;
        is_read_.assign(static_cast<std::size_t>(w_.stride_h * w_.stride_w), false);
        for (int64_t kh = 0; kh < w_.kernel_h; ++kh) {
            for (int64_t kw = 0; kw < w_.kernel_w; ++kw) {
                const int64_t down = kh * w_.dilation_h, right = kw * w_.dilation_w;
                const int64_t phase = down % w_.stride_h * w_.stride_w + right % w_.stride_w;
                is_read_[static_cast<std::size_t>(phase)] = true;
                taps_.push_back({phase, down / w_.stride_h * pitch_ + right / w_.stride_w});
            }
        }
    }

    struct Tap {
        int64_t phase;
        int64_t offset;  // within it
    };
    const std::vector<Tap>& taps() const { return taps_; }

    int64_t phase_size() const { return phase_size_; }
    int64_t size() const { return w_.stride_h * w_.stride_w * phase_size(); }
    // From the first output of a plane to its last, with what lies between the lines.
    int64_t run() const { return (out_.height - 1) * pitch_ + out_.width; }

    // phases <- plane
    template <typename T>
    void take_apart(const T* plane, T* phases) const {
        for_each_line(
            [&](int64_t row, int64_t column, T* line) {
                if (row < 0 || row >= in_.height) return std::fill_n(line, pitch_, T(0)), void();
                const Share span = inside(column);
                std::fill_n(line, span.begin, T(0));
                const T* from = plane + row * in_.width + column;
                if (w_.stride_w == 1) {
                    std::copy(from + span.begin, from + span.end, line + span.begin);
                } else {
                    for (int64_t i = span.begin; i < span.end; ++i) line[i] = from[i * w_.stride_w];
                }
                std::fill(line + span.end, line + pitch_, T(0));
            },
            phases);
    }

    // plane += phases
    template <typename T>
    void put_together(T* phases, T* plane) const {
        for_each_line(
            [&](int64_t row, int64_t column, const T* line) {
                if (row < 0 || row >= in_.height) return;
                const Share span = inside(column);
                T* to = plane + row * in_.width + column;
                for (int64_t i = span.begin; i < span.end; ++i) to[i * w_.stride_w] += line[i];
            },
            phases);
    }

    // The outputs of a plane, as many lines of `pitch`; between them are zeros.
    template <typename T>
    void spread_outputs(const T* y, T* wide) const {
        for (int64_t line = 0; line < out_.height; ++line) {
            std::copy_n(y + line * out_.width, out_.width, wide + line * pitch_);
            if (line + 1 < out_.height)
                std::fill_n(wide + line * pitch_ + out_.width, pitch_ - out_.width, T(0));
        }
    }
    template <typename T>
    void gather_outputs(const T* wide, T* y) const {
        for (int64_t line = 0; line < out_.height; ++line)
            std::copy_n(wide + line * pitch_, out_.width, y + line * out_.width);
    }

  private:
    // The places of a phase's line, whose first is that column of the plane, that lie in the plane.
    Share inside(int64_t column) const { return detail::inside(pitch_, in_.width, w_.stride_w, column); }

    // f(row of the plane, column where the line begins, line) of every phase that is read
    template <typename T, typename F>
    void for_each_line(F&& f, T* phases) const {
        for (int64_t phase = 0; phase < w_.stride_h * w_.stride_w; ++phase) {
            if (!is_read_[static_cast<std::size_t>(phase)]) continue;
            T* line = phases + phase * phase_size();
            const int64_t column = phase % w_.stride_w - w_.padding_w;
            for (int64_t i = 0; i < lines_; ++i, line += pitch_)
                f(i * w_.stride_h + phase / w_.stride_w - w_.padding_h, column, line);
        }
    }

    Window w_{};
    Shape in_, out_;
    int64_t lines_ = 0, pitch_ = 0, phase_size_ = 0;
    std::vector<bool> is_read_;  // by a tap, of each phase
    std::vector<Tap> taps_;
};

}  // namespace timetrial::layers
