// What recurrent layers share. For each step t of a sample: sums of the products of its input and of the
// state h before it, some for each unit; and of these, by the formula of a cell, the states behind it. States
// are 0 at first, or what the batch before or another layer left. A step that does not count leaves them as
// they are. In reverse step 0 is a sample's last one that counts.
//
// The gradient goes back through the same steps in reverse: sums are lists of terms (terms.h), the rest is a
// formula of a few numbers (tape.h).
//
// A Cell says of one unit:
//   gates, sums, states   how many of each there are; the first state is h
//   of_input(gate)        the sum to which a gate's product with the input is added, and its bias
//   of_state(gate)        the same of its product with h, and its recurrent bias
//   resets                whether the last gate's product is with s(sum 0) h instead of h
//   next(sums, states)    the states behind a step, of those before it
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "activations.h"
#include "steps.h"
#include "terms.h"
#include "timetrial/backend.hpp"
#include "timetrial/directions.hpp"

namespace timetrial::reference {

// A layer in one direction, with its parameters: it gives `units` of the numbers of a row, from `column` on.
template <class Cell>
class OneDirection {
  public:
    using Parameters = std::span<const std::unique_ptr<Parameter>>;

    OneDirection(const Attributes& attributes, TimeDirection direction, std::size_t column)
        : units_(static_cast<std::size_t>(attributes.integer("units"))),
          gives_all_(attributes.word("output") == "all"),
          direction_(direction),
          column_(column) {}

    // `start`: the states before the first step; none: 0.
    void forward(std::span<Tensor* const> inputs, Tensor& y, Parameters parameters,
                 std::span<const Tensor* const> start) {
        begin(inputs, y, parameters);
        for (std::size_t s = 0; s < start.size(); ++s) before(0)[s].value = start[s]->value;
        for (std::size_t t = 0; t < steps_; ++t) {
            add_up(Forward{}, inputs, t);
            for_each_unit(inputs, t, [&](const Unit& unit) {
                std::array<double, Cell::states> now{};
                for (std::size_t s = 0; s < Cell::states; ++s) now[s] = before(t)[s].value[unit.state];
                if (unit.counts) {
                    std::array<double, Cell::sums> z{};
                    for (std::size_t k = 0; k < Cell::sums; ++k) z[k] = sums_[t].value[unit.sum + k * units_];
                    now = Cell::next(z, now);
                }
                for (std::size_t s = 0; s < Cell::states; ++s) behind(t)[s].value[unit.state] = now[s];
                if (is_shown(unit)) y.value[unit.shown] = now[0];
            });
        }
    }

    // Of a state of every sample: behind the last step, and the gradient in front of the first.
    const Values& last(std::size_t state) { return states_[steps_][state].value; }
    const Values& start_gradient(std::size_t state) { return states_[0][state].gradient; }

    void backward(std::span<Tensor* const> inputs, Tensor& y) {
        for (std::size_t t = steps_; t-- > 0;) {
            for_each_unit(inputs, t, [&](const Unit& unit) {
                if (is_shown(unit)) behind(t)[0].gradient[unit.state] += y.gradient[unit.shown];
                if (unit.counts) return go_back(unit, t);
                for (std::size_t s = 0; s < Cell::states; ++s)
                    before(t)[s].gradient[unit.state] += behind(t)[s].gradient[unit.state];
            });
            add_up(Backward{}, inputs, t);
        }
    }

  private:
    using States = std::vector<Tensor>;
    // Places of a unit of a sample: in the states, of its first sum, in the output.
    struct Unit {
        bool counts, is_last;
        std::size_t state, sum, shown;
    };

    States& before(std::size_t t) { return states_[t]; }
    States& behind(std::size_t t) { return states_[t + 1]; }
    bool is_shown(const Unit& unit) const { return gives_all_ ? unit.counts : unit.is_last; }

    // Everything as before the first step.
    void begin(std::span<Tensor* const> inputs, const Tensor& y, Parameters parameters) {
        const Tensor& x = *inputs[0];
        parameters_ = parameters;
        width_ = y.extent(y.shape.size() - 1);
        steps_ = x.extent(1);
        const auto units = static_cast<int64_t>(units_);
        const Tensor state({x.shape[0], units});
        states_.assign(steps_ + 1, States(Cell::states, state));
        if (Cell::resets) reset_.assign(steps_, state);
        sums_.assign(steps_, Tensor({x.shape[0], static_cast<int64_t>(Cell::sums) * units}));
    }

    // What the gradients of the states behind a step make of the formula; its derivatives are those of the
    // sums and of the states before.
    void go_back(const Unit& unit, std::size_t t) {
        tape_.clear();
        const auto z =
            variables<Cell::sums>([&](std::size_t k) { return sums_[t].value[unit.sum + k * units_]; });
        const auto now =
            variables<Cell::states>([&](std::size_t s) { return before(t)[s].value[unit.state]; });
        const std::array<Number, Cell::states> next = Cell::next(z, now);
        Number all = 0;
        for (std::size_t s = 0; s < Cell::states; ++s)
            all = all + Number(behind(t)[s].gradient[unit.state]) * next[s];
        const std::vector<double>& by = tape_.derivatives(all);
        for (std::size_t k = 0; k < Cell::sums; ++k) sums_[t].gradient[unit.sum + k * units_] += by[k];
        for (std::size_t s = 0; s < Cell::states; ++s)
            before(t)[s].gradient[unit.state] += by[Cell::sums + s];
    }

    template <std::size_t count, class Value>
    std::array<Number, count> variables(Value&& value) {
        return [&]<std::size_t... i>(std::index_sequence<i...>) {
            return std::array<Number, count>{tape_.variable(value(i))...};
        }(std::make_index_sequence<count>());
    }

    // The sums of step t, of the gates in order; backward in the reverse of it.
    template <class Terms>
    void add_up(Terms terms, std::span<Tensor* const> inputs, std::size_t t) {
        for (std::size_t n = 0; n < inputs[0]->extent(0); ++n) {
            const std::size_t count = steps_of(inputs, n);
            if (t >= count) continue;
            const std::size_t row = n * steps_ + place(t, count);
            for (std::size_t k = 0; k < Cell::gates; ++k)
                add_up_gate(terms, *inputs[0], row, t, n, Terms::goes_back ? Cell::gates - 1 - k : k);
        }
    }

    // `from`: the row of x that the step reads.
    template <class Terms>
    void add_up_gate(Terms terms, Tensor& x, std::size_t from, std::size_t t, std::size_t n,
                     std::size_t gate) {
        const bool is_reset = Cell::resets && gate + 1 == Cell::gates;
        if (is_reset && !Terms::goes_back) reset(t, n);
        Tensor &w = *parameters_[0], &u = *parameters_[1], &z = sums_[t];
        Tensor& h = is_reset ? reset_[t] : before(t)[0];
        const std::size_t features = x.extent(2), row = gate * units_;
        const std::size_t of_input = (n * Cell::sums + gate) * units_;
        const std::size_t of_state = (n * Cell::sums + Cell::of_state(gate)) * units_;
        if (parameters_.size() > 2) terms.value({z, of_input, 1}, {*parameters_[2], row, 1}, units_);
        if (parameters_.size() > 3) terms.value({z, of_state, 1}, {*parameters_[3], row, 1}, units_);
        for (std::size_t i = 0; i < units_; ++i) {
            terms.product({z, of_input + i, 0}, {w, (row + i) * features, 1}, {x, from * features, 1},
                          features);
            terms.product({z, of_state + i, 0}, {u, (row + i) * units_, 1}, {h, n * units_, 1}, units_);
        }
        if (is_reset && Terms::goes_back) reset_back(t, n);
    }

    // s(sum 0) h of a sample, whose sum 0 is complete.
    void reset(std::size_t t, std::size_t n) {
        for (std::size_t i = 0; i < units_; ++i)
            reset_[t].value[n * units_ + i] =
                Sigmoid::of(sums_[t].value[n * Cell::sums * units_ + i]) * before(t)[0].value[n * units_ + i];
    }
    void reset_back(std::size_t t, std::size_t n) {
        for (std::size_t i = 0; i < units_; ++i) {
            const std::size_t sum = n * Cell::sums * units_ + i, state = n * units_ + i;
            tape_.clear();
            const Number r = tape_.variable(sums_[t].value[sum]);
            const Number h = tape_.variable(before(t)[0].value[state]);
            const std::vector<double>& by = tape_.derivatives(Sigmoid::of(r) * h);
            sums_[t].gradient[sum] += by[0] * reset_[t].gradient[state];
            before(t)[0].gradient[state] += by[1] * reset_[t].gradient[state];
        }
    }

    template <class Each>
    void for_each_unit(std::span<Tensor* const> inputs, std::size_t t, Each&& each) const {
        for (std::size_t n = 0; n < inputs[0]->extent(0); ++n) {
            const std::size_t count = steps_of(inputs, n);
            const bool counts = t < count;
            const std::size_t row = gives_all_ ? n * steps_ + place(t, count) : n;
            const std::size_t shown = row * width_ + column_;
            for (std::size_t i = 0; i < units_; ++i)
                each(Unit{counts, t + 1 == count, n * units_ + i, n * Cell::sums * units_ + i, shown + i});
        }
    }

    // Of a step, in the sequence.
    std::size_t place(std::size_t t, std::size_t count) const {
        const auto of = [](std::size_t number) { return static_cast<std::int64_t>(number); };
        return static_cast<std::size_t>(place_of_step(direction_, of(t), of(count)));
    }

    std::size_t units_;
    bool gives_all_;
    TimeDirection direction_;
    std::size_t column_, width_ = 0, steps_ = 0;
    Parameters parameters_;
    std::vector<States> states_;  // before each step, and behind the last
    std::vector<Tensor> sums_;    // of each step
    std::vector<Tensor> reset_;   // the same, where the cell resets
    Tape tape_;
};

// What is in front of the first step.
enum class Begins { kAtZero, kAtState, kAtInput };  // 0; its states, where it learns; its second input

template <class Cell, Begins begins = Begins::kAtZero>
class Recurrent final : public Function {
  public:
    explicit Recurrent(const Attributes& attributes) {
        const auto units = static_cast<std::size_t>(attributes.integer("units"));
        for (const TimeDirection one : time_directions(attributes))
            directions_.emplace_back(attributes, one, directions_.size() * units);
    }

    void forward(std::span<Tensor* const> inputs, Tensor& y, Mode mode) override {
        std::fill(y.value.begin(), y.value.end(), 0.0);
        const std::span<const std::unique_ptr<Parameter>> all(parameters);
        const std::size_t each = all.size() / directions_.size();
        std::vector<const Tensor*> start;
        if (begins == Begins::kAtInput) start.push_back(inputs[1]);
        if (begins == Begins::kAtState && mode == Mode::kTraining)
            for (const auto& state : states) start.push_back(state.get());
        for (std::size_t i = 0; i < directions_.size(); ++i)
            directions_[i].forward(sequence_of(inputs), y, all.subspan(i * each, each), start);
    }

    void backward(std::span<Tensor* const> inputs, Tensor& y) override {
        for (OneDirection<Cell>& one : directions_) one.backward(sequence_of(inputs), y);
        if (begins != Begins::kAtInput) return;
        const Values& gradient = directions_[0].start_gradient(0);
        for (std::size_t i = 0; i < gradient.size(); ++i) inputs[1]->gradient[i] += gradient[i];
    }

    void keep_states(std::span<Tensor* const>) override {
        for (std::size_t s = 0; s < states.size(); ++s) states[s]->value = directions_[0].last(s);
    }

  private:
    // And its lengths, where it reads them.
    static std::span<Tensor* const> sequence_of(std::span<Tensor* const> inputs) {
        return begins == Begins::kAtInput ? inputs.first(1) : inputs;
    }

    std::vector<OneDirection<Cell>> directions_;
};

}  // namespace timetrial::reference
