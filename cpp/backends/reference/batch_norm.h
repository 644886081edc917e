// batch_norm: y = w (x - mean) / sqrt(variance + epsilon) + b, each channel by itself.
// While it learns, mean and (biased) variance are those of the channel's values in this batch, and so
// functions of x; the tape takes the gradient through them. Inference takes the running ones, which steps
// move:
//   running = (1 - momentum) * running + momentum * new
#pragma once

#include <cmath>
#include <vector>

#include "function.h"
#include "tape.h"

namespace timetrial::reference {

template <class Real>
struct Moments {
    Real mean = 0.0;
    Real variance = 0.0;

    Moments(Real given_mean, Real given_variance) : mean(given_mean), variance(given_variance) {}
    explicit Moments(const std::vector<Real>& x) {
        const Real count(static_cast<double>(x.size()));
        for (const Real& one : x) mean = mean + one;
        mean = mean / count;
        for (const Real& one : x) variance = variance + (one - mean) * (one - mean);
        variance = variance / count;
    }
};

class BatchNorm final : public Function {
  public:
    explicit BatchNorm(const Attributes& attributes)
        : epsilon_(attributes.number("epsilon")), momentum_(attributes.number("momentum")) {}

    void forward(std::span<Tensor* const> inputs, Tensor& y, Mode mode) override {
        const Tensor& x = *inputs[0];
        for (std::size_t c = 0; c < x.extent(1); ++c) {
            const std::vector<double> of_channel = channel<double>(x.shape, x.value, c);
            const Moments<double> moments =
                mode == Mode::kTraining
                    ? Moments<double>(of_channel)
                    : Moments<double>(running_mean().value[c], running_variance().value[c]);
            std::size_t i = 0;
            for_each_place(x.shape, c, [&](std::size_t place) {
                y.value[place] = normalized(of_channel[i++], moments, weight().value[c], bias().value[c]);
            });
        }
    }

    // On the tape: what the output's gradient g makes of y, sum over i of g[i] y[i]. Its derivatives are the
    // gradients.
    void backward(std::span<Tensor* const> inputs, Tensor& y) override {
        Tensor& x = *inputs[0];
        for (std::size_t c = 0; c < x.extent(1); ++c) {
            tape_.clear();
            const Number w = tape_.variable(weight().value[c]), b = tape_.variable(bias().value[c]);
            std::vector<Number> of_channel;
            for_each_place(x.shape, c,
                           [&](std::size_t place) { of_channel.push_back(tape_.variable(x.value[place])); });
            const Moments<Number> moments(of_channel);
            Number sum = 0.0;
            std::size_t i = 0;
            for_each_place(x.shape, c, [&](std::size_t place) {
                sum = sum + Number(y.gradient[place]) * normalized(of_channel[i++], moments, w, b);
            });
            const std::vector<double>& derivatives = tape_.derivatives(sum);
            weight().gradient[c] += derivatives[0];
            bias().gradient[c] += derivatives[1];
            i = 2;
            for_each_place(x.shape, c, [&](std::size_t place) { x.gradient[place] += derivatives[i++]; });
            if (disturbance) disturb(x, y, c);
        }
    }

    void keep_states(std::span<Tensor* const> inputs) override {
        const Tensor& x = *inputs[0];
        for (std::size_t c = 0; c < x.extent(1); ++c) {
            const Moments<double> now(channel<double>(x.shape, x.value, c));
            const auto move = [this](double& running, double to) {
                running = (1 - momentum_) * running + momentum_ * to;
            };
            move(running_mean().value[c], now.mean);
            move(running_variance().value[c], now.variance);
        }
    }

  private:
    // The gradient of x is w / deviation times y's, less the mean of that and less what lies along x: of two
    // values nothing is left but for epsilon. Rounding throws each value by itself, and all of the channel
    // together by what it does to the two sums while they grow, which are the gradients of bias and weight.
    void disturb(Tensor& x, const Tensor& y, std::size_t c) {
        const Moments<double> now(channel<double>(x.shape, x.value, c));
        const double slope = 1 / std::sqrt(now.variance + epsilon_);
        double sum = 0, along = 0, of_sum = 0, of_along = 0, count = 0;
        for_each_place(x.shape, c, [&](std::size_t place) {
            sum += y.gradient[place];
            along += y.gradient[place] * (x.value[place] - now.mean) * slope;
            of_sum += sum * disturbance->next();
            of_along += along * disturbance->next();
            ++count;
        });
        bias().gradient[c] += of_sum;
        weight().gradient[c] += of_along;
        for_each_place(x.shape, c, [&](std::size_t place) {
            const double own = y.gradient[place] * disturbance->next();
            const double all = of_sum + of_along * (x.value[place] - now.mean) * slope;
            x.gradient[place] += weight().value[c] * slope * (own + all / count);
        });
    }

    template <class Real>
    Real normalized(const Real& x, const Moments<Real>& moments, const Real& w, const Real& b) const {
        using std::sqrt;
        return w * (x - moments.mean) / sqrt(moments.variance + Real(epsilon_)) + b;
    }

    // Places of a channel's values in (N, C, H, W) or (N, F).
    template <class Each>
    static void for_each_place(const Shape& shape, std::size_t c, Each&& each) {
        const auto batch = static_cast<std::size_t>(shape[0]), channels = static_cast<std::size_t>(shape[1]);
        const std::size_t plane = static_cast<std::size_t>(elements(shape)) / (batch * channels);
        for (std::size_t n = 0; n < batch; ++n)
            for (std::size_t i = 0; i < plane; ++i) each((n * channels + c) * plane + i);
    }

    template <class Real>
    static std::vector<Real> channel(const Shape& shape, const Values& values, std::size_t c) {
        std::vector<Real> found;
        for_each_place(shape, c, [&](std::size_t place) { found.push_back(values[place]); });
        return found;
    }

    Tensor& running_mean() const { return *states[0]; }
    Tensor& running_variance() const { return *states[1]; }

    const double epsilon_, momentum_;
    Tape tape_;
};

}  // namespace timetrial::reference
