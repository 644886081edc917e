// conv2d: direct convolution, weights OC x IC x KH x KW.
#pragma once

#include "onednn/weighted.h"

namespace timetrial::onednn {

class Convolution final : public WeightedOver<dnnl::convolution_forward> {
  public:
    explicit Convolution(const PoolWindow& window) : window_(window) {}

  private:
    bool tries_products() const override { return extents().source[1] < 16; }

    Extents read_extents(const Node& input, const Node& output) const override {
        const int64_t channels = output.shape[1];
        return {dims_of(input.value.desc()),
                {channels, input.shape[1], window_.kernel[0], window_.kernel[1]},
                {channels},
                output.shape};
    }

    void add_backward_data(Forms& forms, const Builder& builder, const Formats& f) override {
        forms.add<dnnl::convolution_backward_data>(
            [&] {
                return describe_backward<dnnl::convolution_backward_data>(
                    builder.engine(), builder.attributes(), hint(builder), direct, f.source, f.weights,
                    f.destination, window_.strides, window_.padding, window_.padding_end);
            },
            [&](const auto& form) { return data_ports(form); });
    }

    void add_backward_weights(Forms& forms, const Builder& builder, const Formats& f) override {
        forms.add<dnnl::convolution_backward_weights>(
            [&] {
                return describe_backward<dnnl::convolution_backward_weights>(
                    builder.engine(), builder.attributes(), hint(builder), direct, f.source, f.weights,
                    f.bias, f.destination, window_.strides, window_.padding, window_.padding_end);
            },
            [&](const auto& form) { return weights_ports(form); });
    }

    Described<dnnl::convolution_forward> forward(const Builder& builder,
                                                 const dnnl::primitive_attr& attributes,
                                                 const Formats& f) const override {
        return describe<dnnl::convolution_forward>(builder.engine(), attributes, builder.purpose(), direct,
                                                   f.source, f.weights, f.bias, f.destination,
                                                   window_.strides, window_.padding, window_.padding_end);
    }

    static constexpr auto direct = dnnl::algorithm::convolution_direct;
    const PoolWindow window_;
};

}  // namespace timetrial::onednn
