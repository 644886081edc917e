// conv2d by the algorithm that is asked for, direction by direction; by im2col where that does not apply.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "layers/convolution.h"
#include "layers/direct.h"
#include "layers/trial.h"
#include "layers/winograd.h"

namespace timetrial::layers {

// What decides which algorithm suits a convolution.
struct ConvolutionShape {
    Shape input, output;
    Window window;
    int64_t groups;
    int threads;

    bool fits(Algorithm algorithm) const {
        const Window& w = window;
        if (algorithm == Algorithm::kIm2col) return true;
        // With more padding than that the gradient of the input is no such convolution.
        if (groups != 1 || w.dilation_h != 1 || w.dilation_w != 1 || w.stride_h != 1 || w.stride_w != 1 ||
            w.padding_h >= w.kernel_h || w.padding_w >= w.kernel_w)
            return false;
        return algorithm != Algorithm::kWinograd || (w.kernel_h == 3 && w.kernel_w == 3);
    }

    // The expected order, from measurements with products of 60 to 120 GFLOP/s. In double the engine is a
    // judge, which stays with the plainest sum.
    Algorithm expected() const {
        if (sizeof_number > 4) return Algorithm::kIm2col;
        if (fits(Algorithm::kWinograd) && has_worth_of_transforms()) return Algorithm::kWinograd;
        const bool is_thin =
            input.channels <= 4 ? output.channels <= 16 : input.channels <= 8 && output.channels <= 8;
        const bool has_columns_to_save = window.kernel_h * window.kernel_w > 1;
        if (fits(Algorithm::kDirect) && is_thin && has_columns_to_save) return Algorithm::kDirect;
        return Algorithm::kIm2col;
    }

    std::size_t sizeof_number;

  private:
    // A tile costs 36 products, and each thread's transform of the filters as much as 36 tiles; a position of
    // im2col costs nine. With fewer channels than eight the transforms of the images cost more than they
    // save.
    bool has_worth_of_transforms() const {
        if (std::min(input.channels, output.channels) < 8) return false;
        const int64_t tiles = output.batch * ((output.height + 3) / 4) * ((output.width + 3) / 4);
        return 36 * (tiles + 36 * threads) * 5 < 9 * output.batch * output.plane() * 4;
    }
};

template <typename T, typename Product>
class ChosenConvolution final : public Convolution<T, Product> {
  public:
    using Base = Convolution<T, Product>;

    ChosenConvolution(const Window& window, int64_t groups) : Base(window, groups) {
        shape_.window = window;
        shape_.groups = groups;
        shape_.sizeof_number = sizeof(T);
    }

    void equip(Algorithm convolution, Rooms<T>& rooms) override {
        Base::equip(convolution, rooms);
        asked_ = convolution;
    }

    void prepare(const Edge<T>& input, const Edge<T>& output, int threads) override {
        Base::prepare(input, output, threads);
        shape_.input = input.shape;
        shape_.output = output.shape;
        shape_.threads = threads;
        choose(TT_DIRECTION_FORWARD, input, output);
        if (output.gradient) choose(TT_DIRECTION_BACKWARD_WEIGHTS, input, output);
        if (input.gradient) choose(TT_DIRECTION_BACKWARD_DATA, input, output);
    }

    std::vector<Chosen> chosen() const override { return chosen_; }

    void forward(const Edge<T>& input, const Edge<T>& output, Share images, int thread) override {
        const auto run = [&](const auto& filtering) {
            filtering->run(this->weight(), input.value, output.value, this->bias(), false, images,
                           this->rooms_->call.of(thread));
        };
        const Algorithm algorithm = algorithm_of(TT_DIRECTION_FORWARD);
        if (algorithm == Algorithm::kWinograd) return run(winograd_forward_);
        if (algorithm == Algorithm::kDirect) return run(direct_forward_);
        Base::forward(input, output, images, thread);
    }

    void backward_weights(const Edge<T>& input, const Edge<T>& output, Share images, int thread) override {
        const auto run = [&](const auto& gradient) {
            gradient->run(input.value, output.gradient, this->own_weight_gradient(thread), images,
                          this->rooms_->call.of(thread));
            if (!this->bias()) return;
            T* const sums = this->begin_bias_gradient(thread);
            for_each_channel(output.shape, images, [&](int64_t c, int64_t first, int64_t count) {
                sums[c] = sum_of(output.gradient + first, count);
            });
        };
        const Algorithm algorithm = algorithm_of(TT_DIRECTION_BACKWARD_WEIGHTS);
        if (algorithm == Algorithm::kWinograd) return run(winograd_weights_);
        if (algorithm == Algorithm::kDirect) return run(direct_weights_);
        Base::backward_weights(input, output, images, thread);
    }

    void backward_data(const Edge<T>& input, const Edge<T>& output, Share images, int thread,
                       bool add) override {
        const auto run = [&](const auto& filtering) {
            filtering->run(this->weight(), output.gradient, input.gradient, nullptr, add, images,
                           this->rooms_->call.of(thread));
        };
        const Algorithm algorithm = algorithm_of(TT_DIRECTION_BACKWARD_DATA);
        if (algorithm == Algorithm::kWinograd) return run(winograd_data_);
        if (algorithm == Algorithm::kDirect) return run(direct_data_);
        Base::backward_data(input, output, images, thread, add);
    }

  private:
    Algorithm algorithm_of(tt_direction direction) const {
        for (const Chosen& one : chosen_)
            if (one.direction == direction) return one.algorithm;
        return Algorithm::kIm2col;
    }

    void choose(tt_direction direction, const Edge<T>& input, const Edge<T>& output) {
        Chosen& now = chosen_.emplace_back(Chosen{direction, shape_.expected(), ""});
        if (asked_ == Algorithm::kAuto) {
            try_all(now, input, output);
        } else if (asked_ != Algorithm::kByShape) {
            now.algorithm = shape_.fits(asked_) ? asked_ : Algorithm::kIm2col;
        }
        equip_for(now);
    }

    // Makes what computes the direction by its algorithm, with room for it; without room it is im2col.
    void equip_for(Chosen& now) {
        const Shape &in = shape_.input, &out = shape_.output;
        const Window& w = shape_.window;
        const bool is_forward = now.direction == TT_DIRECTION_FORWARD;
        const auto make = [&](auto& optional, const auto&... arguments) {
            this->rooms_->call.ask(optional.emplace(in, out, arguments...).room());
        };
        if (now.algorithm == Algorithm::kWinograd) {
            const winograd::Padding padding{w.padding_h, w.padding_w};
            if (now.direction == TT_DIRECTION_BACKWARD_WEIGHTS) return make(winograd_weights_, padding);
            make(is_forward ? winograd_forward_ : winograd_data_, padding, !is_forward);
        } else if (now.algorithm == Algorithm::kDirect) {
            const direct::Pair kernel{w.kernel_h, w.kernel_w}, padding{w.padding_h, w.padding_w};
            if (now.direction != TT_DIRECTION_BACKWARD_WEIGHTS)
                return make(is_forward ? direct_forward_ : direct_data_, kernel, padding, !is_forward);
            if (direct::FilterGradient<T>(in, out, kernel, padding).sums_bytes() > most_sums)
                now.algorithm = Algorithm::kIm2col;
            else
                make(direct_weights_, kernel, padding);
        }
    }

    // On a thread's share of a batch of zeros.
    void try_all(Chosen& now, const Edge<T>& input, const Edge<T>& output) {
        std::vector<Algorithm> ways{shape_.expected()};
        for (const Algorithm way : {Algorithm::kIm2col, Algorithm::kDirect, Algorithm::kWinograd})
            if (way != ways.front() && shape_.fits(way)) ways.push_back(way);
        std::vector<std::string> names;
        for (const Algorithm way : ways) names.push_back(word_of(way));
        const Share images = share_of(output.shape.batch, 0, shape_.threads);
        const TrialResult result = fastest_of(names, true, [&](std::size_t way) {
            now.algorithm = ways[way];
            equip_for(now);
            return [&] {
                if (now.direction == TT_DIRECTION_FORWARD) forward(input, output, images, 0);
                if (now.direction == TT_DIRECTION_BACKWARD_WEIGHTS)
                    backward_weights(input, output, images, 0);
                if (now.direction == TT_DIRECTION_BACKWARD_DATA)
                    backward_data(input, output, images, 0, false);
            };
        });
        now.algorithm = ways[result.chosen];
        now.trial = result.report;
    }

    // Beyond, what `direct` keeps for the weights' gradient would not stay in a cache.
    static constexpr int64_t most_sums = 1 << 20;

    ConvolutionShape shape_{};
    Algorithm asked_ = Algorithm::kIm2col;
    std::vector<Chosen> chosen_;  // one for each direction that is computed
    // Of the directions that they compute, or were tried for.
    std::optional<winograd::Filtering<T, Product>> winograd_forward_, winograd_data_;
    std::optional<winograd::FilterGradient<T, Product>> winograd_weights_;
    std::optional<direct::Filtering<T>> direct_forward_, direct_data_;
    std::optional<direct::FilterGradient<T>> direct_weights_;
};

}  // namespace timetrial::layers
