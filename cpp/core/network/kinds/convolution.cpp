// Convolutions: conv2d, and conv_transpose2d, which is the way back through one.
#include <algorithm>
#include <array>
#include <string_view>

#include "network/kinds/kinds.h"
#include "network/kinds/shared.h"

namespace timetrial::kinds {
namespace {

constexpr std::array<const char*, 2> kAxes{"_h", "_w"};

// ---- conv2d

const AttributeRule& rule_of(const std::vector<AttributeRule>& rules, std::string_view name) {
    return *std::find_if(rules.begin(), rules.end(), [&](const auto& rule) { return rule.name == name; });
}

// What backends read is padding_*, in front of an axis, and padding_end_*, behind it.
const std::vector<AttributeRule>& conv2d_attributes() {
    static const std::vector<AttributeRule> rules = [] {
        AttributeRule padding = pair("padding", 0, 0.0), end = pair_as("padding_end", 0, "padding");
        padding.words = {"same"};
        end.is_derived = true;
        return std::vector{
            whole("channels"),        pair("kernel", 1),    pair("stride", 1, 1.0), padding, end,
            pair("dilation", 1, 1.0), whole("groups", 1.0), flag("bias", true)};
    }();
    return rules;
}

// padding = "same": one output for every `stride` inputs, the windows centered; where that is not possible,
// the larger half of the padding is behind. Source: TensorFlow, tf.nn, "Notes on padding".
AttributeSpecs conv2d_padding(const LayerView& layer, const AttributeSpecs& specs) {
    const auto padding = specs.find("padding");
    if (padding == specs.end()) return specs;
    for (const char* axis : kAxes)
        if (specs.contains(std::string("padding_end") + axis))
            layer.refuse("has 'padding' and also 'padding_end" + std::string(axis) + "'");
    if (padding->second != AttributeValue("same")) return specs;
    need_images(layer);
    const auto numbers = [&](std::string_view name) {
        const auto read = read_attribute(layer, rule_of(conv2d_attributes(), name), specs);
        return std::array{std::get<std::int64_t>(read[0].value), std::get<std::int64_t>(read[1].value)};
    };
    const auto kernel = numbers("kernel"), stride = numbers("stride"), dilation = numbers("dilation");
    AttributeSpecs translated = specs;
    translated.erase("padding");
    for (std::size_t i = 0; i < kAxes.size(); ++i) {
        const std::int64_t input = layer.input_shape()[2 + i];
        const std::int64_t output = (input + stride[i] - 1) / stride[i];
        const std::int64_t total =
            std::max<std::int64_t>((output - 1) * stride[i] + (kernel[i] - 1) * dilation[i] + 1 - input, 0);
        const std::int64_t before = total / 2;
        translated[std::string("padding") + kAxes[i]] = static_cast<double>(before);
        translated[std::string("padding_end") + kAxes[i]] = static_cast<double>(total - before);
    }
    return translated;
}

Shape infer_conv2d(const LayerView& layer) {
    need_images(layer);
    const std::int64_t channels = layer.node.whole("channels"), inputs = layer.input_shape()[1];
    const std::int64_t groups = layer.node.whole("groups");
    if (inputs % groups != 0 || channels % groups != 0)
        layer.refuse("has groups = " + std::to_string(groups) +
                     ", which must divide both its channels = " + std::to_string(channels) + " and the " +
                     std::to_string(inputs) + " channels of its input; " + gives(layer));
    const auto output = slide(layer);
    return {layer.input_shape()[0], channels, output[0], output[1]};
}

// Each output is made of the inputs of its own group.
std::vector<Parameter> conv2d_parameters(const LayerView& layer) {
    const Node& node = layer.node;
    const std::int64_t groups = node.whole("groups"), channels = node.whole("channels");
    const std::int64_t taps = node.whole("kernel_h") * node.whole("kernel_w");
    const std::int64_t inputs = layer.input_shape()[1] / groups;
    return with_bias(layer,
                     {node.name + ".weight",
                      {channels, inputs, node.whole("kernel_h"), node.whole("kernel_w")},
                      {"glorot_uniform", inputs * taps, channels / groups * taps}},
                     channels);
}

// Products with padded zeros count: they are part of the plain algorithm.
std::int64_t conv2d_products(const LayerView& layer) {
    const Node& node = layer.node;
    return element_count(node.shape) * (layer.input_shape()[1] / node.whole("groups")) *
           node.whole("kernel_h") * node.whole("kernel_w");
}

// ---- conv_transpose2d

Shape infer_conv_transpose2d(const LayerView& layer) {
    need_images(layer);
    const Node& node = layer.node;
    Shape shape{layer.input_shape()[0], node.whole("channels")};
    for (std::size_t i = 0; i < kAxes.size(); ++i) {
        const auto of = [&](const char* key) { return node.whole(std::string(key) + kAxes[i]); };
        if (of("output_padding") >= of("stride"))
            layer.refuse("has output_padding" + std::string(kAxes[i]) + " = " +
                         std::to_string(of("output_padding")) + "; expected less than its stride, " +
                         std::to_string(of("stride")) + ": it says which of the sizes is meant that a " +
                         "convolution of this stride takes to the same one");
        const std::int64_t whole = (layer.input_shape()[2 + i] - 1) * of("stride") + of("kernel");
        shape.push_back(whole - 2 * of("padding") + of("output_padding"));
        if (shape.back() < 1)
            layer.refuse("has padding" + std::string(kAxes[i]) + " = " + std::to_string(of("padding")) +
                         ", which cuts off all " + std::to_string(whole) + " of its outputs; " +
                         gives(layer));
    }
    return shape;
}

std::vector<Parameter> conv_transpose2d_parameters(const LayerView& layer) {
    const Node& node = layer.node;
    const std::int64_t inputs = layer.input_shape()[1], channels = node.whole("channels");
    const std::int64_t taps = node.whole("kernel_h") * node.whole("kernel_w");
    return with_bias(layer,
                     {node.name + ".weight",
                      {inputs, channels, node.whole("kernel_h"), node.whole("kernel_w")},
                      {"glorot_uniform", inputs * taps, channels * taps}},
                     channels);
}

std::int64_t conv_transpose2d_products(const LayerView& layer) {
    const Node& node = layer.node;
    return element_count(layer.input_shape()) * node.whole("channels") * node.whole("kernel_h") *
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
             "`y[n,o,i,j] = b[o] + sum over c, k, l of w[o,c,k,l] x[n,c,i s+k d-p,j s+l d-p]`, zeros "
             "outside. With `groups`, `c` goes over the input channels of `o`'s own group (as many as "
             "there are channels: depthwise). `padding = \"same\"`: as many outputs as inputs, divided "
             "by the stride and rounded up; of an odd padding the larger half is behind",
         .source = kVision,
         .translate = conv2d_padding},
        {.name = "conv_transpose2d",
         .attributes = {whole("channels"), pair("kernel", 1), pair("stride", 1, 1.0), pair("padding", 0, 0.0),
                        pair("output_padding", 0, 0.0), flag("bias", true)},
         .infer_shape = infer_conv_transpose2d,
         .parameters = conv_transpose2d_parameters,
         .multiply_accumulates = conv_transpose2d_products,
         .formula = "`y[n,o,i s+k-p,j s+l-p]` is `b[o]` plus the sum of every `w[c,o,k,l] x[n,c,i,j]` that "
                    "falls there: what a convolution of these attributes makes of the gradient of its "
                    "output. `(H - 1) s - 2 p + K` rows, and `output_padding` more",
         .source = kVision},
    };
}

}  // namespace timetrial::kinds
