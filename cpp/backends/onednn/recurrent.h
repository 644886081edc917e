// Recurrent layers: one direction (one_direction.h), or two, whose states stand beside each other.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "onednn/one_direction.h"
#include "timetrial/directions.hpp"

namespace timetrial::onednn {

template <class Cell>
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
            directions_[i].build_forward(builder, inputs, output, all.subspan(i * each, each), states);
    }

    void build_backward(Builder& builder, const Inputs& inputs, Node& output) override {
        Node& input = *inputs[0];
        Value made;
        if (input.learns) made = Value(allocate(builder.engine(), plain(input.shape)));
        for (auto& one : directions_)
            one.build_backward(builder, inputs, output, input.learns ? made.made() : Tensor{});
        if (!input.learns) return;
        const Purpose purpose = output.purpose(TT_DIRECTION_BACKWARD);
        hand_back(builder, purpose, input,
                  builder.in(builder.backward, purpose, made, input.value.desc(), "gradient"));
    }

  private:
    std::vector<OneDirection<Cell>> directions_;
};

}  // namespace timetrial::onednn
