// local_response_norm: each position of an image by itself, over its channels c:
//   y[c] = x[c] / (k + a * sum over d of x[d]^2)^beta,   d from c - size / 2 to c + size / 2
// where a is alpha / size, or alpha itself.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "function.h"
#include "tape.h"

namespace timetrial::reference {

class LocalResponseNorm final : public Function {
  public:
    explicit LocalResponseNorm(const Attributes& attributes)
        : half_(static_cast<std::size_t>(attributes.integer("size") / 2)),
          a_(attributes.number("alpha") / (attributes.integer("alpha_over_size") != 0
                                               ? static_cast<double>(attributes.integer("size"))
                                               : 1.0)),
          beta_(attributes.number("beta")),
          k_(attributes.number("k")) {}

    void forward(std::span<Tensor* const> inputs, Tensor& y, Mode) override {
        const Tensor& x = *inputs[0];
        std::vector<double> of_position;
        for_each_position(x, [&](std::size_t first, std::size_t stride) {
            of_position.clear();
            for (std::size_t c = 0; c < x.extent(1); ++c) of_position.push_back(x.value[first + c * stride]);
            for (std::size_t c = 0; c < x.extent(1); ++c)
                y.value[first + c * stride] = normalized(of_position, c);
        });
    }

    // On the tape: sum over c of g[c] y[c], with the output's gradient g.
    void backward(std::span<Tensor* const> inputs, Tensor& y) override {
        Tensor& x = *inputs[0];
        std::vector<Number> of_position;
        for_each_position(x, [&](std::size_t first, std::size_t stride) {
            tape_.clear();
            of_position.clear();
            for (std::size_t c = 0; c < x.extent(1); ++c)
                of_position.push_back(tape_.variable(x.value[first + c * stride]));
            Number sum = 0.0;
            for (std::size_t c = 0; c < x.extent(1); ++c)
                sum = sum + Number(y.gradient[first + c * stride]) * normalized(of_position, c);
            const std::vector<double>& derivatives = tape_.derivatives(sum);
            for (std::size_t c = 0; c < x.extent(1); ++c) x.gradient[first + c * stride] += derivatives[c];
        });
    }

  private:
    template <class Real>
    Real normalized(const std::vector<Real>& x, std::size_t c) const {
        using std::pow;
        Real sum = 0.0;
        const std::size_t last = std::min(c + half_, x.size() - 1);
        for (std::size_t d = c < half_ ? 0 : c - half_; d <= last; ++d) sum = sum + x[d] * x[d];
        return x[c] / pow(Real(k_) + Real(a_) * sum, beta_);
    }

    // Calls each(place of the first channel, from one channel to the next).
    template <class Each>
    static void for_each_position(const Tensor& x, Each&& each) {
        const std::size_t plane = x.extent(2) * x.extent(3), features = x.extent(1) * plane;
        for (std::size_t n = 0; n < x.extent(0); ++n)
            for (std::size_t i = 0; i < plane; ++i) each(n * features + i, plane);
    }

    const std::size_t half_;
    const double a_, beta_, k_;
    Tape tape_;
};

}  // namespace timetrial::reference
