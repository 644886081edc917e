// conv2d: by default a direct convolution (algorithm.h), weights OC x IC x KH x KW, or G x OC/G x IC/G x KH x
// KW with groups. conv_transpose2d: deconvolution, whose weights oneDNN sees as OC x IC x KH x KW where ours
// are the other way round.
#pragma once

#include "onednn/products.h"
#include "onednn/weighted.h"

namespace timetrial::onednn {

// Of a window over images.
struct ConvolutionWindow {
    PoolWindow window;
    dnnl::memory::dims dilation;
    int64_t groups = 1;
};

template <class Forward, class BackwardData, class BackwardWeights, dnnl::algorithm direct>
class ConvolutionOver : public WeightedOver<Forward> {
  public:
    explicit ConvolutionOver(const ConvolutionWindow& of) : of_(of) {
        for (const int64_t dilation : of.dilation) pauses_.push_back(dilation - 1);
    }

  protected:
    using Extents = typename Weighted::Extents;
    const ConvolutionWindow& of() const { return of_; }

  private:
    bool tries_products() const override { return this->extents().source[1] / of_.groups < 16; }

    static std::vector<dnnl::algorithm> algorithms(const Builder& builder) {
        if constexpr (direct == dnnl::algorithm::convolution_direct)
            return described_by(builder.convolution());
        return {direct};
    }

    void add_forward(Forms& forms, const Builder& builder, const dnnl::primitive_attr& attributes,
                     const Formats& formats) override {
        for (const dnnl::algorithm algorithm : algorithms(builder))
            forms.add<Forward>([&] { return forward_by(algorithm, builder, attributes, formats); },
                               [&](const auto& form) { return this->forward_ports(form); });
    }

    void add_backward_data(Forms& forms, const Builder& builder, const Formats& f) override {
        for (const dnnl::algorithm algorithm : algorithms(builder))
            forms.add<BackwardData>(
                [&] {
                    return describe_backward<BackwardData>(
                        builder.engine(), builder.attributes(), this->hint(builder), algorithm, f.source,
                        f.weights, f.destination, of_.window.strides, pauses_, of_.window.padding,
                        of_.window.padding_end);
                },
                [&](const auto& form) { return this->data_ports(form); });
    }

    void add_backward_weights(Forms& forms, const Builder& builder, const Formats& f) override {
        for (const dnnl::algorithm algorithm : algorithms(builder))
            forms.add<BackwardWeights>(
                [&] {
                    return describe_backward<BackwardWeights>(
                        builder.engine(), builder.attributes(), this->hint(builder), algorithm, f.source,
                        f.weights, f.bias, f.destination, of_.window.strides, pauses_, of_.window.padding,
                        of_.window.padding_end);
                },
                [&](const auto& form) { return this->weights_ports(form); });
    }

    Described<Forward> forward(const Builder& builder, const dnnl::primitive_attr& attributes,
                               const Formats& f) const override {
        return forward_by(direct, builder, attributes, f);
    }

    Described<Forward> forward_by(dnnl::algorithm algorithm, const Builder& builder,
                                  const dnnl::primitive_attr& attributes, const Formats& f) const {
        return describe<Forward>(builder.engine(), attributes, builder.purpose(), algorithm, f.source,
                                 f.weights, f.bias, f.destination, of_.window.strides, pauses_,
                                 of_.window.padding, of_.window.padding_end);
    }

    const ConvolutionWindow of_;
    dnnl::memory::dims pauses_;  // oneDNN's dilation: 0 where the taps are neighbors
};

class Convolution final
    : public ConvolutionOver<dnnl::convolution_forward, dnnl::convolution_backward_data,
                             dnnl::convolution_backward_weights, dnnl::algorithm::convolution_direct> {
  public:
    using ConvolutionOver::ConvolutionOver;

  private:
    Extents read_extents(const Node& input, const Node& output) const override {
        const int64_t groups = of().groups, channels = output.shape[1];
        const dnnl::memory::dims& kernel = of().window.kernel;
        dnnl::memory::dims weights{channels, input.shape[1], kernel[0], kernel[1]};
        if (groups > 1) weights = {groups, channels / groups, input.shape[1] / groups, kernel[0], kernel[1]};
        return {dims_of(input.value.desc()), weights, {channels}, output.shape};
    }

    void add_own_weight_gradient(Forms& forms) const override {
        const auto& [source, weights, bias, destination] = extents();
        // Of larger images the library's kernels are as fast, and chance would choose among equals.
        if (of().groups > 1 || destination[2] * destination[3] >= 8 * 8) return;
        const PoolWindow& window = of().window;
        const auto pair = [](const dnnl::memory::dims& dims, std::size_t first = 0) {
            return Unfolding::Pair{dims[first], dims[first + 1]};
        };
        const Unfolding images{source[0],
                               source[1],
                               pair(source, 2),
                               pair(weights, 2),
                               pair(destination, 2),
                               pair(window.strides),
                               pair(of().dilation),
                               pair(window.padding)};
        const auto in = [](const dnnl::memory::dims& dims, dnnl::memory::format_tag tag) {
            return Desc(dims, f32, tag);
        };
        forms.add(form_of(ProductsOfUnfolded(images, destination[1]),
                          in(source, dnnl::memory::format_tag::acdb),
                          in(destination, dnnl::memory::format_tag::acdb),
                          in(weights, dnnl::memory::format_tag::cdba), has_bias()));
    }
};

class ConvTranspose final
    : public ConvolutionOver<dnnl::deconvolution_forward, dnnl::deconvolution_backward_data,
                             dnnl::deconvolution_backward_weights, dnnl::algorithm::deconvolution_direct> {
  public:
    using ConvolutionOver::ConvolutionOver;

  private:
    Extents read_extents(const Node& input, const Node& output) const override {
        const dnnl::memory::dims& kernel = of().window.kernel;
        const int64_t channels = output.shape[1];
        return {dims_of(input.value.desc()),
                {channels, input.shape[1], kernel[0], kernel[1]},
                {channels},
                output.shape};
    }

    Desc outside_weights(const dnnl::memory::dims& extents) const override {
        const int64_t taps = extents[2] * extents[3];
        return {extents, f32, dnnl::memory::dims{taps, extents[0] * taps, extents[3], 1}};
    }
};

}  // namespace timetrial::onednn
