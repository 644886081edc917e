// The table of layer kinds: each is one entry, with what the core knows of it and what the documentation
// says. Normalized attributes are whole numbers, and what a backend receives:
//   dense                     units, bias
//   conv2d                    channels, kernel_h, kernel_w, stride_h, stride_w, padding_h, padding_w, bias
//   max_pool2d, avg_pool2d    kernel_h, kernel_w, stride_h, stride_w, padding_h, padding_w
// The others have none. A window that does not fit whole at the lower or right edge is dropped.
#include "network/layers.h"

#include <algorithm>
#include <array>

#include "network/attributes.h"
#include "text/text.h"

namespace timetrial {
namespace {

using Attributes = std::vector<Attribute>;
using Parameters = std::vector<Parameter>;

// ---- what several kinds share

Attributes no_attributes(const LayerView&, const AttributeSpecs&) { return {}; }
Parameters no_parameters(const LayerView&) { return {}; }
std::int64_t no_products(const LayerView&) { return 0; }
Shape same_shape(const LayerView& layer) { return layer.input_shape(); }

std::string gives(const LayerView& layer) {
    return "'" + layer.inputs.front()->name + "' gives " + shape_text(layer.input_shape());
}

void need_flat(const LayerView& layer) {
    if (layer.input_shape().size() == 2) return;
    const bool can_flatten = layer.input_shape().size() > 2;
    layer.refuse("needs a flat input (N, F); " + gives(layer) +
                 (can_flatten ? ": put a flatten between them" : ""));
}

void need_images(const LayerView& layer) {
    if (layer.input_shape().size() == 4) return;
    layer.refuse("needs images (N, C, H, W); " + gives(layer) +
                 ": it cannot stand behind a flat output, or the data set has flat samples");
}

Parameters weight_and_bias(const LayerView& layer, Shape weight) {
    const Shape bias{weight.front()};
    Parameters parameters{{layer.node.name + ".weight", std::move(weight)}};
    if (layer.node.attribute("bias") != 0) parameters.push_back({layer.node.name + ".bias", bias});
    return parameters;
}

// Extents of the output of a window that slides over (H, W).
std::array<std::int64_t, 2> slide(const LayerView& layer) {
    const Shape& input = layer.input_shape();
    const Node& node = layer.node;
    const auto extent = [&](std::int64_t size, const char* axis) {
        const std::string suffix = std::string("_") + axis;
        const std::int64_t padded = size + 2 * node.attribute("padding" + suffix);
        const std::int64_t kernel = node.attribute("kernel" + suffix);
        return padded < kernel ? 0 : (padded - kernel) / node.attribute("stride" + suffix) + 1;
    };
    const std::array<std::int64_t, 2> output{extent(input[2], "h"), extent(input[3], "w")};
    if (output[0] < 1 || output[1] < 1) {
        const auto pair = [&](const std::string& key) {
            return std::to_string(node.attribute(key + "_h")) + "x" +
                   std::to_string(node.attribute(key + "_w"));
        };
        layer.refuse("has a " + pair("kernel") + " kernel with " + pair("padding") +
                     " padding, larger than its images: " + gives(layer));
    }
    return output;
}

void append_pair(Attributes& attributes, const std::string& key, std::array<std::int64_t, 2> pair) {
    attributes.push_back({key + "_h", pair[0]});
    attributes.push_back({key + "_w", pair[1]});
}

// ---- dense

Attributes normalize_dense(const LayerView& layer, const AttributeSpecs& specs) {
    const AttributeReader read(layer, specs);
    return {{"units", read.whole("units", 1)}, {"bias", read.flag("bias", true) ? 1 : 0}};
}

Shape infer_dense(const LayerView& layer) {
    need_flat(layer);
    return {layer.input_shape()[0], layer.node.attribute("units")};
}

Parameters dense_parameters(const LayerView& layer) {
    return weight_and_bias(layer, {layer.node.attribute("units"), layer.input_shape()[1]});
}

std::int64_t dense_products(const LayerView& layer) {
    return element_count(layer.node.shape) * layer.input_shape()[1];
}

// ---- conv2d

Attributes normalize_conv2d(const LayerView& layer, const AttributeSpecs& specs) {
    const AttributeReader read(layer, specs);
    Attributes attributes{{"channels", read.whole("channels", 1)}};
    const auto kernel = read.pair("kernel", 1);
    const auto stride = read.pair("stride", 1, std::array<std::int64_t, 2>{1, 1});
    std::array<std::int64_t, 2> padding{};
    if (read.is_word("padding", "same")) {
        if (stride[0] != 1 || stride[1] != 1 || kernel[0] % 2 == 0 || kernel[1] % 2 == 0)
            layer.refuse(
                "has padding = \"same\", which needs stride 1 and an odd kernel: give numbers instead");
        padding = {kernel[0] / 2, kernel[1] / 2};
    } else {
        padding = read.pair("padding", 0, std::array<std::int64_t, 2>{0, 0});
    }
    append_pair(attributes, "kernel", kernel);
    append_pair(attributes, "stride", stride);
    append_pair(attributes, "padding", padding);
    attributes.push_back({"bias", read.flag("bias", true) ? 1 : 0});
    return attributes;
}

Shape infer_conv2d(const LayerView& layer) {
    need_images(layer);
    const auto output = slide(layer);
    return {layer.input_shape()[0], layer.node.attribute("channels"), output[0], output[1]};
}

Parameters conv2d_parameters(const LayerView& layer) {
    const Node& node = layer.node;
    return weight_and_bias(layer, {node.attribute("channels"), layer.input_shape()[1],
                                   node.attribute("kernel_h"), node.attribute("kernel_w")});
}

// Products with padded zeros count: they are part of the plain algorithm.
std::int64_t conv2d_products(const LayerView& layer) {
    const Node& node = layer.node;
    return element_count(node.shape) * layer.input_shape()[1] * node.attribute("kernel_h") *
           node.attribute("kernel_w");
}

// ---- max_pool2d, avg_pool2d

Attributes normalize_pool2d(const LayerView& layer, const AttributeSpecs& specs) {
    const AttributeReader read(layer, specs);
    const auto kernel = read.pair("kernel", 1);
    const auto padding = read.pair("padding", 0, std::array<std::int64_t, 2>{0, 0});
    if (2 * padding[0] > kernel[0] || 2 * padding[1] > kernel[1])
        layer.refuse(
            "has a padding of more than half its kernel: some windows would see nothing but padding");
    Attributes attributes;
    append_pair(attributes, "kernel", kernel);
    append_pair(attributes, "stride", read.pair("stride", 1, kernel));
    append_pair(attributes, "padding", padding);
    return attributes;
}

Shape infer_pool2d(const LayerView& layer) {
    need_images(layer);
    const auto output = slide(layer);
    return {layer.input_shape()[0], layer.input_shape()[1], output[0], output[1]};
}

// ---- flatten

Shape infer_flatten(const LayerView& layer) {
    const Shape& input = layer.input_shape();
    if (input.size() < 2) layer.refuse("needs samples of at least one extent; " + gives(layer));
    return {input[0], element_count(input) / input[0]};
}

// ---- joins

// "'conv1' gives (64, 20, 24, 24), 'conv2' gives (64, 50, 8, 8)"
std::string all_give(const LayerView& layer) {
    std::vector<std::string> words;
    for (const Node* input : layer.inputs)
        words.push_back("'" + input->name + "' gives " + shape_text(input->shape));
    return join(words);
}

Shape infer_add(const LayerView& layer) {
    for (const Node* input : layer.inputs)
        if (input->shape != layer.input_shape())
            layer.refuse("needs inputs of one shape; " + all_give(layer));
    return layer.input_shape();
}

Shape infer_concat(const LayerView& layer) {
    Shape joined = layer.input_shape();
    joined[1] = 0;
    for (const Node* input : layer.inputs) {
        Shape expected = layer.input_shape();
        if (input->shape.size() == expected.size()) expected[1] = input->shape[1];
        if (input->shape != expected)
            layer.refuse("needs inputs that differ in nothing but their channels (axis 1); " +
                         all_give(layer));
        joined[1] += input->shape[1];
    }
    return joined;
}

// ---- losses

Shape infer_loss(const LayerView& layer) {
    need_flat(layer);
    const Node& labels = *layer.inputs[1];
    if (labels.dtype != TT_I64 || labels.shape.size() != 1)
        layer.refuse("needs labels (whole numbers, one per sample) as its second input; it has '" +
                     labels.name + "'");
    return {};
}

// Another tensor may be the target of several shapes: what is predicted of an image is flat.
Shape infer_error(const LayerView& layer) {
    need_flat(layer);
    const Node& target = *layer.inputs[1];
    if (!target.is_input() || target.dtype != TT_F32 ||
        element_count(target.shape) != element_count(layer.input_shape()))
        layer.refuse("needs an input of the network with as many numbers as its second input; " +
                     gives(layer) + ", '" + target.name + "' " + shape_text(target.shape) +
                     (target.dtype == TT_I64 ? " whole numbers: squared_error takes labels" : ""));
    return {};
}

std::vector<std::string> keys_with_pairs(std::vector<std::string> keys,
                                         const std::vector<std::string>& pairs) {
    for (const std::string& key : pairs)
        for (const char* suffix : {"", "_h", "_w"}) keys.push_back(key + suffix);
    return keys;
}

}  // namespace

const std::vector<LayerKind>& layer_kinds() {
    using enum BackwardReads;
    using enum Takes;
    static const std::vector<std::string> windows{"kernel", "stride", "padding"};
    static constexpr std::string_view vision = "Dumoulin and Visin, A guide to convolution arithmetic, 2016";
    static constexpr std::string_view book = "Goodfellow, Bengio and Courville, Deep Learning, 2016";
    static const std::vector<LayerKind> kinds{
        {"dense",
         kOne,
         kNothing,
         {"units", "bias"},
         normalize_dense,
         infer_dense,
         dense_parameters,
         dense_products,
         "`units`, `bias` (true)",
         "`y[n,u] = b[u] + sum over f of w[u,f] x[n,f]`",
         book},
        {"conv2d", kOne, kNothing, keys_with_pairs({"channels", "bias"}, windows), normalize_conv2d,
         infer_conv2d, conv2d_parameters, conv2d_products,
         "`channels`, `kernel`, `stride` (1), `padding` (0, or `\"same\"`), `bias` (true)",
         "`y[n,o,i,j] = b[o] + sum over c, k, l of w[o,c,k,l] x[n,c,i s+k-p,j s+l-p]`, zeros outside",
         vision},
        {"max_pool2d", kOne, kInput, keys_with_pairs({}, windows), normalize_pool2d, infer_pool2d,
         no_parameters, no_products, "`kernel`, `stride` (the kernel), `padding` (0)",
         "the largest value in the window; padding never wins, the first of equals has the gradient", vision},
        {"avg_pool2d", kOne, kNothing, keys_with_pairs({}, windows), normalize_pool2d, infer_pool2d,
         no_parameters, no_products, "`kernel`, `stride` (the kernel), `padding` (0)",
         "the mean of the window; padded zeros count", vision},
        {"relu",
         kOne,
         kOutput,
         {},
         no_attributes,
         same_shape,
         no_parameters,
         no_products,
         "",
         "`y = max(x, 0)`, with derivative 0 at 0",
         "Nair and Hinton, ICML 2010"},
        {"tanh",
         kOne,
         kOutput,
         {},
         no_attributes,
         same_shape,
         no_parameters,
         no_products,
         "",
         "`y = tanh(x)`",
         book},
        {"sigmoid",
         kOne,
         kOutput,
         {},
         no_attributes,
         same_shape,
         no_parameters,
         no_products,
         "",
         "`y = 1 / (1 + exp(-x))`",
         book},
        {"flatten",
         kOne,
         kNothing,
         {},
         no_attributes,
         infer_flatten,
         no_parameters,
         no_products,
         "",
         "`(N, C, H, W)` as `(N, C H W)`",
         "row-major, as in the shapes of this table"},
        {"add",
         kSeveral,
         kNothing,
         {},
         no_attributes,
         infer_add,
         no_parameters,
         no_products,
         "",
         "`y = x1 + x2 + ...`: two or more inputs of one shape. Each has the gradient of `y`",
         "He, Zhang, Ren and Sun, CVPR 2016"},
        {"concat",
         kSeveral,
         kNothing,
         {},
         no_attributes,
         infer_concat,
         no_parameters,
         no_products,
         "",
         "the inputs one behind the other along axis 1: the channels of `(N, C, H, W)`, the features of "
         "`(N, F)`. Two or more inputs that are alike in the rest; each has its own part of the gradient of "
         "`y`",
         "Huang, Liu, van der Maaten and Weinberger, CVPR 2017"},
        {"softmax_cross_entropy",
         kPredictionAndTarget,
         kInput,
         {},
         no_attributes,
         infer_loss,
         no_parameters,
         no_products,
         "",
         "the loss: mean over `N` of `-log softmax(x)[label]`",
         book},
        {"squared_error",
         kPredictionAndTarget,
         kInput,
         {},
         no_attributes,
         infer_loss,
         no_parameters,
         no_products,
         "",
         "the loss: mean over `N` and `F` of `(x - onehot(label))^2`",
         book},
        {"mean_squared_error",
         kPredictionAndTarget,
         kInput,
         {},
         no_attributes,
         infer_error,
         no_parameters,
         no_products,
         "",
         "the loss: mean over `N` and `F` of `(x - t)^2`, where `t` is an input of the network with as many "
         "numbers as there are predicted",
         book},
    };
    return kinds;
}

const LayerKind* find_layer_kind(std::string_view name) {
    const auto& kinds = layer_kinds();
    const auto found =
        std::find_if(kinds.begin(), kinds.end(), [&](const LayerKind& kind) { return kind.name == name; });
    return found == kinds.end() ? nullptr : &*found;
}

void LayerView::refuse(const std::string& words) const {
    throw NetworkError("layer '" + node.name + "' (" + node.kind + ") " + words);
}

}  // namespace timetrial
