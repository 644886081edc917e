#include "network/kinds/shared.h"

#include <algorithm>
#include <utility>

#include "text/text.h"

namespace timetrial::kinds {

AttributeRule whole(std::string name, std::optional<AttributeValue> otherwise) {
    return {std::move(name), AttributeType::kWhole, std::move(otherwise), "", 1};
}
AttributeRule flag(std::string name, bool otherwise) {
    return {std::move(name), AttributeType::kFlag, otherwise};
}
AttributeRule pair(std::string name, double least, std::optional<AttributeValue> otherwise) {
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

std::string all_give(const LayerView& layer) {
    std::vector<std::string> words;
    for (const Node* input : layer.inputs)
        words.push_back("'" + input->name + "' gives " + shape_text(input->shape));
    return join(words);
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

std::vector<Parameter> with_bias(const LayerView& layer, Parameter weight, std::int64_t outputs) {
    std::vector<Parameter> parameters{std::move(weight)};
    if (layer.node.whole("bias") != 0) parameters.push_back({layer.node.name + ".bias", {outputs}, {}});
    return parameters;
}

std::array<std::int64_t, 2> slide(const LayerView& layer) {
    const Shape& input = layer.input_shape();
    const Node& node = layer.node;
    const auto has = [&](const std::string& key) {
        return std::any_of(node.attributes.begin(), node.attributes.end(),
                           [&](const Attribute& one) { return one.name == key; });
    };
    const auto reach = [&](const std::string& axis) {  // from the first to the last input of a window
        const std::int64_t kernel = node.whole("kernel" + axis);
        return has("dilation" + axis) ? (kernel - 1) * node.whole("dilation" + axis) + 1 : kernel;
    };
    const auto end = [&](const std::string& axis) {
        return node.whole((has("padding_end" + axis) ? "padding_end" : "padding") + axis);
    };
    const auto extent = [&](std::int64_t size, const std::string& axis) {
        const std::int64_t padded = size + node.whole("padding" + axis) + end(axis);
        return padded < reach(axis) ? 0 : (padded - reach(axis)) / node.whole("stride" + axis) + 1;
    };
    const std::array<std::int64_t, 2> output{extent(input[2], "_h"), extent(input[3], "_w")};
    if (output[0] < 1 || output[1] < 1) {
        const auto pair = [&](const std::string& key) {
            return std::to_string(node.whole(key + "_h")) + "x" + std::to_string(node.whole(key + "_w"));
        };
        const bool is_dilated = reach("_h") > node.whole("kernel_h") || reach("_w") > node.whole("kernel_w");
        layer.refuse("has a " + pair("kernel") + " kernel" +
                     (is_dilated ? ", dilated by " + pair("dilation") + "," : "") + " with " +
                     pair("padding") + " padding, larger than its images: " + gives(layer));
    }
    return output;
}

}  // namespace timetrial::kinds
