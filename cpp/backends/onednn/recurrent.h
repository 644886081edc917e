// Recurrent layers: one direction (one_direction.h), or two, whose states stand beside each other.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "onednn/one_direction.h"
#include "timetrial/directions.hpp"

namespace timetrial::onednn {

// `continues`: its second input is h in front of its first step.
template <class Cell, bool continues = false>
class Recurrent final : public Layer {
  public:
    explicit Recurrent(const Attributes& attributes) {
        for (const TimeDirection one : time_directions(attributes))
            directions_.emplace_back(
                attributes, one, static_cast<std::int64_t>(directions_.size()) * attributes.integer("units"));
    }

    void build_forward(Builder& builder, const Inputs& inputs, Node& output) override {
        const std::span<const std::unique_ptr<Parameter>> all(parameters);
        const std::size_t each = all.size() / directions_.size();
        output.value = Value(allocate(builder.engine(), plain(output.shape)));
        for (std::size_t i = 0; i < directions_.size(); ++i)
            directions_[i].build_forward(builder, along(inputs), output, all.subspan(i * each, each), states,
                                         continues ? inputs[1] : nullptr);
    }

    void build_backward(Builder& builder, const Inputs& inputs, Node& output) override {
        Node& input = *inputs[0];
        Value made;
        if (input.learns) made = Value(allocate(builder.engine(), plain(input.shape)));
        for (auto& one : directions_)
            one.build_backward(builder, along(inputs), output, input.learns ? made.made() : Tensor{});
        const Purpose purpose = output.purpose(TT_DIRECTION_BACKWARD);
        if (input.learns) hand_back_as(builder, purpose, input, made, "gradient");
        if (!continues || !inputs[1]->learns) return;
        Value of_state(directions_[0].start_gradient(builder, inputs[1]->shape));
        hand_back_as(builder, purpose, *inputs[1], of_state, "state gradient");
    }

  private:
    // The sequence, and its lengths where it reads them.
    static Inputs along(const Inputs& inputs) { return continues ? Inputs{inputs[0]} : inputs; }

    // In the format of what it is the gradient of.
    static void hand_back_as(Builder& builder, const Purpose& purpose, Node& to, Value& made,
                             const std::string& what) {
        hand_back(builder, purpose, to, builder.in(builder.backward, purpose, made, to.value.desc(), what));
    }

    std::vector<OneDirection<Cell>> directions_;
};

}  // namespace timetrial::onednn
