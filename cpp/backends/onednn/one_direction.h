// A recurrent layer in one direction, by oneDNN's own primitives (cells.h). Its primitives know no lengths,
// in either direction: in reverse each sample is turned round within its own length, goes from left to right,
// and what comes of it is turned back. Weights lie as the outside has them, G x O x F, which the way back
// reads as they are; forward reads a copy in the library's format, made in each step. Where its gates have
// another order, weights and their gradients are copied into it and back.
//
// States at both ends are given, though where no layer is stateful they are 0 and nobody reads them: without,
// version 3.2 makes a gradient of an LSTM's recurrent weight that is wrong.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "onednn/cells.h"
#include "onednn/sequences.h"
#include "onednn/step_counts.h"
#include "timetrial/directions.hpp"

namespace timetrial::onednn {

// Of each row of the output it gives `units` numbers, from `column` on.
template <class Cell>
class OneDirection {
  public:
    OneDirection(const Attributes& attributes, TimeDirection direction, std::int64_t column)
        : units_(attributes.integer("units")),
          gives_all_(attributes.word("output") == "all"),
          direction_(direction),
          column_(column) {}

    // Appends what makes its part of output.value, which is there. `kept`: states of a stateful layer.
    // `state`: a node that gives h in front of the first step, or null.
    void build_forward(Builder& builder, const Inputs& inputs, Node& output,
                       std::span<const std::unique_ptr<Parameter>> own,
                       std::span<const std::unique_ptr<Parameter>> kept, Node* state) {
        const Purpose purpose = output.purpose(TT_DIRECTION_FORWARD);
        const Steps of(inputs[0]->shape);
        parameters_ = own;
        width_ = output.shape.back();
        for (const auto& one : parameters_) keep_plain(builder, *one);
        const auto& engine = builder.engine();
        source_ = Value(allocate(engine, plain({of.steps, of.batch, of.features})));
        states_ = Value(allocate(engine, plain({of.steps, of.batch, units_})));
        const Tensor from =
            builder.in(builder.forward, purpose, inputs[0]->value, plain(inputs[0]->shape), "source");
        counts_.emplace(builder.way(), inputs, of);
        const auto tally = column_ == 0 ? builder.tally.add(inputs.size() > 1) : nullptr;
        append_own(builder, builder.forward, purpose,
                   [this, of, from, tally, lengths = Lengths(inputs, of), to = source_.made()] {
                       counts_->choose();
                       if (tally) *tally += of.batch * counts_->steps();
                       turn(lengths, of, from.data(), to.data());
                   });
        for (Value* one : {&zeros_, &start_, &start_cell_}) *one = Value(allocate(engine, state_desc(of)));
        const Tensor end = allocate(engine, state_desc(of)), end_cell = allocate(engine, state_desc(of));
        const Tensor starts[] = {start_.made(), start_cell_.made()}, ends[] = {end, end_cell};
        for (std::size_t i = 0; i < kept.size(); ++i) go_on(builder, purpose, *kept[i], starts[i]);
        if (state != nullptr)
            append_own(builder, builder.forward, purpose,
                       [start = start_.made(), from = builder.in(builder.forward, purpose, state->value,
                                                                 plain(state->shape), "state")] {
                           copy(from, start);
                       });
        arrange_biases(builder, purpose);
        weights_ = arranged(builder, purpose, *parameters_[0], of.features);
        recurrent_ = arranged(builder, purpose, *parameters_[1], units_);
        make_parts(builder, of);
        const auto& whole = parts_.front().forward;
        // Once, for whichever part runs: most want the same format, a GRU in inference not for one step.
        for (const Part& part : parts_) {
            builder.in(builder.forward, purpose, weights_, part.forward.weights_layer_desc(), "weights");
            builder.in(builder.forward, purpose, recurrent_, part.forward.weights_iter_desc(),
                       "recurrent weights");
        }
        if (column_ == 0)  // both directions alike
            builder.facts.emplace_back(
                purpose.text(),
                std::string(whole.impl_info_str()) + ", " +
                    computed_words(inputs.size() > 1 ? builder.way() : Way::kPadded, of.steps) +
                    (keeps_order ? "" : ", gates copied into its order"));
        append_parts(builder, builder.forward, purpose, [&](std::vector<Operation>& program, Part& part) {
            const auto& description = part.forward;
            Form form{description.impl_info_str(),
                      ports(part, description),
                      {{DNNL_ARG_DST_LAYER, part.states.desc()}, {DNNL_ARG_DST_ITER, end.desc}},
                      description.scratchpad_desc(),
                      [description] { return typename Cell::Forward(description); }};
            std::map<int, const Tensor*> writes{{DNNL_ARG_DST_LAYER, &part.states.made()},
                                                {DNNL_ARG_DST_ITER, &end}};
            if (Cell::has_cell_state) {
                form.writes.push_back({DNNL_ARG_DST_ITER_C, end_cell.desc});
                writes[DNNL_ARG_DST_ITER_C] = &end_cell;
            }
            if (builder.learns()) {
                form.writes.push_back({DNNL_ARG_WORKSPACE, part.workspace.desc()});
                writes[DNNL_ARG_WORKSPACE] = &part.workspace.made();
            }
            builder.append(program, purpose, form, reads(part), writes);
        });
        end_ = Value(end), end_cell_ = Value(end_cell);
        for (std::size_t i = 0; i < kept.size(); ++i)
            append_training(builder, purpose,
                            [to = kept[i]->value.made(), from = ends[i]] { copy(from, to); });
        append_own(builder, builder.forward, purpose,
                   [this, of, lengths = Lengths(inputs, of), hidden = states_.made(),
                    to = output.value.made()] { show(lengths, of, hidden.data(), to.data()); });
    }

    // Behind build_backward(): the gradient of h in front of the first step, N x H.
    Tensor start_gradient(const Builder& builder, const Shape& shape) const {
        return alias(builder.engine(), of_start_, plain(shape));
    }

    // `of_input`: the gradient of the input, to which that of a second direction is added; without memory
    // where nobody asks for it.
    void build_backward(Builder& builder, const Inputs& inputs, Node& output, const Tensor& of_input) {
        const Purpose purpose = output.purpose(TT_DIRECTION_BACKWARD);
        const Steps of(inputs[0]->shape);
        const auto& engine = builder.engine();
        const Tensor gradient =
            builder.in(builder.backward, purpose, output.gradient, plain(output.shape), "gradient");
        of_states_ = allocate(engine, states_.desc());
        append_own(builder, builder.backward, purpose,
                   [this, of, gradient, lengths = Lengths(inputs, of), to = of_states_] {
                       std::fill_n(to.data(), counts_->steps() * of.batch * units_, 0.0F);
                       hide(lengths, of, gradient.data(), to.data());
                   });
        const auto whole = backward_of(builder, parts_.front(), of);
        of_source_ = allocate(engine, source_.desc());
        const Tensor of_start = allocate(engine, start_.desc()), of_cell = allocate(engine, start_.desc());
        of_start_ = of_start;
        const Tensor of_weights = allocate(engine, whole.diff_weights_layer_desc());
        const Tensor of_recurrent = allocate(engine, whole.diff_weights_iter_desc());
        const Tensor of_bias = allocate(engine, bias_.desc());
        builder.in(builder.backward, purpose, weights_, whole.weights_layer_desc(), "weights");
        builder.in(builder.backward, purpose, recurrent_, whole.weights_iter_desc(), "recurrent weights");
        const std::vector<Tensor> added{of_weights, of_recurrent, of_bias};  // to what is there
        append_own(builder, builder.backward, purpose, [added] {
            for (const Tensor& one : added) std::memset(one.data(), 0, one.desc.get_size());
        });
        if (column_ == 0) builder.facts.emplace_back(purpose.text(), whole.impl_info_str());
        append_parts(builder, builder.backward, purpose, [&](std::vector<Operation>& program, Part& part) {
            const auto description = backward_of(builder, part, of);
            if (description.diff_weights_layer_desc() != of_weights.desc ||
                description.diff_weights_iter_desc() != of_recurrent.desc)
                throw another_format();
            const Tensor part_of_source = alias(engine, of_source_, part.source.desc());
            Value part_of_states(alias(engine, of_states_, part.states.desc()));
            std::vector<Port> asked = ports(part, description);
            asked.insert(asked.end(), {{DNNL_ARG_DST_LAYER, part.states.desc()},
                                       {DNNL_ARG_DST_ITER, start_.desc()},
                                       {DNNL_ARG_DIFF_DST_LAYER, part.states.desc()},
                                       {DNNL_ARG_DIFF_DST_ITER, start_.desc()},
                                       {DNNL_ARG_WORKSPACE, part.workspace.desc()}});
            Form form{description.impl_info_str(),
                      asked,
                      {{DNNL_ARG_DIFF_SRC_LAYER, part_of_source.desc},
                       {DNNL_ARG_DIFF_SRC_ITER, of_start.desc},
                       {DNNL_ARG_DIFF_WEIGHTS_LAYER, of_weights.desc},
                       {DNNL_ARG_DIFF_WEIGHTS_ITER, of_recurrent.desc},
                       {DNNL_ARG_DIFF_BIAS, of_bias.desc}},
                      description.scratchpad_desc(),
                      [description] { return typename Cell::Backward(description); }};
            std::map<int, Value*> read = reads(part);
            read.insert({{DNNL_ARG_DST_LAYER, &part.states},
                         {DNNL_ARG_DST_ITER, &end_},
                         {DNNL_ARG_DIFF_DST_LAYER, &part_of_states},
                         {DNNL_ARG_DIFF_DST_ITER, &zeros_},
                         {DNNL_ARG_WORKSPACE, &part.workspace}});
            std::map<int, const Tensor*> writes{{DNNL_ARG_DIFF_SRC_LAYER, &part_of_source},
                                                {DNNL_ARG_DIFF_SRC_ITER, &of_start},
                                                {DNNL_ARG_DIFF_WEIGHTS_LAYER, &of_weights},
                                                {DNNL_ARG_DIFF_WEIGHTS_ITER, &of_recurrent},
                                                {DNNL_ARG_DIFF_BIAS, &of_bias}};
            if (Cell::has_cell_state) {
                form.reads.insert(form.reads.end(), {{DNNL_ARG_DST_ITER_C, start_.desc()},
                                                     {DNNL_ARG_DIFF_DST_ITER_C, start_.desc()}});
                form.writes.push_back({DNNL_ARG_DIFF_SRC_ITER_C, of_cell.desc});
                read.insert({{DNNL_ARG_DST_ITER_C, &end_cell_}, {DNNL_ARG_DIFF_DST_ITER_C, &zeros_}});
                writes[DNNL_ARG_DIFF_SRC_ITER_C] = &of_cell;
            }
            builder.append(program, purpose, form, read, writes);
        });
        hand_back_weights(builder, purpose, of_weights, *parameters_[0], of.features, "weight gradient");
        hand_back_weights(builder, purpose, of_recurrent, *parameters_[1], units_,
                          "recurrent weight gradient");
        hand_back_biases(builder, purpose, of_bias);
        if (!of_input.memory) return;
        append_own(builder, builder.backward, purpose,
                   [this, of, lengths = Lengths(inputs, of), to = of_input] {
                       turn_back(lengths, of, of_source_.data(), to.data());
                   });
    }

  private:
    static constexpr auto gates = static_cast<std::int64_t>(Cell::order.size());
    static constexpr bool keeps_order = std::ranges::is_sorted(Cell::order);

    // L x D x I x G x O, one layer in one direction.
    dnnl::memory::dims weights(std::int64_t inputs) const { return {1, 1, inputs, gates, units_}; }
    Desc as_outside(std::int64_t inputs) const {
        const std::int64_t all = gates * units_ * inputs;
        return {weights(inputs), f32, dnnl::memory::dims{all, all, 1, units_ * inputs, inputs}};
    }
    Desc state_desc(const Steps& of) const { return plain({1, 1, of.batch, units_}); }

    // For so many steps: a primitive, and its part of what lies along time. The first is for all there are.
    struct Part {
        Described<typename Cell::Forward> forward;
        Value source, states, workspace;
    };

    void make_parts(const Builder& builder, const Steps& of) {
        const auto& engine = builder.engine();
        for (const std::int64_t steps : counts_->all()) {
            Value source(alias(engine, source_.made(), plain({steps, of.batch, of.features})));
            Value states(alias(engine, states_.made(), plain({steps, of.batch, units_})));
            auto forward = Cell::forward(engine, builder.attributes(), builder.purpose(),
                                         formats(of, source.desc(), states.desc()));
            Value workspace;
            if (builder.learns()) {
                const Desc desc = forward.workspace_desc();
                const bool fits =
                    !parts_.empty() && desc.get_size() <= parts_.front().workspace.desc().get_size();
                workspace = Value(fits ? alias(engine, parts_.front().workspace.made(), desc)
                                       : allocate(engine, desc));
            }
            parts_.push_back(
                {std::move(forward), std::move(source), std::move(states), std::move(workspace)});
        }
    }
    auto backward_of(const Builder& builder, const Part& part, const Steps& of) const {
        return Cell::backward(builder.engine(), builder.attributes(), part.forward,
                              formats(of, part.source.desc(), part.states.desc()));
    }
    static std::runtime_error another_format() {
        return std::runtime_error(
            "oneDNN wants weights in another format for fewer steps: take lengths=padded");
    }

    // `append(program, part)` for each; of these programs a step runs the one that its batch asks for.
    template <typename Append>
    void append_parts(const Builder& builder, std::vector<Operation>& program, const Purpose& purpose,
                      Append append) {
        std::vector<std::vector<Operation>> each(parts_.size());
        for (std::size_t i = 0; i < parts_.size(); ++i) append(each[i], parts_[i]);
        program.push_back({purpose.node, purpose.direction,
                           [this, each = std::move(each)] {
                               for (const Operation& one : each[counts_->chosen()]) one.run();
                           },
                           builder.runs});
    }

    RecurrentFormats formats(const Steps& of, const Desc& source, const Desc& states) const {
        return {source, start_.desc(), any(weights(of.features)), any(weights(units_)), bias_.desc(), states};
    }

    // What both ways read: its formats, and where it lies.
    template <typename Description>
    std::vector<Port> ports(const Part& part, const Description& description) const {
        std::vector<Port> all{{DNNL_ARG_SRC_LAYER, part.source.desc()},
                              {DNNL_ARG_SRC_ITER, start_.desc()},
                              {DNNL_ARG_WEIGHTS_LAYER, description.weights_layer_desc()},
                              {DNNL_ARG_WEIGHTS_ITER, description.weights_iter_desc()},
                              {DNNL_ARG_BIAS, bias_.desc()}};
        if (Cell::has_cell_state) all.push_back({DNNL_ARG_SRC_ITER_C, start_.desc()});
        return all;
    }
    std::map<int, Value*> reads(Part& part) {
        std::map<int, Value*> all{{DNNL_ARG_SRC_LAYER, &part.source},
                                  {DNNL_ARG_SRC_ITER, &start_},
                                  {DNNL_ARG_WEIGHTS_LAYER, &weights_},
                                  {DNNL_ARG_WEIGHTS_ITER, &recurrent_},
                                  {DNNL_ARG_BIAS, &bias_}};
        if (Cell::has_cell_state) all[DNNL_ARG_SRC_ITER_C] = &start_cell_;
        return all;
    }

    // While it learns a stateful layer begins with its state; in inference with 0.
    void go_on(Builder& builder, const Purpose& purpose, Parameter& state, const Tensor& start) {
        state.outside = plain(state.shape);
        state.value = Value(allocate(builder.engine(), state.outside));
        append_training(builder, purpose, [from = state.value.made(), start] { copy(from, start); });
        builder.runs = Runs::kInference;
        append_own(builder, builder.forward, purpose,
                   [start] { std::fill_n(start.data(), start.stored_elements(), 0.0F); });
        builder.runs = Runs::kAlways;
    }
    static void append_training(Builder& builder, const Purpose& purpose, std::function<void()> run) {
        builder.runs = Runs::kTraining;
        append_own(builder, builder.forward, purpose, std::move(run));
        builder.runs = Runs::kAlways;
    }
    static void copy(const Tensor& from, const Tensor& to) {
        std::copy_n(from.data(), from.stored_elements(), to.data());
    }

    // A weight in the primitive's order of gates.
    Value arranged(Builder& builder, const Purpose& purpose, Parameter& weight, std::int64_t inputs) {
        if (keeps_order) return Value(alias(builder.engine(), weight.value.made(), as_outside(inputs)));
        Value made(allocate(builder.engine(), as_outside(inputs)));
        append_own(builder, builder.forward, purpose,
                   [size = units_ * inputs, from = weight.value.made(), to = made.made()] {
                       for (std::size_t g = 0; g < Cell::order.size(); ++g)
                           std::copy_n(gate(from, Cell::order[g], size), size, gate(to, g, size));
                   });
        return made;
    }
    // Its gradient in ours.
    void hand_back_weights(Builder& builder, const Purpose& purpose, const Tensor& made, Parameter& weight,
                           std::int64_t inputs, const std::string& what) {
        const Desc outside = as_outside(inputs);
        if (keeps_order) {
            builder.append_reorder(builder.backward, purpose, made,
                                   alias(builder.engine(), weight.gradient, outside), what);
            return;
        }
        const Tensor theirs = allocate(builder.engine(), outside);
        builder.append_reorder(builder.backward, purpose, made, theirs, what);
        append_own(builder, builder.backward, purpose,
                   [size = units_ * inputs, theirs, to = weight.gradient] {
                       for (std::size_t g = 0; g < Cell::order.size(); ++g)
                           std::copy_n(gate(theirs, g, size), size, gate(to, Cell::order[g], size));
                   });
    }
    static float* gate(const Tensor& of, std::size_t which, std::int64_t size) {
        return of.data() + static_cast<std::int64_t>(which) * size;
    }

    // The primitive's biases: the only one of ours, the sum of both, or zeros.
    void arrange_biases(Builder& builder, const Purpose& purpose) {
        const auto count = static_cast<std::int64_t>(Cell::biases.size());
        bias_ = Value(allocate(builder.engine(), plain({1, 1, count, units_})));
        if (parameters_.size() == 2) return;
        std::vector<Tensor> ours;
        for (std::size_t i = 2; i < parameters_.size(); ++i) ours.push_back(parameters_[i]->value.made());
        append_own(builder, builder.forward, purpose, [units = units_, ours, to = bias_.made()] {
            std::fill_n(to.data(), to.stored_elements(), 0.0F);
            for (std::size_t place = 0; place < Cell::biases.size(); ++place)
                for (std::size_t which = 0; which < ours.size(); ++which) {
                    if (!is_in(which, place)) continue;
                    const float* from = gate(ours[which], Cell::biases[place].gate, units);
                    for (std::int64_t i = 0; i < units; ++i) gate(to, place, units)[i] += from[i];
                }
        });
    }
    void hand_back_biases(Builder& builder, const Purpose& purpose, const Tensor& of_bias) {
        for (std::size_t which = 0; which + 2 < parameters_.size(); ++which)
            append_own(builder, builder.backward, purpose,
                       [which, units = units_, of_bias, to = parameters_[which + 2]->gradient] {
                           for (std::size_t place = 0; place < Cell::biases.size(); ++place)
                               if (is_in(which, place))
                                   std::copy_n(gate(of_bias, place, units), units,
                                               gate(to, Cell::biases[place].gate, units));
                       });
    }
    // Whether our first or second bias is part of the primitive's at a place.
    static bool is_in(std::size_t which, std::size_t place) {
        return which == 0 ? Cell::biases[place].has_first : Cell::biases[place].has_second;
    }

    // f(row of N x T, row of T x N), in which a sample begins at step 0; of all steps that are computed.
    template <typename F>
    void for_each_row(const Lengths& lengths, const Steps& of, F&& f) const {
        for (std::int64_t n = 0; n < of.batch; ++n) {
            const std::int64_t count = lengths.of(n);
            for (std::int64_t t = 0; t < counts_->steps(); ++t)
                f(n * of.steps + place_of_step(direction_, t, count), t * of.batch + n);
        }
    }

    // N x T x F to T x N x F.
    void turn(const Lengths& lengths, const Steps& of, const float* from, float* to) const {
        for_each_row(lengths, of, [&](std::int64_t outside, std::int64_t row) {
            std::copy_n(from + outside * of.features, of.features, to + row * of.features);
        });
    }
    void turn_back(const Lengths& lengths, const Steps& of, const float* from, float* to) const {
        for_each_row(lengths, of, [&](std::int64_t outside, std::int64_t row) {
            const float* const source = from + row * of.features;
            float* const target = to + outside * of.features;
            if (column_ == 0) return std::copy_n(source, of.features, target), void();
            for (std::int64_t f = 0; f < of.features; ++f) target[f] += source[f];
        });
        for (std::int64_t n = 0; column_ == 0 && n < of.batch; ++n)
            std::fill_n(to + (n * of.steps + counts_->steps()) * of.features,
                        (of.steps - counts_->steps()) * of.features, 0.0F);
    }

    // f(row of the output, row of the states T x N x H) of every state that the layer gives.
    template <typename F>
    void for_each_shown(const Lengths& lengths, const Steps& of, F&& f) const {
        for (std::int64_t n = 0; n < of.batch; ++n) {
            const std::int64_t count = lengths.of(n);
            for (std::int64_t t = gives_all_ ? 0 : count - 1; t < count; ++t)
                f(gives_all_ ? n * of.steps + place_of_step(direction_, t, count) : n, t * of.batch + n);
        }
    }

    void show(const Lengths& lengths, const Steps& of, const float* hidden, float* to) const {
        for_each_shown(lengths, of, [&](std::int64_t shown, std::int64_t row) {
            std::copy_n(hidden + row * units_, units_, to + shown * width_ + column_);
        });
        if (!gives_all_) return;
        for (std::int64_t n = 0; n < of.batch; ++n)
            for (std::int64_t t = lengths.of(n); t < of.steps; ++t)
                std::fill_n(to + (n * of.steps + t) * width_ + column_, units_, 0.0F);
    }

    // The way back of that, into zeros.
    void hide(const Lengths& lengths, const Steps& of, const float* gradient, float* to) const {
        for_each_shown(lengths, of, [&](std::int64_t shown, std::int64_t row) {
            std::copy_n(gradient + shown * width_ + column_, units_, to + row * units_);
        });
    }

    std::int64_t units_;
    bool gives_all_;
    TimeDirection direction_;
    std::int64_t column_, width_ = 0;
    std::span<const std::unique_ptr<Parameter>> parameters_;
    // Primitives read and write them through aliases, which keep nothing alive.
    Tensor of_source_, of_states_, of_start_;
    Value source_, zeros_, start_, start_cell_, states_, end_, end_cell_, weights_, recurrent_, bias_;
    std::optional<StepCounts> counts_;
    std::vector<Part> parts_;
};

}  // namespace timetrial::onednn
