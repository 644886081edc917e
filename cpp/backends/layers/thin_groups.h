// conv2d whose groups are thin: with as many groups as channels (depthwise), or a few channels in each. A
// product of matrices would have a column, or a few, for each tap. Plane by plane instead, every tap along
// one long run (phases.h).
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

template <typename T>
class ThinGroups final : public Convolved<T> {
  public:
    ThinGroups(const Window& window, int64_t groups) : window_(window), groups_(groups) {}

    void prepare(const Edge<T>& input, const Edge<T>& output, int threads) override {
        inputs_ = input.shape.channels / groups_;
        outputs_ = output.shape.channels / groups_;
        phases_ = Phases(window_, input.shape, output.shape, lanes);
        run_ = Lanes<T>::round_up(phases_.run());
        for (const Phases::Tap& tap : phases_.taps()) margin_ = std::max(margin_, tap.offset);
        room_ = margin_ + std::max(run_, phases_.phase_size());
        taps_ = static_cast<int64_t>(phases_.taps().size());
        const auto most = static_cast<std::size_t>(std::max(inputs_, outputs_) * taps_);
        for (int thread = 0; thread < threads; ++thread)
            own_.push_back({Buffer<T>(inputs_ * phases_.size() + lanes), Buffer<T>(outputs_ * room_),
                            std::vector<const T*>(most), std::vector<T>(most)});
        by_phase_.resize(static_cast<std::size_t>(window_.stride_h * window_.stride_w));
        for (int64_t t = 0; t < taps_; ++t) by_phase_[static_cast<std::size_t>(tap(t).phase)].push_back(t);
        std::erase_if(by_phase_, [](const auto& taps) { return taps.empty(); });
        weight_gradients_.prepare(output.shape.channels * per_output(), threads);
        this->prepare_parameters(output.shape.channels, threads);
    }

    void forward(const Edge<T>& input, const Edge<T>& output, Share images, int thread) override {
        for_each_group(images, thread, [&](Own& own, int64_t group, int64_t n) {
            read_group(input, group, n, own);
            T* const run = own.wide.data();
            for (int64_t o = group * outputs_; o < (group + 1) * outputs_; ++o) {
                std::fill_n(run, run_, this->bias() ? this->bias()[o] : T(0));
                Taps<T>::add(run, own.lines.data(), this->weight() + o * per_output(), per_output(), run_);
                phases_.gather_outputs(run, output.value + plane_of(output.shape, o, n));
            }
        });
    }

    void backward_weights(const Edge<T>& input, const Edge<T>& output, Share images, int thread) override {
        T* const gradient = weight_gradients_.begin(thread);
        T* const bias_gradient = this->begin_bias_gradient(thread);
        for_each_group(images, thread, [&](Own& own, int64_t group, int64_t n) {
            read_group(input, group, n, own);
            T* const run = own.wide.data();
            for (int64_t o = group * outputs_; o < (group + 1) * outputs_; ++o) {
                const T* dy = output.gradient + plane_of(output.shape, o, n);
                phases_.spread_outputs(dy, run);
                std::fill(run + phases_.run(), run + run_, T(0));
                Taps<T>::dot(run, own.lines.data(), gradient + o * per_output(), per_output(), run_);
                if (this->bias()) bias_gradient[o] += sum_of(dy, output.shape.plane());
            }
        });
    }

    // A value of x at offset i of its phase met each tap of that phase at the output i - offset.
    void backward_data(const Edge<T>& input, const Edge<T>& output, Share images, int thread,
                       bool add) override {
        if (!add) clear(input.shape, images, input.gradient);
        for_each_group(images, thread, [&](Own& own, int64_t group, int64_t n) {
            for (int64_t o = 0; o < outputs_; ++o) {
                T* const room = own.wide.data() + o * room_;
                std::fill_n(room, margin_, T(0));
                phases_.spread_outputs(output.gradient + plane_of(output.shape, group * outputs_ + o, n),
                                       room + margin_);
                std::fill(room + margin_ + phases_.run(), room + room_, T(0));
            }
            for (int64_t c = 0; c < inputs_; ++c) {
                std::fill_n(own.phases.data(), phases_.size(), T(0));
                for (const std::vector<int64_t>& taps : by_phase_) add_outputs(own, group, c, taps);
                phases_.put_together(own.phases.data(),
                                     input.gradient + plane_of(input.shape, group * inputs_ + c, n));
            }
        });
    }

  private:
    struct Own {
        Buffer<T> phases;  // of each channel of a group
        Buffer<T> wide;    // the outputs of a plane; backward of each of a group, with zeros around
        std::vector<const T*> lines;
        std::vector<T> factors;
    };

    const Phases::Tap& tap(int64_t t) const { return phases_.taps()[static_cast<std::size_t>(t)]; }
    int64_t per_output() const { return inputs_ * taps_; }  // weights

    static int64_t plane_of(const Shape& shape, int64_t channel, int64_t image) {
        return (channel * shape.batch + image) * shape.plane();
    }

    // What each weight of an output meets, for all places of the window.
    void read_group(const Edge<T>& input, int64_t group, int64_t n, Own& own) const {
        std::size_t at = 0;
        for (int64_t c = 0; c < inputs_; ++c) {
            T* const phases = own.phases.data() + c * phases_.size();
            phases_.take_apart(input.value + plane_of(input.shape, group * inputs_ + c, n), phases);
            for (const Phases::Tap& tap : phases_.taps())
                own.lines[at++] = phases + tap.phase * phases_.phase_size() + tap.offset;
        }
    }

    // What the taps of one phase give back to channel c of the group, of all its outputs.
    void add_outputs(Own& own, int64_t group, int64_t c, const std::vector<int64_t>& taps) const {
        std::size_t count = 0;
        for (int64_t o = 0; o < outputs_; ++o) {
            const T* const outputs = own.wide.data() + o * room_ + margin_;
            const T* const weights = this->weight() + (group * outputs_ + o) * per_output() + c * taps_;
            for (const int64_t t : taps) {
                own.lines[count] = outputs - tap(t).offset;
                own.factors[count++] = weights[t];
            }
        }
        Taps<T>::add(own.phases.data() + tap(taps[0]).phase * phases_.phase_size(), own.lines.data(),
                     own.factors.data(), static_cast<int64_t>(count), phases_.phase_size());
    }

    // f(own, group, image)
    template <typename F>
    void for_each_group(Share images, int thread, F&& f) {
        Own& own = own_[static_cast<std::size_t>(thread)];
        for (int64_t group = 0; group < groups_; ++group)
            for (int64_t n = images.begin; n < images.end; ++n) f(own, group, n);
    }

    void sum_weight_gradient(Share rows, T* to) override {
        weight_gradients_.sum({rows.begin * per_output(), rows.end * per_output()}, to);
    }

    static constexpr int64_t lanes = Lanes<T>::count;

    const Window window_;
    const int64_t groups_;
    Phases phases_;
    int64_t run_ = 0;                   // of the outputs of a plane, in whole registers
    int64_t inputs_ = 1, outputs_ = 1;  // channels of a group
    int64_t taps_ = 0;
    int64_t margin_ = 0;                          // the largest offset of a tap
    int64_t room_ = 0;                            // for the outputs of a plane and the zeros around them
    std::vector<std::vector<int64_t>> by_phase_;  // the taps of each phase that has some
    std::vector<Own> own_;
    OwnGradients<T> weight_gradients_;
};

}  // namespace timetrial::layers
