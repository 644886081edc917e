// What dense and the convolutions share: three primitives over weights that live in the format of the forward
// one.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "onednn/in_parts.h"
#include "onednn/layer.h"

namespace timetrial::onednn {

// The formats that a form shall have; any() leaves one to the library.
struct Formats {
    Desc source, weights, bias, destination;
};

class Weighted : public LayerOfOne {
  public:
    void build_forward(Builder& builder, Node& input, Node& output) final {
        extents_ = read_extents(input, output);
        dnnl::primitive_attr attributes = builder.attributes();
        if (output.fused) {
            dnnl::post_ops operations;
            append_eltwise(operations, *output.fused);
            attributes.set_post_ops(operations);
        }
        const Desc& source = input.value.desc();
        const Desc handed_on = builder.handed_on(extents_.destination);
        if (tied && extents_.weights.size() != 2)
            throw Unsupported("layer '" + output.name +
                              "' has the weight of an embedding and reads images: the backend has none such");
        Forms forms(tries_products());
        for (const Desc& read : {source, any(extents_.source)}) {
            add_forward(forms, builder, attributes, {read, any(extents_.weights), bias(), handed_on});
            if (tied) add_forward(forms, builder, attributes, {read, tied->outside, bias(), handed_on});
        }
        // Version 2 has no fast way from plain images to channels last.
        if (!forms.has_fast())
            add_forward(forms, builder, attributes,
                        {any(extents_.source), any(extents_.weights), bias(), any(extents_.destination)});
        const Purpose purpose = output.purpose(TT_DIRECTION_FORWARD);
        Homes homes{{DNNL_ARG_SRC, {source}}};
        if (tied) homes[DNNL_ARG_WEIGHTS] = tied->value.descs();
        const Form form = builder.choose(purpose, forms, homes);
        if (!tied)
            keep(builder, weight(), outside_weights(extents_.weights), form.desc(DNNL_ARG_WEIGHTS),
                 gradient_passes());
        std::map<int, Value*> reads{{DNNL_ARG_SRC, &input.value}, {DNNL_ARG_WEIGHTS, &weight().value}};
        if (has_bias()) {
            Parameter& bias = *parameters.back();
            keep(builder, bias, plain(extents_.bias), form.desc(DNNL_ARG_BIAS));
            reads[DNNL_ARG_BIAS] = &bias.value;
        }
        hand_on(builder, output, form.desc(DNNL_ARG_DST));
        builder.append(builder.forward, purpose, form, reads, {{DNNL_ARG_DST, &output.value.made()}});
    }

    bool needs_its_output() const final { return false; }

    void build_backward(Builder& builder, Node& input, Node& output) final {
        if (input.learns) build_data_gradient(builder, input, output);
        build_weight_gradient(builder, input, output);
    }

  protected:
    struct Extents {
        dnnl::memory::dims source, weights, bias, destination;
    };

    bool has_bias() const { return parameters.size() > (tied ? 0 : 1); }
    Parameter& weight() const { return tied ? *tied : *parameters[0]; }
    // Nobody reads it behind the update that follows this layer's way back.
    bool gradient_passes() const { return !tied && !weight().is_tied; }
    Desc bias() const { return has_bias() ? any(extents_.bias) : Desc(); }
    const Extents& extents() const { return extents_; }

    virtual bool tries_products() const = 0;
    // The weights as they lie outside, with the extents that oneDNN sees.
    virtual Desc outside_weights(const dnnl::memory::dims& extents) const { return plain(extents); }
    virtual Extents read_extents(const Node& input, const Node& output) const = 0;
    virtual void add_forward(Forms& forms, const Builder& builder, const dnnl::primitive_attr& attributes,
                             const Formats& formats) = 0;
    virtual void add_backward_data(Forms& forms, const Builder& builder, const Formats& formats) = 0;
    virtual void add_backward_weights(Forms& forms, const Builder& builder, const Formats& formats) = 0;
    // Behind the library's: the first of equals stays.
    virtual void add_own_weight_gradient(Forms& forms) const { (void)forms; }

    using Ports = std::pair<std::vector<Port>, std::vector<Port>>;

    template <class PrimitiveDesc>
    Ports forward_ports(const PrimitiveDesc& form) const {
        Ports ports{{{DNNL_ARG_SRC, form.src_desc()}, {DNNL_ARG_WEIGHTS, form.weights_desc()}},
                    {{DNNL_ARG_DST, form.dst_desc()}}};
        if (has_bias()) ports.first.push_back({DNNL_ARG_BIAS, form.bias_desc()});
        return ports;
    }
    template <class PrimitiveDesc>
    static Ports data_ports(const PrimitiveDesc& form) {
        return {{{DNNL_ARG_DIFF_DST, form.diff_dst_desc()}, {DNNL_ARG_WEIGHTS, form.weights_desc()}},
                {{DNNL_ARG_DIFF_SRC, form.diff_src_desc()}}};
    }
    template <class PrimitiveDesc>
    Ports weights_ports(const PrimitiveDesc& form) const {
        Ports ports{{{DNNL_ARG_SRC, form.src_desc()}, {DNNL_ARG_DIFF_DST, form.diff_dst_desc()}},
                    {{DNNL_ARG_DIFF_WEIGHTS, form.diff_weights_desc()}}};
        if (has_bias()) ports.second.push_back({DNNL_ARG_DIFF_BIAS, form.diff_bias_desc()});
        return ports;
    }

  private:
    void build_data_gradient(Builder& builder, Node& input, Node& output) {
        const Desc& gradient = output.gradient.desc();
        const Desc& weights = weight().value.desc();
        Forms forms(tries_products());
        add_backward_data(forms, builder, {input.value.desc(), any(extents_.weights), bias(), gradient});
        add_backward_data(forms, builder, {input.value.desc(), weights, bias(), gradient});
        add_backward_data(forms, builder,
                          {any(extents_.source), any(extents_.weights), bias(), any(extents_.destination)});
        const Purpose purpose = output.purpose(TT_DIRECTION_BACKWARD_DATA);
        const Form form = builder.choose(purpose, forms,
                                         {{DNNL_ARG_DIFF_DST, output.gradient.descs()},
                                          {DNNL_ARG_WEIGHTS, {weights}},
                                          {DNNL_ARG_DIFF_SRC, {input.value.desc()}}});
        const Tensor made = builder.lend(input.value.desc());
        Value untied = tied ? Value() : with_lent_copies(weight().value.made());
        builder.append(
            builder.backward, purpose, form,
            {{DNNL_ARG_DIFF_DST, &output.gradient}, {DNNL_ARG_WEIGHTS, tied ? &weight().value : &untied}},
            {{DNNL_ARG_DIFF_SRC, &made}});
        hand_back(builder, purpose, input, made);
    }

    void build_weight_gradient(Builder& builder, Node& input, Node& output) {
        const Desc& gradient = output.gradient.desc();
        const Desc& weights = weight().value.desc();
        Forms forms(tries_products());
        for (const Desc& source : input.value.descs()) {
            add_backward_weights(forms, builder, {source, any(extents_.weights), bias(), gradient});
            add_backward_weights(forms, builder, {source, weights, bias(), gradient});
        }
        add_backward_weights(
            forms, builder, {any(extents_.source), any(extents_.weights), bias(), any(extents_.destination)});
        add_own_weight_gradient(forms);
        Homes homes{{DNNL_ARG_SRC, input.value.descs()},
                    {DNNL_ARG_DIFF_DST, output.gradient.descs()},
                    {DNNL_ARG_DIFF_WEIGHTS, {weights}}};
        std::map<int, const Tensor*> writes{{DNNL_ARG_DIFF_WEIGHTS, &weight().gradient}};
        if (has_bias()) {
            homes[DNNL_ARG_DIFF_BIAS] = {parameters.back()->value.desc()};
            writes[DNNL_ARG_DIFF_BIAS] = &parameters.back()->gradient;
        }
        const Purpose purpose = output.purpose(TT_DIRECTION_BACKWARD_WEIGHTS);
        const Form form = builder.choose(purpose, forms, homes);
        const auto slices = Slices::of(weights);
        if (gradient_passes() && form.is_product() && slices && slices->is_worth_it())
            return append_in_parts(builder, purpose, *slices, {&input.value, &output.gradient}, weight(),
                                   has_bias() ? &parameters.back()->gradient : nullptr);
        if (gradient_passes()) builder.pass(weight());
        builder.append(builder.backward, purpose, form,
                       {{DNNL_ARG_SRC, &input.value}, {DNNL_ARG_DIFF_DST, &output.gradient}}, writes);
    }

    Extents extents_;
};

// What is the same for every forward primitive.
template <class Forward>
class WeightedOver : public Weighted {
  protected:
    // The forward primitive in the formats given.
    virtual Described<Forward> forward(const Builder& builder, const dnnl::primitive_attr& attributes,
                                       const Formats& formats) const = 0;

    void add_forward(Forms& forms, const Builder& builder, const dnnl::primitive_attr& attributes,
                     const Formats& formats) override {
        forms.add<Forward>([&] { return forward(builder, attributes, formats); },
                           [&](const auto& form) { return forward_ports(form); });
    }

    // Of the shape only: the backward forms take their formats from their own arguments.
    const Described<Forward>& hint(const Builder& builder) {
        const Extents& e = extents();
        if (!hint_)
            hint_ = forward(builder, builder.attributes(),
                            {any(e.source), any(e.weights), bias(), any(e.destination)});
        return *hint_;
    }

  private:
    std::optional<Described<Forward>> hint_;
};

}  // namespace timetrial::onednn
