// Convolutions.
#include "network/kinds/kinds.h"

#include <array>

#include "network/kinds/shared.h"

namespace timetrial::kinds {
namespace {

const std::vector<AttributeRule>& conv2d_attributes() {
    static const std::vector<AttributeRule> rules = [] {
        AttributeRule padding = pair("padding", 0, 0.0);
        padding.words = {"same"};
        return std::vector{whole("channels"), pair("kernel", 1), pair("stride", 1, 1.0), padding,
                           flag("bias", true)};
    }();
    return rules;
}

// padding = "same": the output is as large as the input.
AttributeSpecs conv2d_padding(const LayerView& layer, const AttributeSpecs& specs) {
    const auto padding = specs.find("padding");
    if (padding == specs.end() || padding->second != AttributeValue("same")) return specs;
    const auto numbers = [&](std::size_t rule) {
        std::array<std::int64_t, 2> both{};
        const auto read = read_attribute(layer, conv2d_attributes()[rule], specs);
        for (std::size_t i = 0; i < 2; ++i) both[i] = std::get<std::int64_t>(read[i].value);
        return both;
    };
    const auto kernel = numbers(1), stride = numbers(2);
    if (stride[0] != 1 || stride[1] != 1 || kernel[0] % 2 == 0 || kernel[1] % 2 == 0)
        layer.refuse("has padding = \"same\", which needs stride 1 and an odd kernel: give numbers instead");
    const std::int64_t height = kernel[0] / 2, width = kernel[1] / 2;
    AttributeSpecs translated = specs;
    translated["padding"] = std::vector{static_cast<double>(height), static_cast<double>(width)};
    return translated;
}

Shape infer_conv2d(const LayerView& layer) {
    need_images(layer);
    const auto output = slide(layer);
    return {layer.input_shape()[0], layer.node.whole("channels"), output[0], output[1]};
}

std::vector<Parameter> conv2d_parameters(const LayerView& layer) {
    const Node& node = layer.node;
    return weight_and_bias(layer, {node.whole("channels"), layer.input_shape()[1], node.whole("kernel_h"),
                                   node.whole("kernel_w")});
}

// Products with padded zeros count: they are part of the plain algorithm.
std::int64_t conv2d_products(const LayerView& layer) {
    const Node& node = layer.node;
    return element_count(node.shape) * layer.input_shape()[1] * node.whole("kernel_h") *
           node.whole("kernel_w");
}

}  // namespace

std::vector<LayerKind> convolution() {
    return {
        {.name = "conv2d",
         .attributes = conv2d_attributes(),
         .infer_shape = infer_conv2d,
         .parameters = conv2d_parameters,
         .multiply_accumulates = conv2d_products,
         .formula =
             "`y[n,o,i,j] = b[o] + sum over c, k, l of w[o,c,k,l] x[n,c,i s+k-p,j s+l-p]`, zeros outside",
         .source = kVision,
         .translate = conv2d_padding},
    };
}

}  // namespace timetrial::kinds
