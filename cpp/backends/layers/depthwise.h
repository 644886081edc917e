// conv2d with as many groups as channels: each output is made of one channel, so a product of matrices would
// have one column for each tap. Plane by plane instead, every tap along one long run (phases.h).
#pragma once

#include <algorithm>
#include <vector>

#include "layers/convolved.h"
#include "layers/correlation.h"
#include "layers/lanes.h"
#include "layers/phases.h"

namespace timetrial::layers {

// Sums over taps, as many at a time as there are registers for them. Of `count`, which is a multiple of
// Lanes::count.
template <typename T>
struct Taps {
    // run[i] += sum over t of factors[t] * lines[t][i]
    static void add(T* run, const T* const* lines, const T* factors, int64_t n, int64_t count) {
        for (; n >= 9; n -= 9, lines += 9, factors += 9) some<9>(run, lines, factors, count);
        for (; n >= 3; n -= 3, lines += 3, factors += 3) some<3>(run, lines, factors, count);
        for (; n > 0; --n, ++lines, ++factors) some<1>(run, lines, factors, count);
    }

    // sums[t] += sum over i of run[i] * lines[t][i]
    static void dot(const T* run, const T* const* lines, T* sums, int64_t n, int64_t count) {
        for (; n >= 9; n -= 9, lines += 9, sums += 9) some_dots<9>(run, lines, sums, count);
        for (; n >= 3; n -= 3, lines += 3, sums += 3) some_dots<3>(run, lines, sums, count);
        for (; n > 0; --n, ++lines, ++sums) some_dots<1>(run, lines, sums, count);
    }

  private:
    using L = Lanes<T>;
    using Register = typename L::Register;

    template <int N>
    static void some(T* run, const T* const* lines, const T* factors, int64_t count) {
        const T* line[N];
        T factor[N];
        for (int t = 0; t < N; ++t) line[t] = lines[t], factor[t] = factors[t];
        for (int64_t i = 0; i < count; i += L::count) {
            Register sum = L::load(run + i);
            for (int t = 0; t < N; ++t) sum += factor[t] * L::load(line[t] + i);
            L::store(run + i, sum);
        }
    }

    template <int N>
    static void some_dots(const T* run, const T* const* lines, T* sums, int64_t count) {
        const T* line[N];
        Register sum[N];
        for (int t = 0; t < N; ++t) line[t] = lines[t], sum[t] = Register{};
        for (int64_t i = 0; i < count; i += L::count) {
            const Register factor = L::load(run + i);
            for (int t = 0; t < N; ++t) sum[t] += factor * L::load(line[t] + i);
        }
        for (int t = 0; t < N; ++t)
            for (int64_t k = 0; k < L::count; ++k) sums[t] += sum[t][k];
    }
};

// Channel c makes the outputs c * multiplier and those behind it.
template <typename T>
class Depthwise final : public Convolved<T> {
  public:
    explicit Depthwise(const Window& window) : window_(window) {}

    void prepare(const Edge<T>& input, const Edge<T>& output, int threads) override {
        phases_ = Phases(window_, input.shape, output.shape, lanes);
        run_ = Lanes<T>::round_up(phases_.run());
        multiplier_ = output.shape.channels / input.shape.channels;
        for (const Phases::Tap& tap : phases_.taps()) margin_ = std::max(margin_, tap.offset);
        taps_ = static_cast<int64_t>(phases_.taps().size());
        const auto n = static_cast<std::size_t>(taps_);
        for (int thread = 0; thread < threads; ++thread)
            own_.push_back({Buffer<T>(phases_.size() + lanes),
                            Buffer<T>(margin_ + std::max(run_, phases_.phase_size())),
                            std::vector<const T*>(n), std::vector<T>(n)});
        by_phase_.resize(static_cast<std::size_t>(window_.stride_h * window_.stride_w));
        for (int64_t t = 0; t < taps_; ++t) by_phase_[static_cast<std::size_t>(tap(t).phase)].push_back(t);
        std::erase_if(by_phase_, [](const auto& taps) { return taps.empty(); });
        weight_gradients_.prepare(output.shape.channels * taps_, threads);
        this->prepare_bias(output.shape.channels, threads);
    }

    void forward(const Edge<T>& input, const Edge<T>& output, Share images, int thread) override {
        for_each_plane(input.shape, images, thread, [&](Own& own, int64_t c, int64_t n) {
            read_plane(input.value + plane_of(input.shape, c, n), own);
            for (int64_t o = c * multiplier_; o < (c + 1) * multiplier_; ++o) {
                std::fill_n(own.wide.data(), run_, this->bias() ? this->bias()[o] : T(0));
                Taps<T>::add(own.wide.data(), own.lines.data(), this->weight() + o * taps_, taps_,
                             phases_.run());
                phases_.gather_outputs(own.wide.data(), output.value + plane_of(output.shape, o, n));
            }
        });
    }

    void backward_weights(const Edge<T>& input, const Edge<T>& output, Share images, int thread) override {
        T* const gradient = weight_gradients_.begin(thread);
        T* const bias_gradient = this->begin_bias_gradient(thread);
        for_each_plane(input.shape, images, thread, [&](Own& own, int64_t c, int64_t n) {
            read_plane(input.value + plane_of(input.shape, c, n), own);
            for (int64_t o = c * multiplier_; o < (c + 1) * multiplier_; ++o) {
                const T* dy = output.gradient + plane_of(output.shape, o, n);
                phases_.spread_outputs(dy, own.wide.data());
                std::fill(own.wide.data() + phases_.run(), own.wide.data() + run_, T(0));
                Taps<T>::dot(own.wide.data(), own.lines.data(), gradient + o * taps_, taps_, run_);
                if (this->bias()) bias_gradient[o] += sum_of(dy, output.shape.plane());
            }
        });
    }

    // A value of x at offset i of its phase met each tap of that phase at the output i - offset.
    void backward_data(const Edge<T>& input, const Edge<T>& output, Share images, int thread,
                       bool add) override {
        if (!add) this->clear(input, images);
        for_each_plane(input.shape, images, thread, [&](Own& own, int64_t c, int64_t n) {
            own.phases.zero();
            T* const wide = own.wide.data() + margin_;
            std::fill_n(own.wide.data(), margin_, T(0));
            std::fill(wide + phases_.run(), own.wide.data() + own.wide.size(), T(0));
            for (int64_t o = c * multiplier_; o < (c + 1) * multiplier_; ++o) {
                phases_.spread_outputs(output.gradient + plane_of(output.shape, o, n), wide);
                for (const std::vector<int64_t>& taps : by_phase_) {
                    std::size_t count = 0;
                    for (const int64_t t : taps) {
                        own.lines[count] = wide - tap(t).offset;
                        own.factors[count++] = this->weight()[o * taps_ + t];
                    }
                    Taps<T>::add(own.phases.data() + tap(taps[0]).phase * phases_.phase_size(),
                                 own.lines.data(), own.factors.data(), static_cast<int64_t>(count),
                                 phases_.phase_size());
                }
            }
            phases_.put_together(own.phases.data(), input.gradient + plane_of(input.shape, c, n));
        });
    }

  private:
    struct Own {
        Buffer<T> phases;
        Buffer<T> wide;  // the outputs of a plane, and backward zeros in front and behind
        std::vector<const T*> lines;
        std::vector<T> factors;
    };

    const Phases::Tap& tap(int64_t t) const { return phases_.taps()[static_cast<std::size_t>(t)]; }

    static int64_t plane_of(const Shape& shape, int64_t channel, int64_t image) {
        return (channel * shape.batch + image) * shape.plane();
    }

    // What each tap meets, for all places of the window.
    void read_plane(const T* plane, Own& own) const {
        phases_.take_apart(plane, own.phases.data());
        for (int64_t t = 0; t < taps_; ++t)
            own.lines[static_cast<std::size_t>(t)] =
                own.phases.data() + tap(t).phase * phases_.phase_size() + tap(t).offset;
    }

    // f(own, channel, image) for each plane of the input
    template <typename F>
    void for_each_plane(const Shape& in, Share images, int thread, F&& f) {
        Own& own = own_[static_cast<std::size_t>(thread)];
        for (int64_t c = 0; c < in.channels; ++c)
            for (int64_t n = images.begin; n < images.end; ++n) f(own, c, n);
    }

    void sum_weight_gradient(Share rows, T* gradient) const override {
        weight_gradients_.sum({rows.begin * taps_, rows.end * taps_}, gradient);
    }

    static constexpr int64_t lanes = Lanes<T>::count;

    const Window window_;
    Phases phases_;
    int64_t run_ = 0;  // in whole registers
    int64_t multiplier_ = 1;
    int64_t taps_ = 0;
    int64_t margin_ = 0;                          // the largest offset of a tap
    std::vector<std::vector<int64_t>> by_phase_;  // the taps of each phase that has some
    std::vector<Own> own_;
    OwnGradients<T> weight_gradients_;
};

}  // namespace timetrial::layers
