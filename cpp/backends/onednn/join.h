// add and concat, by oneDNN's sum and concat.
#pragma once

#include <deque>
#include <optional>
#include <utility>

#include "onednn/layer.h"

namespace timetrial::onednn {

class Join : public Layer {
  public:
    bool needs_its_output() const override { return false; }

  protected:
    // The inputs with the extents that the outside knows: a flatten hands on images as they are.
    std::vector<Value*> sources(Builder& builder, const Inputs& inputs, const Purpose& purpose) {
        std::vector<Value*> found;
        for (Node* input : inputs) {
            if (is_as_outside(*input)) {
                found.push_back(&input->value);
                continue;
            }
            const Desc images = plain(dims_of(input->value.desc()));
            const Tensor& source = builder.in(builder.forward, purpose, input->value, images, "source");
            flat_.emplace_back(alias(builder.engine(), source, plain(input->shape)));
            found.push_back(&flat_.back());
        }
        return found;
    }

    // The part of an input's gradient that `from` is, in the format of the input.
    static Tensor part_of(Builder& builder, const Purpose& purpose, Value& from, const Node& input) {
        const Desc& wanted = input.value.desc();
        if (is_as_outside(input)) return builder.in(builder.backward, purpose, from, wanted, "gradient");
        const Tensor& flat = builder.in(builder.backward, purpose, from, plain(input.shape), "gradient");
        Value images(alias(builder.engine(), flat, plain(dims_of(wanted))));
        return builder.in(builder.backward, purpose, images, wanted, "gradient");
    }

  private:
    static bool is_as_outside(const Node& node) {
        return dims_of(node.value.desc()).size() == node.shape.size();
    }

    std::deque<Value> flat_;  // references stay good while it grows
};

class Add final : public Join {
  public:
    void build_forward(Builder& builder, const Inputs& inputs, Node& output) override {
        const Purpose purpose = output.purpose(TT_DIRECTION_FORWARD);
        std::vector<Value*> values = sources(builder, inputs, purpose);
        // Plain images among others come to the format of those.
        Desc desc = values.front()->desc();
        for (const Value* value : values)
            if (desc == plain(output.shape)) desc = value->desc();
        std::optional<Tensor> over;
        for (std::size_t k = 0; k < inputs.size() && !over; ++k) {
            if (!may_write_over(*inputs[k]) || values[k] != &inputs[k]->value || values[k]->desc() != desc)
                continue;
            over = values[k]->made();
            inputs[k]->is_overwritten = true;
            std::swap(values[k], values.front());  // the only one that oneDNN writes over
        }
        output.value = Value(over ? *over : allocate(builder.engine(), desc));
        append_sum(builder, builder.forward, purpose, purpose.text(), values, output.value.made());
    }

    // The output's gradient is that of each input: handed back without a copy, hence shared.
    void build_backward(Builder& builder, const Inputs& inputs, Node& output) override {
        const Purpose purpose = output.purpose(TT_DIRECTION_BACKWARD_DATA);
        for (Node* input : inputs) {
            if (!input->learns) continue;
            Tensor part = part_of(builder, purpose, output.gradient, *input);
            part.is_shared = true;
            hand_back(builder, purpose, *input, part);
        }
    }
};

class Concat final : public Join {
  public:
    void build_forward(Builder& builder, const Inputs& inputs, Node& output) override {
        const Purpose purpose = output.purpose(TT_DIRECTION_FORWARD);
        const std::vector<Value*> values = sources(builder, inputs, purpose);
        std::vector<Desc> descs;
        for (const Value* value : values) descs.push_back(value->desc());
        const auto description = describe_concat(builder.engine(), builder.attributes(),
                                                 builder.handed_on(output.shape), axis, descs);
        Form form{description.impl_info_str(),
                  {},
                  {{DNNL_ARG_DST, description.dst_desc()}},
                  description.scratchpad_desc(),
                  [description] { return dnnl::concat(description); }};
        std::map<int, Value*> reads;
        for (std::size_t k = 0; k < values.size(); ++k) {
            const int argument = DNNL_ARG_MULTIPLE_SRC + static_cast<int>(k);
            form.reads.push_back({argument, descs[k]});
            reads[argument] = values[k];
        }
        output.value = Value(allocate(builder.engine(), description.dst_desc()));
        builder.facts.emplace_back(purpose.text(), form.text());
        builder.append(builder.forward, purpose, form, reads, {{DNNL_ARG_DST, &output.value.made()}});
    }

    void build_backward(Builder& builder, const Inputs& inputs, Node& output) override {
        const Purpose purpose = output.purpose(TT_DIRECTION_BACKWARD_DATA);
        // Where an input begins inside a block of channels, its part can only be cut out of the plain form.
        Desc whole = output.gradient.desc();
        for (std::size_t k = 0; k < inputs.size(); ++k)
            if (!is_valid(slice(whole, inputs, k))) whole = plain(output.shape);
        const Tensor& gradient =
            builder.in(builder.backward, purpose, output.gradient, whole, "destination gradient");
        for (std::size_t k = 0; k < inputs.size(); ++k) {
            if (!inputs[k]->learns) continue;
            const Tensor cut = alias(builder.engine(), gradient, slice(whole, inputs, k));
            const bool fits = dims_of(inputs[k]->value.desc()) == inputs[k]->shape;
            Value part(builder.lend(fits ? inputs[k]->value.desc() : plain(inputs[k]->shape)));
            builder.copy(builder.backward, purpose, cut, part.made());
            hand_back(builder, purpose, *inputs[k], part_of(builder, purpose, part, *inputs[k]));
        }
        builder.facts.emplace_back(purpose.text(), "reorder of each input's channels " + format_of(whole));
    }

  private:
    static constexpr int axis = 1;

    // The channels of one input; not valid where the format does not let them be cut out.
    static Desc slice(const Desc& whole, const Inputs& inputs, std::size_t which) {
        dnnl::memory::dims offset(dims_of(whole).size(), 0);
        for (std::size_t k = 0; k < which; ++k) offset[axis] += inputs[k]->shape[axis];
        return whole.submemory_desc(inputs[which]->shape, offset, true);
    }
};

}  // namespace timetrial::onednn
