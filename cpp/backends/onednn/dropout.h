// dropout, by oneDNN's product of two tensors: y = m * x while it learns, with the mask m that the batch
// brings; y = x in inference.
#pragma once

#include "onednn/join.h"

namespace timetrial::onednn {

// Inputs: x, and the mask.
class Dropout final : public Join {
  public:
    void build_forward(Builder& builder, const Inputs& inputs, Node& output) override {
        const Purpose purpose = output.purpose(TT_DIRECTION_FORWARD);
        Value& source = *sources(builder, {inputs[0]}, purpose).front();
        const Desc desc = source.desc();
        if (!builder.learns()) {
            output.value = source;
            return;
        }
        output.value = Value(allocate(builder.engine(), desc));
        builder.runs = Runs::kTraining;
        multiply(builder, builder.forward, purpose, source, inputs[1]->value, output.value.made());
        builder.runs = Runs::kInference;
        builder.copy(builder.forward, purpose, source.made(), output.value.made());
        builder.runs = Runs::kAlways;
    }

    void build_backward(Builder& builder, const Inputs& inputs, Node& output) override {
        if (!inputs[0]->learns) return;
        const Purpose purpose = output.purpose(TT_DIRECTION_BACKWARD_DATA);
        Value gradient(builder.lend(output.value.desc()));
        multiply(builder, builder.backward, purpose, output.gradient, inputs[1]->value, gradient.made());
        hand_back(builder, purpose, *inputs[0], part_of(builder, purpose, gradient, *inputs[0]));
    }

  private:
    static void multiply(Builder& builder, std::vector<Operation>& program, const Purpose& purpose,
                         Value& factor, Value& mask, const Tensor& product) {
        const Desc& desc = product.desc;
        const auto description = describe_product(builder.engine(), builder.attributes(), desc);
        const Form form{description.impl_info_str(),
                        {{DNNL_ARG_SRC_0, desc}, {DNNL_ARG_SRC_1, desc}},
                        {{DNNL_ARG_DST, desc}},
                        description.scratchpad_desc(),
                        [description] { return dnnl::binary(description); }};
        builder.facts.emplace_back(purpose.text(), form.text());
        builder.append(program, purpose, form, {{DNNL_ARG_SRC_0, &factor}, {DNNL_ARG_SRC_1, &mask}},
                       {{DNNL_ARG_DST, &product}});
    }
};

}  // namespace timetrial::onednn
