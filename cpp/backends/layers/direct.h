// Convolution with stride 1 without columns: each tap of the kernel reads the padded image at its own
// distance.
//
// An image with its padding lies in memory line behind line. An output at position q of it is a sum over the
// taps of weight x image[q + distance of the tap]: the same for every q, so a register holds neighboring
// outputs, whatever the extents. At the ends of the lines that makes a few outputs that are none; they are
// left behind.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "layers/lanes.h"
#include "layers/layer.h"
#include "layers/room.h"

namespace timetrial::layers::direct {

struct Pair {
    int64_t h, w;
};

// Images with padding, for outputs of some extents.
struct Padded {
    Padded(const Shape& of, const Shape& made, Pair kernel, Pair around)
        : image(of),
          padding(around),
          width(made.width + kernel.w - 1),
          height(made.height + kernel.h - 1),
          positions(made.height * width) {}

    // Numbers of a channel: the last `step` positions at a time reach beyond the last one that counts.
    template <typename T>
    int64_t size(int64_t step) const {
        return Lanes<T>::round_up(height * width + step + width);
    }

    // Channel c of image n.
    template <typename T>
    void copy(const T* from, int64_t c, int64_t n, T* to) const {
        const T* plane = from + (c * image.batch + n) * image.plane();
        const int64_t body = std::min(image.width, width - padding.w);
        for (int64_t row = 0; row < height; ++row, to += width) {
            const int64_t y = row - padding.h;
            if (y < 0 || y >= image.height) {
                std::fill_n(to, width, T(0));
                continue;
            }
            std::fill_n(to, padding.w, T(0));
            std::memcpy(to + padding.w, plane + y * image.width, static_cast<std::size_t>(body) * sizeof(T));
            std::fill_n(to + padding.w + body, width - padding.w - body, T(0));
        }
    }

    const Shape image;
    const Pair padding;
    const int64_t width, height;
    const int64_t positions;  // of outputs, with those that are none
};

inline constexpr int64_t group = 4;  // output channels side by side
#if defined(__AVX512F__)
inline constexpr int64_t registers = 4;  // of neighboring outputs: of 32 registers, 16 are sums
#else
inline constexpr int64_t registers = 2;
#endif

// The convolution itself, or (`is_gradient`) the gradient of its input, as in winograd.h.
template <typename T>
class Filtering {
  public:
    Filtering(const Shape& input, const Shape& output, Pair kernel, Pair padding, bool is_gradient)
        : from_(is_gradient ? output : input),
          to_(is_gradient ? input : output),
          kernel_(kernel),
          is_gradient_(is_gradient),
          padded_(from_, to_, kernel,
                  is_gradient ? Pair{kernel.h - 1 - padding.h, kernel.w - 1 - padding.w} : padding) {}

    int64_t room() const {
        Cutter<T> counter(nullptr);
        Parts(counter, *this);
        return counter.taken();
    }

    void run(const T* weights, const T* from, T* to, const T* bias, bool add, Share images, T* memory) const {
        Cutter<T> cutter(memory);
        const Parts parts(cutter, *this);
        pack(weights, parts.weights);
        const int64_t bands = band_rows();
        for (int64_t n = images.begin; n < images.end; ++n) {
            for (int64_t c = 0; c < from_.channels; ++c)
                padded_.copy(from, c, n, parts.image + c * image_size());
            for (int64_t row = 0; row < to_.height; row += bands) {
                const Share rows{row, std::min(row + bands, to_.height)};
                for (int64_t c = 0; c < to_.channels; c += group)
                    compute(parts, c, rows, [&](int64_t channel, const T* made) {
                        hand_over(made, rows, bias ? bias[channel] : T(0), add,
                                  to + (channel * to_.batch + n) * to_.plane());
                    });
            }
        }
    }

  private:
    static constexpr int64_t step = registers * Lanes<T>::count;

    struct Parts {
        Parts(Cutter<T>& cutter, const Filtering& of)
            : weights(cutter.cut((of.to_.channels + group) * of.taps())),
              image(cutter.cut(of.from_.channels * of.image_size())),
              made(cutter.cut(group * of.made_size())) {}
        T* weights;  // for each group of channels: taps x channels
        T* image;
        T* made;
    };

    int64_t taps() const { return from_.channels * kernel_.h * kernel_.w; }
    int64_t image_size() const { return padded_.size<T>(step); }
    int64_t made_size() const { return band_rows() * padded_.width + step; }

    // So many output rows that what they read fits half of a first-level cache.
    int64_t band_rows() const {
        const int64_t rows = 16 * 1024 / (from_.channels * padded_.width * int64_t{sizeof(T)});
        return std::clamp<int64_t>(rows - kernel_.h + 1, 1, to_.height);
    }

    void pack(const T* weights, T* to) const {
        const int64_t area = kernel_.h * kernel_.w;
        for (int64_t first = 0; first < to_.channels; first += group) {
            const int64_t some = std::min(group, to_.channels - first);
            for (int64_t c = 0; c < from_.channels; ++c)
                for (int64_t tap = 0; tap < area; ++tap)
                    for (int64_t i = 0; i < some; ++i)
                        *to++ = is_gradient_ ? weights[(c * to_.channels + first + i) * area + area - 1 - tap]
                                             : weights[((first + i) * from_.channels + c) * area + tap];
        }
    }

    template <typename F>
    void compute(const Parts& parts, int64_t first, Share rows, F&& f) const {
        const T* weights = parts.weights + first * taps();
        const int64_t some = std::min(group, to_.channels - first);
        if (some == 4) sums<4>(parts, weights, rows);
        if (some == 3) sums<3>(parts, weights, rows);
        if (some == 2) sums<2>(parts, weights, rows);
        if (some == 1) sums<1>(parts, weights, rows);
        for (int64_t i = 0; i < some; ++i) f(first + i, parts.made + i * made_size());
    }

    template <int64_t Some>
    void sums(const Parts& parts, const T* weights, Share rows) const {
        using Register = typename Lanes<T>::Register;
        const int64_t positions = (rows.end - rows.begin) * padded_.width;
        for (int64_t q = 0; q < positions; q += step) {
            Register sum[Some][registers] = {};
            const T* weight = weights;
            for (int64_t c = 0; c < from_.channels; ++c) {
                const T* line = parts.image + c * image_size() + rows.begin * padded_.width + q;
                for (int64_t kh = 0; kh < kernel_.h; ++kh, line += padded_.width) {
                    for (int64_t kw = 0; kw < kernel_.w; ++kw, weight += Some) {
                        Register x[registers];
#pragma GCC unroll 4
                        for (int64_t r = 0; r < registers; ++r)
                            x[r] = Lanes<T>::load(line + kw + r * Lanes<T>::count);
#pragma GCC unroll 4
                        for (int64_t i = 0; i < Some; ++i)
#pragma GCC unroll 4
                            for (int64_t r = 0; r < registers; ++r) sum[i][r] += weight[i] * x[r];
                    }
                }
            }
            for (int64_t i = 0; i < Some; ++i)
                for (int64_t r = 0; r < registers; ++r)
                    Lanes<T>::store(parts.made + i * made_size() + q + r * Lanes<T>::count, sum[i][r]);
        }
    }

    void hand_over(const T* made, Share rows, T bias, bool add, T* plane) const {
        for (int64_t row = rows.begin; row < rows.end; ++row, made += padded_.width) {
            T* const line = plane + row * to_.width;
            for (int64_t x = 0; x < to_.width; ++x) line[x] = (add ? line[x] : bias) + made[x];
        }
    }

    const Shape from_, to_;
    const Pair kernel_;
    const bool is_gradient_;
    const Padded padded_;
};

// The gradient of the weights: a sum over the positions for each tap and output channel.
template <typename T>
class FilterGradient {
  public:
    FilterGradient(const Shape& input, const Shape& output, Pair kernel, Pair padding)
        : input_(input), output_(output), kernel_(kernel), padded_(input, output, kernel, padding) {
        for (int64_t c = 0; c < input.channels; ++c)
            for (int64_t kh = 0; kh < kernel.h; ++kh)
                for (int64_t kw = 0; kw < kernel.w; ++kw)
                    distances_.push_back(c * image_size() + kh * padded_.width + kw);
    }

    int64_t room() const {
        Cutter<T> counter(nullptr);
        Parts(counter, *this);
        return counter.taken();
    }

    // Of what is kept over all images, and should stay in a cache.
    int64_t sums_bytes() const { return sums_size() * int64_t{sizeof(T)}; }

    // `gradient`: taps (input channel, kernel row, kernel column) x output channels.
    void run(const T* from, const T* output_gradient, T* gradient, Share images, T* memory) const {
        Cutter<T> cutter(memory);
        const Parts parts(cutter, *this);
        std::fill_n(parts.sums, sums_size(), T(0));
        // Beyond the ends too: what lay there before may be no number, and that times zero is none either.
        std::fill_n(parts.gradients, output_.channels * made_size(), T(0));
        std::fill_n(parts.image, input_.channels * image_size(), T(0));
        for (int64_t n = images.begin; n < images.end; ++n) {
            for (int64_t c = 0; c < input_.channels; ++c)
                padded_.copy(from, c, n, parts.image + c * image_size());
            for (int64_t c = 0; c < output_.channels; ++c)
                spread(output_gradient + (c * output_.batch + n) * output_.plane(),
                       parts.gradients + c * made_size());
            T* sums = parts.sums;
            for (int64_t first = 0; first < output_.channels; first += group) {
                const int64_t some = std::min(group, output_.channels - first);
                for (std::size_t tap = 0; tap < distances_.size(); tap += wide) {
                    add_with(some, parts, first, tap, sums);
                    sums += some * wide * Lanes<T>::count;
                }
            }
        }
        collect(parts.sums, gradient);
    }

  private:
    static constexpr std::size_t wide = 4;  // taps side by side

    struct Parts {
        Parts(Cutter<T>& cutter, const FilterGradient& of)
            : image(cutter.cut(of.input_.channels * of.image_size())),
              gradients(cutter.cut(of.output_.channels * of.made_size())),
              sums(cutter.cut(of.sums_size())) {}
        T *image, *gradients;
        T* sums;  // registers, in the order of run()
    };

    int64_t image_size() const { return padded_.size<T>(Lanes<T>::count); }
    int64_t made_size() const { return Lanes<T>::round_up(padded_.positions); }
    int64_t sums_size() const {
        return (static_cast<int64_t>(distances_.size()) + 3) / 4 * 4 * output_.channels * Lanes<T>::count;
    }

    // With zeros at the positions that are none.
    void spread(const T* plane, T* to) const {
        for (int64_t row = 0; row < output_.height; ++row)
            std::memcpy(to + row * padded_.width, plane + row * output_.width,
                        static_cast<std::size_t>(output_.width) * sizeof(T));
    }

    // The last taps are filled up with the very last one, whose extra sums nobody collects.
    int64_t distance(std::size_t tap) const { return distances_[std::min(tap, distances_.size() - 1)]; }

    void add_with(int64_t some, const Parts& parts, int64_t first, std::size_t tap, T* sums) const {
        if (some == 4) add<4>(parts, first, tap, sums);
        if (some == 3) add<3>(parts, first, tap, sums);
        if (some == 2) add<2>(parts, first, tap, sums);
        if (some == 1) add<1>(parts, first, tap, sums);
    }

    template <int64_t Some>
    void add(const Parts& parts, int64_t first, std::size_t tap, T* sums) const {
        using Register = typename Lanes<T>::Register;
        const T *x[wide], *dy[Some];
        Register sum[wide][Some];
        for (std::size_t t = 0; t < wide; ++t) x[t] = parts.image + distance(tap + t);
        for (int64_t i = 0; i < Some; ++i) dy[i] = parts.gradients + (first + i) * made_size();
#pragma GCC unroll 4
        for (std::size_t t = 0; t < wide; ++t)
#pragma GCC unroll 4
            for (int64_t i = 0; i < Some; ++i)
                sum[t][i] = Lanes<T>::load(sums + (static_cast<int64_t>(t) * Some + i) * Lanes<T>::count);
        for (int64_t q = 0; q < padded_.positions; q += Lanes<T>::count) {
            Register g[Some];
#pragma GCC unroll 4
            for (int64_t i = 0; i < Some; ++i) g[i] = Lanes<T>::load(dy[i] + q);
#pragma GCC unroll 4
            for (std::size_t t = 0; t < wide; ++t) {
                const Register value = Lanes<T>::load(x[t] + q);
#pragma GCC unroll 4
                for (int64_t i = 0; i < Some; ++i) sum[t][i] += value * g[i];
            }
        }
#pragma GCC unroll 4
        for (std::size_t t = 0; t < wide; ++t)
#pragma GCC unroll 4
            for (int64_t i = 0; i < Some; ++i)
                Lanes<T>::store(sums + (static_cast<int64_t>(t) * Some + i) * Lanes<T>::count, sum[t][i]);
    }

    void collect(const T* sums, T* gradient) const {
        for (int64_t first = 0; first < output_.channels; first += group) {
            const int64_t some = std::min(group, output_.channels - first);
            for (std::size_t tap = 0; tap < distances_.size(); tap += wide)
                for (std::size_t t = 0; t < wide; ++t)
                    for (int64_t i = 0; i < some; ++i, sums += Lanes<T>::count) {
                        if (tap + t >= distances_.size()) continue;
                        T total = 0;
                        for (int64_t lane = 0; lane < Lanes<T>::count; ++lane) total += sums[lane];
                        gradient[static_cast<int64_t>(tap + t) * output_.channels + first + i] = total;
                    }
        }
    }

    const Shape input_, output_;
    const Pair kernel_;
    const Padded padded_;
    std::vector<int64_t> distances_;  // of the taps, in the padded images
};

}  // namespace timetrial::layers::direct
