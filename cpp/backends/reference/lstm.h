// lstm: for each step t of a sample, from the states h and c before it (0 at first),
//   z = w x[t] + u h + b        four numbers for each unit, in the order of the gates i, f, g, o
//   c' = s(f) c + s(i) tanh(g),  h' = s(o) tanh(c')      s: the sigmoid
// A step that does not count leaves both states as they are.
//
// The gradient goes back through the same steps in reverse: z is a sum of products (terms.h), the rest a
// formula of five numbers (tape.h).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "activations.h"
#include "steps.h"
#include "terms.h"
#include "timetrial/backend.hpp"

namespace timetrial::reference {

template <class Real>
struct LstmState {
    Real h, c;
};

// Of one unit.
template <class Real>
LstmState<Real> lstm_cell(const std::array<Real, 4>& z, const Real& before) {
    const Real c = Sigmoid::of(z[1]) * before + Sigmoid::of(z[0]) * Tanh::of(z[2]);
    return {Sigmoid::of(z[3]) * Tanh::of(c), c};
}

class Lstm final : public Function {
  public:
    explicit Lstm(const Attributes& attributes)
        : units_(static_cast<std::size_t>(attributes.integer("units"))),
          gives_all_(attributes.word("output") == "all") {}

    void forward(std::span<Tensor* const> inputs, Tensor& y, Mode) override {
        begin(inputs);
        std::fill(y.value.begin(), y.value.end(), 0.0);
        for (std::size_t t = 0; t < steps_; ++t) {
            add_up(Forward{}, inputs, t);
            for_each_unit(inputs, t, [&](const Unit& unit) {
                const double c = before(t).c.value[unit.state];
                LstmState<double> next{before(t).h.value[unit.state], c};
                if (unit.counts) {
                    std::array<double, 4> z{};
                    for (std::size_t g = 0; g < 4; ++g) z[g] = sums_[t].value[unit.sum + g * units_];
                    next = lstm_cell(z, c);
                }
                behind(t).h.value[unit.state] = next.h;
                behind(t).c.value[unit.state] = next.c;
                if (is_shown(unit)) y.value[unit.shown] = next.h;
            });
        }
    }

    void backward(std::span<Tensor* const> inputs, Tensor& y) override {
        for (std::size_t t = steps_; t-- > 0;) {
            for_each_unit(inputs, t, [&](const Unit& unit) {
                double& of_h = behind(t).h.gradient[unit.state];
                const double of_c = behind(t).c.gradient[unit.state];
                if (is_shown(unit)) of_h += y.gradient[unit.shown];
                if (!unit.counts) {
                    before(t).h.gradient[unit.state] += of_h;
                    before(t).c.gradient[unit.state] += of_c;
                    return;
                }
                // What the gradients of h' and c' make of them; its derivatives are the gradients before.
                tape_.clear();
                std::array<Number, 4> z{0, 0, 0, 0};
                for (std::size_t g = 0; g < 4; ++g)
                    z[g] = tape_.variable(sums_[t].value[unit.sum + g * units_]);
                const Number c = tape_.variable(before(t).c.value[unit.state]);
                const LstmState<Number> next = lstm_cell(z, c);
                const std::vector<double>& by =
                    tape_.derivatives(Number(of_h) * next.h + Number(of_c) * next.c);
                for (std::size_t g = 0; g < 4; ++g) sums_[t].gradient[unit.sum + g * units_] += by[g];
                before(t).c.gradient[unit.state] += by[4];
            });
            add_up(Backward{}, inputs, t);
        }
    }

  private:
    struct States {
        Tensor h, c;
    };
    // Places of a unit of a sample: in the states, of its first gate in the sums, in the output.
    struct Unit {
        bool counts, is_last;
        std::size_t state, sum, shown;
    };

    States& before(std::size_t t) { return states_[t]; }
    States& behind(std::size_t t) { return states_[t + 1]; }
    bool is_shown(const Unit& unit) const { return gives_all_ ? unit.counts : unit.is_last; }

    // Everything as before the first step.
    void begin(std::span<Tensor* const> inputs) {
        const Tensor& x = *inputs[0];
        steps_ = x.extent(1);
        const auto units = static_cast<int64_t>(units_);
        states_.assign(steps_ + 1, {Tensor({x.shape[0], units}), Tensor({x.shape[0], units})});
        sums_.assign(steps_, Tensor({x.shape[0], 4 * units}));
    }

    // z of step t.
    template <class Terms>
    void add_up(Terms terms, std::span<Tensor* const> inputs, std::size_t t) {
        Tensor &x = *inputs[0], &z = sums_[t], &h = before(t).h;
        Tensor &w = *parameters[0], &u = *parameters[1];
        const std::size_t features = x.extent(2), gates = 4 * units_;
        for (std::size_t n = 0; n < x.extent(0); ++n) {
            if (t >= steps_of(inputs, n)) continue;
            for (std::size_t bias = 2; bias < parameters.size(); ++bias)
                terms.value({z, n * gates, 1}, {*parameters[bias], 0, 1}, gates);
            for (std::size_t g = 0; g < gates; ++g) {
                const Row to{z, n * gates + g, 0};
                terms.product(to, {w, g * features, 1}, {x, (n * steps_ + t) * features, 1}, features);
                terms.product(to, {u, g * units_, 1}, {h, n * units_, 1}, units_);
            }
        }
    }

    template <class Each>
    void for_each_unit(std::span<Tensor* const> inputs, std::size_t t, Each&& each) const {
        for (std::size_t n = 0; n < inputs[0]->extent(0); ++n) {
            const std::size_t count = steps_of(inputs, n);
            const std::size_t shown = (gives_all_ ? n * steps_ + t : n) * units_;
            for (std::size_t i = 0; i < units_; ++i)
                each(Unit{t < count, t + 1 == count, n * units_ + i, n * 4 * units_ + i, shown + i});
        }
    }

    const std::size_t units_;
    const bool gives_all_;
    std::size_t steps_ = 0;
    std::vector<States> states_;  // before each step, and behind the last
    std::vector<Tensor> sums_;    // z of each step
    Tape tape_;
};

}  // namespace timetrial::reference
