// relu and its like, tanh, sigmoid and flatten: layers that treat each value alone.
//
// Each derivative is written in terms of the output, so a dense or convolution primitive in front may apply
// the function to its result before it stores it, and the gradient is multiplied in place.
#pragma once

#include "onednn/layer.h"

namespace timetrial::onednn {

class Activation final : public Layer {
  public:
    // `derivative`: the algorithm that finds the derivative from the output, with the same numbers.
    Activation(const Eltwise& function, dnnl::algorithm derivative)
        : function_(function), derivative_{derivative, function.alpha, function.beta} {}

    const Eltwise& function() const { return function_; }
    bool is_relu() const {
        return function_.algorithm == dnnl::algorithm::eltwise_relu && function_.alpha == 0;
    }

    void build_forward(Builder& builder, const Inputs& inputs, Node& output) override {
        Node& input = *inputs[0];
        input.is_overwritten = input.fused || may_write_over(input);
        const Tensor& source = input.value.made();
        output.value = Value(input.is_overwritten ? source : allocate(builder.engine(), source.desc));
        if (input.fused) return;
        const Form form = append(builder, builder.forward, input, output);
        builder.facts.emplace_back(output.purpose(TT_DIRECTION_FORWARD).text(), form.text());
    }

    void build_again(Builder& builder, const Inputs& inputs, Node& output) override {
        output.value = Value(inputs[0]->value.made());
        if (!inputs[0]->fused) append(builder, builder.backward, *inputs[0], output);
    }

    void build_backward(Builder& builder, const Inputs& inputs, Node& output) override {
        Node& input = *inputs[0];
        if (!input.learns) return;
        if (!is_done_ && !input.masks_gradient) mask(builder, output, output);
        const Purpose purpose = output.purpose(TT_DIRECTION_BACKWARD_DATA);
        hand_back(builder, purpose, input,
                  builder.in(builder.backward, purpose, output.gradient, input.value.desc(), "gradient"));
    }

    // A relu in front of max pooling: the gradient that pooling is about to scatter is multiplied instead of
    // the scattered one, which is several times larger. Where the largest value of a window is 0 the gradient
    // is 0, and elsewhere the largest value is the one that passes it on: the same result. Only for a relu
    // that nobody else reads.
    void build_backward_behind_pooling(Builder& builder, const Node& relu, Node& pool) {
        mask(builder, relu, pool);
        is_done_ = true;
    }

  private:
    Form append(Builder& builder, std::vector<Operation>& program, Node& input, const Node& output) const {
        const Desc& desc = input.value.desc();
        const auto description = describe_forward(builder, function_, desc);
        const Form form{description.impl_info_str(),
                        {{DNNL_ARG_SRC, desc}},
                        {{DNNL_ARG_DST, desc}},
                        description.scratchpad_desc(),
                        [description] { return dnnl::eltwise_forward(description); }};
        builder.append(program, output.purpose(TT_DIRECTION_FORWARD), form, {{DNNL_ARG_SRC, &input.value}},
                       {{DNNL_ARG_DST, &output.value.made()}});
        return form;
    }

    // at.gradient *= derivative at the value that stands there, as work of the node `of`.
    void mask(Builder& builder, const Node& of, Node& at) {
        const Purpose purpose = of.purpose(TT_DIRECTION_BACKWARD_DATA);
        const Desc& desc = at.value.desc();
        Tensor gradient = builder.in(builder.backward, purpose, at.gradient, desc, "gradient");
        if (gradient.is_shared) gradient = builder.lend(desc);
        const auto hint = describe_forward(builder, derivative_, desc);
        const auto description =
            describe_eltwise_backward(builder.engine(), builder.attributes(), hint, derivative_, desc);
        const Form form{description.impl_info_str(),
                        {{DNNL_ARG_DST, desc}, {DNNL_ARG_DIFF_DST, desc}},
                        {{DNNL_ARG_DIFF_SRC, desc}},
                        description.scratchpad_desc(),
                        [description] { return dnnl::eltwise_backward(description); }};
        builder.facts.emplace_back(purpose.text(), form.text());
        builder.append(builder.backward, purpose, form,
                       {{DNNL_ARG_DST, &at.value}, {DNNL_ARG_DIFF_DST, &at.gradient}},
                       {{DNNL_ARG_DIFF_SRC, &gradient}});
        at.gradient = Value(gradient);  // other copies are not multiplied
    }

    static Described<dnnl::eltwise_forward> describe_forward(const Builder& builder, const Eltwise& function,
                                                             const Desc& desc) {
        return describe_eltwise(builder.engine(), builder.attributes(), builder.purpose(), function, desc);
    }

    const Eltwise function_, derivative_;
    bool is_done_ = false;
};

// No copy: images in a plain format become flat, others keep their format and extents, which a dense layer
// reads as they are.
class Flatten final : public LayerOfOne {
  public:
    void build_forward(Builder& builder, Node& input, Node& output) override {
        const Tensor& source = input.value.made();
        output.value = Value(source.desc == plain(dims_of(source.desc))
                                 ? alias(builder.engine(), source, plain(output.shape))
                                 : source);
    }

    void build_backward(Builder& builder, Node& input, Node& output) override {
        if (!input.learns) return;
        const Purpose purpose = output.purpose(TT_DIRECTION_BACKWARD_DATA);
        const Tensor& gradient =
            builder.in(builder.backward, purpose, output.gradient, output.value.desc(), "gradient");
        hand_back(builder, purpose, input, alias(builder.engine(), gradient, input.value.desc()));
    }
};

}  // namespace timetrial::onednn
