// dense: weights OC x F, or OC x C x H x W where flattened images still lie in their own format.
#pragma once

#include "onednn/weighted.h"

namespace timetrial::onednn {

class Dense final : public WeightedOver<dnnl::inner_product_forward> {
  private:
    bool tries_products() const override { return true; }

    Extents read_extents(const Node& input, const Node& output) const override {
        const dnnl::memory::dims source = dims_of(input.value.desc());
        dnnl::memory::dims weights = source;
        weights[0] = output.shape[1];
        return {source, weights, {output.shape[1]}, output.shape};
    }

    void add_backward_data(Forms& forms, const Builder& builder, const Formats& f) override {
        forms.add<dnnl::inner_product_backward_data>(
            [&] {
                return describe_backward<dnnl::inner_product_backward_data>(
                    builder.engine(), builder.attributes(), hint(builder), f.source, f.weights,
                    f.destination);
            },
            [&](const auto& form) { return data_ports(form); });
    }

    void add_backward_weights(Forms& forms, const Builder& builder, const Formats& f) override {
        forms.add<dnnl::inner_product_backward_weights>(
            [&] {
                return describe_backward<dnnl::inner_product_backward_weights>(
                    builder.engine(), builder.attributes(), hint(builder), f.source, f.weights, f.bias,
                    f.destination);
            },
            [&](const auto& form) { return weights_ports(form); });
    }

    Described<dnnl::inner_product_forward> forward(const Builder& builder,
                                                   const dnnl::primitive_attr& attributes,
                                                   const Formats& f) const override {
        return describe<dnnl::inner_product_forward>(builder.engine(), attributes, builder.purpose(),
                                                     f.source, f.weights, f.bias, f.destination);
    }
};

}  // namespace timetrial::onednn
