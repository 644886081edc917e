// The table of layer kinds: each is one entry, with what the core knows of it and what the documentation
// says. A window that does not fit whole at the lower or right edge is dropped.
#include "network/layers.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <deque>
#include <mutex>
#include <shared_mutex>

#include "network/attributes.h"
#include "text/text.h"

namespace timetrial {
namespace {

using Parameters = std::vector<Parameter>;

// ---- what several kinds share

AttributeRule whole(std::string name) { return {std::move(name), AttributeType::kWhole, {}, "", 1}; }
AttributeRule flag(std::string name, bool otherwise) {
    return {std::move(name), AttributeType::kFlag, otherwise};
}
AttributeRule pair(std::string name, double least, std::optional<AttributeValue> otherwise = std::nullopt) {
    return {std::move(name), AttributeType::kPair, std::move(otherwise), "", least};
}
AttributeRule share(std::string name, double otherwise) {
    return {std::move(name), AttributeType::kReal, otherwise, "", 0};
}
AttributeRule pair_as(std::string name, double least, std::string other) {
    return {std::move(name), AttributeType::kPair, {}, std::move(other), least};
}

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

// A weight is (outputs, inputs) or (outputs, inputs, kernel...).
Parameters weight_and_bias(const LayerView& layer, const Shape& weight) {
    const std::int64_t fan_in = element_count(weight) / weight[0],
                       fan_out = element_count(weight) / weight[1];
    Parameters parameters{{layer.node.name + ".weight", weight, {"glorot_uniform", fan_in, fan_out}}};
    if (layer.node.whole("bias") != 0) parameters.push_back({layer.node.name + ".bias", {weight[0]}, {}});
    return parameters;
}

// Extents of the output of a window that slides over (H, W).
std::array<std::int64_t, 2> slide(const LayerView& layer) {
    const Shape& input = layer.input_shape();
    const Node& node = layer.node;
    const auto extent = [&](std::int64_t size, const char* axis) {
        const std::string suffix = std::string("_") + axis;
        const std::int64_t padded = size + 2 * node.whole("padding" + suffix);
        const std::int64_t kernel = node.whole("kernel" + suffix);
        return padded < kernel ? 0 : (padded - kernel) / node.whole("stride" + suffix) + 1;
    };
    const std::array<std::int64_t, 2> output{extent(input[2], "h"), extent(input[3], "w")};
    if (output[0] < 1 || output[1] < 1) {
        const auto pair = [&](const std::string& key) {
            return std::to_string(node.whole(key + "_h")) + "x" + std::to_string(node.whole(key + "_w"));
        };
        layer.refuse("has a " + pair("kernel") + " kernel with " + pair("padding") +
                     " padding, larger than its images: " + gives(layer));
    }
    return output;
}

// ---- dense

Shape infer_dense(const LayerView& layer) {
    need_flat(layer);
    return {layer.input_shape()[0], layer.node.whole("units")};
}

Parameters dense_parameters(const LayerView& layer) {
    return weight_and_bias(layer, {layer.node.whole("units"), layer.input_shape()[1]});
}

std::int64_t dense_products(const LayerView& layer) {
    return element_count(layer.node.shape) * layer.input_shape()[1];
}

// ---- conv2d

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

Parameters conv2d_parameters(const LayerView& layer) {
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

// ---- max_pool2d, avg_pool2d

Shape infer_pool2d(const LayerView& layer) {
    for (const char* axis : {"_h", "_w"})
        if (2 * layer.node.whole(std::string("padding") + axis) >
            layer.node.whole(std::string("kernel") + axis))
            layer.refuse(
                "has a padding of more than half its kernel: some windows would see nothing but padding");
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

// ---- dropout

Shape infer_dropout(const LayerView& layer) {
    const double rate = std::get<double>(layer.node.attribute("rate"));
    if (rate >= 1)
        layer.refuse("has rate = " + number_text(rate) +
                     "; expected the share of values that are dropped, from 0 to below 1");
    return layer.input_shape();
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

// Without weights each loss counts as it is.
AttributeSpecs loss_weights(const LayerView& layer, const AttributeSpecs& specs) {
    AttributeSpecs translated = specs;
    translated.try_emplace("weights", std::vector<double>(layer.inputs.size(), 1.0));
    return translated;
}

Shape infer_loss_sum(const LayerView& layer) {
    const auto& weights = std::get<std::vector<double>>(layer.node.attribute("weights"));
    if (weights.size() != layer.inputs.size())
        layer.refuse("has " + std::to_string(weights.size()) + " weights for " +
                     std::to_string(layer.inputs.size()) + " losses: expected one for each");
    return {};
}

std::int64_t label_classes(const LayerView& layer) { return layer.input_shape()[1]; }

// ---- registered kinds

// A deque, so that what was found stays where it is; the last of a name counts.
struct Registered {
    std::shared_mutex guard;
    std::deque<LayerKind> kinds;
};

Registered& registered() {
    static Registered all;
    return all;
}

}  // namespace

std::vector<Parameter> no_parameters(const LayerView&) { return {}; }
std::int64_t no_products(const LayerView&) { return 0; }
Shape same_shape(const LayerView& layer) { return layer.input_shape(); }

const std::vector<LayerKind>& layer_kinds() {
    using enum BackwardReads;
    using enum Takes;
    static const std::string vision = "Dumoulin and Visin, A guide to convolution arithmetic, 2016";
    static const std::string book = "Goodfellow, Bengio and Courville, Deep Learning, 2016";
    static const std::vector<AttributeRule> window{pair("kernel", 1), pair_as("stride", 1, "kernel"),
                                                   pair("padding", 0, 0.0)};
    static const std::vector<LayerKind> kinds{
        {.name = "dense",
         .attributes = {whole("units"), flag("bias", true)},
         .infer_shape = infer_dense,
         .parameters = dense_parameters,
         .multiply_accumulates = dense_products,
         .formula = "`y[n,u] = b[u] + sum over f of w[u,f] x[n,f]`",
         .source = book},
        {.name = "conv2d",
         .attributes = conv2d_attributes(),
         .infer_shape = infer_conv2d,
         .parameters = conv2d_parameters,
         .multiply_accumulates = conv2d_products,
         .formula =
             "`y[n,o,i,j] = b[o] + sum over c, k, l of w[o,c,k,l] x[n,c,i s+k-p,j s+l-p]`, zeros outside",
         .source = vision,
         .translate = conv2d_padding},
        {.name = "max_pool2d",
         .backward_reads = kInput,
         .attributes = window,
         .infer_shape = infer_pool2d,
         .formula =
             "the largest value in the window; padding never wins, the first of equals has the gradient",
         .source = vision,
         .picks_largest = true},
        {.name = "avg_pool2d",
         .attributes = window,
         .infer_shape = infer_pool2d,
         .formula = "the mean of the window; padded zeros count",
         .source = vision},
        {.name = "relu",
         .backward_reads = kOutput,
         .formula = "`y = max(x, 0)`, with derivative 0 at 0",
         .source = "Nair and Hinton, ICML 2010",
         .kinks = {0.0},
         .keeps_places = true},
        {.name = "tanh",
         .backward_reads = kOutput,
         .formula = "`y = tanh(x)`",
         .source = book,
         .keeps_places = true},
        {.name = "sigmoid",
         .backward_reads = kOutput,
         .formula = "`y = 1 / (1 + exp(-x))`",
         .source = book,
         .keeps_places = true},
        {.name = "flatten",
         .infer_shape = infer_flatten,
         .formula = "`(N, C, H, W)` as `(N, C H W)`",
         .source = "row-major, as in the shapes of this table",
         .moves_nothing = true,
         .keeps_places = true},
        {.name = "dropout",
         .backward_reads = kMask,
         .attributes = {share("rate", 0.5)},
         .infer_shape = infer_dropout,
         .formula = "`y = m x` while it learns, where the batch brings `m`: 0 for a share `rate` of the "
                    "values, drawn anew for each step, and `1 / (1 - rate)` for the others; `y = x` in "
                    "inference",
         .source = "Srivastava, Hinton, Krizhevsky, Sutskever and Salakhutdinov, JMLR 15, 2014; scaled while "
                   "it learns, as every framework does today",
         .keeps_places = true,
         .mask_rate = "rate"},
        {.name = "add",
         .takes = kSeveral,
         .infer_shape = infer_add,
         .formula = "`y = x1 + x2 + ...`: two or more inputs of one shape. Each has the gradient of `y`",
         .source = "He, Zhang, Ren and Sun, CVPR 2016"},
        {.name = "concat",
         .takes = kSeveral,
         .infer_shape = infer_concat,
         .formula = "the inputs one behind the other along axis 1: the channels of `(N, C, H, W)`, the "
                    "features of `(N, F)`. Two or more inputs that are alike in the rest; each has its own "
                    "part of the gradient of `y`",
         .source = "Huang, Liu, van der Maaten and Weinberger, CVPR 2017"},
        {.name = "softmax_cross_entropy",
         .takes = kPredictionAndTarget,
         .backward_reads = kInput,
         .infer_shape = infer_loss,
         .formula = "the loss: mean over `N` of `-log softmax(x)[label]`",
         .source = book,
         .integers_below = label_classes},
        {.name = "squared_error",
         .takes = kPredictionAndTarget,
         .backward_reads = kInput,
         .infer_shape = infer_loss,
         .formula = "the loss: mean over `N` and `F` of `(x - onehot(label))^2`",
         .source = book,
         .integers_below = label_classes},
        {.name = "mean_squared_error",
         .takes = kPredictionAndTarget,
         .backward_reads = kInput,
         .infer_shape = infer_error,
         .formula = "the loss: mean over `N` and `F` of `(x - t)^2`, where `t` is an input of the network "
                    "with as many numbers as there are predicted",
         .source = book},
        {.name = "loss_sum",
         .takes = kLosses,
         .attributes = {{"weights", AttributeType::kList, {}, "", 0}},
         .infer_shape = infer_loss_sum,
         .formula =
             "the loss: the sum of two or more losses, each times its weight (1). What the first of them "
             "is of is the network's prediction",
         .source = "Caruana, Multitask learning, Machine Learning 28, 1997",
         .translate = loss_weights},
    };
    return kinds;
}

const LayerKind* find_layer_kind(std::string_view name) {
    const auto has_name = [&](const LayerKind& kind) { return kind.name == name; };
    const auto& kinds = layer_kinds();
    const auto found = std::find_if(kinds.begin(), kinds.end(), has_name);
    if (found != kinds.end()) return &*found;
    Registered& own = registered();
    const std::shared_lock lock(own.guard);
    const auto last = std::find_if(own.kinds.rbegin(), own.kinds.rend(), has_name);
    return last == own.kinds.rend() ? nullptr : &*last;
}

std::vector<std::string> layer_kind_names() {
    std::vector<std::string> names;
    for (const LayerKind& kind : layer_kinds()) names.push_back(kind.name);
    Registered& own = registered();
    const std::shared_lock lock(own.guard);
    for (const LayerKind& kind : own.kinds)
        if (std::find(names.begin(), names.end(), kind.name) == names.end()) names.push_back(kind.name);
    return names;
}

void register_layer_kind(LayerKind kind) {
    const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
    if (kind.name.empty() || kind.name.size() > 64 || kind.name == "input" ||
        !std::all_of(kind.name.begin(), kind.name.end(), is_word))
        throw NetworkError("a kind of layers cannot be called '" + kind.name +
                           "'; expected 1 to 64 letters, digits and '_'");
    for (const LayerKind& own : layer_kinds())
        if (own.name == kind.name)
            throw NetworkError("'" + kind.name + "' is a kind of layers already, and means the same to " +
                               "everybody: take another name");
    Registered& own = registered();
    const std::unique_lock lock(own.guard);
    own.kinds.push_back(std::move(kind));
}

void LayerView::refuse(const std::string& words) const {
    throw NetworkError("layer '" + node.name + "' (" + node.kind + ") " + words);
}

}  // namespace timetrial
