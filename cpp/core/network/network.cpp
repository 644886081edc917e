#include "network/network.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "network/layers.h"
#include "text/text.h"

namespace timetrial {
namespace {

constexpr std::int64_t kF32Bytes = 4;

std::vector<const Node*> inputs_of(const std::vector<Node>& nodes, const Node& node) {
    std::vector<const Node*> inputs;
    for (const std::uint32_t index : node.inputs) inputs.push_back(&nodes[index]);
    return inputs;
}

std::vector<std::string> names_of(const std::vector<Node>& nodes) {
    std::vector<std::string> names;
    for (const Node& node : nodes) names.push_back(node.name);
    return names;
}

// Names become names of tensors, files and C strings.
void check_name(const std::string& name) {
    const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; };
    if (name.empty() || name.size() > 64 || !std::all_of(name.begin(), name.end(), is_word))
        throw NetworkError("layer name '" + name + "': expected 1 to 64 letters, digits, '_' or '-'");
}

void check_keys(const LayerView& layer, const LayerKind& kind, const AttributeSpecs& specs) {
    for (const auto& [key, value] : specs) {
        if (std::find(kind.keys.begin(), kind.keys.end(), key) != kind.keys.end()) continue;
        layer.refuse("has no attribute '" + key + "'." +
                     (kind.keys.empty() ? " This kind has none." : nearest(key, kind.keys)));
    }
}

std::int64_t parameter_elements(const Node& node) {
    std::int64_t elements = 0;
    for (const Parameter& parameter : node.parameters) elements += element_count(parameter.shape);
    return elements;
}

}  // namespace

std::int64_t element_count(const Shape& shape) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) {
        if (__builtin_mul_overflow(count, extent, &count))
            throw NetworkError("a tensor of shape " + shape_text(shape) + " is too large");
    }
    return count;
}

std::int64_t Node::attribute(std::string_view attribute_name) const {
    for (const Attribute& attribute : attributes)
        if (attribute.name == attribute_name) return attribute.value;
    throw NetworkError("layer '" + name + "' (" + kind + ") has no attribute '" +
                       std::string(attribute_name) + "'");
}

Network::Network(const std::vector<NodeSpec>& specs, std::int64_t batch_size, const Shape& input_shape) {
    add_inputs(batch_size, input_shape);
    for (const NodeSpec& spec : specs)
        if (spec.kind != "input")
            add_layer(spec);
        else if (spec.name != "images" && spec.name != "labels")
            throw NetworkError("input '" + spec.name +
                               "': the inputs of a network are \"images\" and \"labels\"");
    find_loss_and_output();
}

void Network::add_inputs(std::int64_t batch_size, const Shape& input_shape) {
    if (batch_size < 1)
        throw NetworkError("batch_size = " + std::to_string(batch_size) + "; expected a whole number from 1");
    const bool positive =
        std::all_of(input_shape.begin(), input_shape.end(), [](auto extent) { return extent > 0; });
    if ((input_shape.size() != 1 && input_shape.size() != 3) || !positive)
        throw NetworkError("input_shape = " + shape_text(input_shape) +
                           "; expected the shape of one sample: (channels, height, width) or (features,)");
    batch_size_ = batch_size;
    Shape images{batch_size};
    images.insert(images.end(), input_shape.begin(), input_shape.end());
    element_count(images);
    nodes_.push_back({"images", "input", {}, {}, std::move(images), TT_F32, {}});
    nodes_.push_back({"labels", "input", {}, {}, Shape{batch_size}, TT_I64, {}});
    trains_.assign(2, false);
}

void Network::add_layer(const NodeSpec& spec) {
    check_name(spec.name);
    for (const Node& node : nodes_)
        if (node.name == spec.name)
            throw NetworkError(
                "two nodes are called '" + spec.name + "': names must differ" +
                (node.kind == "input" ? " (\"images\" and \"labels\" are the network's inputs)" : ""));
    const LayerKind* kind = find_layer_kind(spec.kind);
    if (kind == nullptr) {
        std::vector<std::string> known;
        for (const LayerKind& entry : layer_kinds()) known.emplace_back(entry.name);
        throw NetworkError(
            "layer '" + spec.name + "' has the unknown kind '" + spec.kind + "'." +
            nearest(spec.kind, known) +
            " What is not here can be raced today: write the training step in your framework, and "
            "name the function that makes it, callable=\"package.module:make_step\".");
    }
    Node node{spec.name, spec.kind, {}, {}, {}, TT_F32, {}};
    std::vector<const Node*> inputs;
    const LayerView layer{node, inputs};
    // A loss names its inputs; another layer may leave that out and follows the node before.
    if (!spec.inputs && kind->is_loss) layer.refuse("needs inputs = [prediction, \"labels\"]");
    const std::string before = nodes_.size() == 2 ? "images" : nodes_.back().name;
    for (const std::string& name : spec.inputs ? *spec.inputs : std::vector<std::string>{before}) {
        const std::uint32_t count = static_cast<std::uint32_t>(nodes_.size());
        std::uint32_t index = 0;
        while (index < count && nodes_[index].name != name) ++index;
        if (index == count)
            layer.refuse("has the input '" + name + "', which is no node before it." +
                         nearest(name, names_of(nodes_)));
        if (nodes_[index].shape.empty())
            layer.refuse("has the loss '" + name + "' as input: nothing can follow a loss");
        if (nodes_[index].dtype == TT_I64 && !kind->is_loss)
            layer.refuse("has \"labels\" as input: only a loss can");
        node.inputs.push_back(index);
    }
    if (node.inputs.size() != kind->n_inputs)
        layer.refuse("has " + std::to_string(node.inputs.size()) + " inputs; expected " +
                     std::to_string(kind->n_inputs) + (kind->is_loss ? ": [prediction, \"labels\"]" : ""));
    inputs = inputs_of(nodes_, node);
    check_keys(layer, *kind, spec.attributes);
    node.attributes = kind->normalize(layer, spec.attributes);
    node.shape = kind->infer_shape(layer);
    node.parameters = kind->parameters(layer);
    element_count(node.shape);
    bool trains = !node.parameters.empty();
    for (const std::uint32_t index : node.inputs) trains = trains || trains_[index];
    nodes_.push_back(std::move(node));
    trains_.push_back(trains);
}

void Network::find_loss_and_output() {
    std::vector<std::string> losses;
    std::vector<bool> used(nodes_.size(), false);
    for (std::uint32_t index = 2; index < nodes_.size(); ++index) {
        for (const std::uint32_t input : nodes_[index].inputs) used[input] = true;
        if (!find_layer_kind(nodes_[index].kind)->is_loss) continue;
        losses.push_back(nodes_[index].name);
        loss_ = index;
        output_ = nodes_[index].inputs[0];
    }
    if (losses.size() != 1)
        throw NetworkError(losses.empty()
                               ? "the network has no loss: end it with a node of kind "
                                 "softmax_cross_entropy or squared_error"
                               : "the network has several losses (" + join(losses) + "); expected one");
    // Work that reaches no loss would be done by one backend and left out by another.
    for (std::uint32_t index = 2; index < nodes_.size(); ++index)
        if (index != loss_ && !used[index])
            throw NetworkError("layer '" + nodes_[index].name + "' (" + nodes_[index].kind +
                               ") is the input of no other: remove it or connect it to the loss");
}

std::uint32_t Network::index_of(std::string_view name) const {
    for (std::uint32_t index = 0; index < nodes_.size(); ++index)
        if (nodes_[index].name == name) return index;
    throw NetworkError("the network has no node '" + std::string(name) + "'." +
                       nearest(name, names_of(nodes_)));
}

std::vector<Parameter> Network::parameters() const {
    std::vector<Parameter> all;
    for (const Node& node : nodes_) all.insert(all.end(), node.parameters.begin(), node.parameters.end());
    return all;
}

std::int64_t Network::parameter_count() const {
    std::int64_t count = 0;
    for (const Node& node : nodes_) count += parameter_elements(node);
    return count;
}

std::int64_t Network::activation_bytes() const {
    std::int64_t elements = 0;
    for (const Node& node : nodes_)
        if (node.kind != "input") elements += element_count(node.shape);
    return kF32Bytes * elements;
}

// The gradient of a node's input is needed where something before it has parameters.
bool Network::needs_data_gradient(std::uint32_t index) const {
    const auto& inputs = nodes_[index].inputs;
    return std::any_of(inputs.begin(), inputs.end(), [&](std::uint32_t input) { return trains_[input]; });
}

PassWork Network::multiply_accumulates(std::uint32_t index) const {
    const Node& node = nodes_[index];
    const LayerKind* kind = find_layer_kind(node.kind);
    if (kind == nullptr) return {};  // an input
    const std::vector<const Node*> inputs = inputs_of(nodes_, node);
    const std::int64_t products = kind->multiply_accumulates({node, inputs});
    return {products, needs_data_gradient(index) ? products : 0, node.parameters.empty() ? 0 : products};
}

PassWork Network::bytes(std::uint32_t index) const {
    const Node& node = nodes_[index];
    const LayerKind* kind = find_layer_kind(node.kind);
    if (kind == nullptr) return {};
    const std::int64_t input = element_count(nodes_[node.inputs[0]].shape);
    const std::int64_t output = element_count(node.shape);
    const std::int64_t weights = parameter_elements(node);
    const std::int64_t reads = kind->backward_reads == BackwardReads::kInput    ? input
                               : kind->backward_reads == BackwardReads::kOutput ? output
                                                                                : weights;
    PassWork elements{input + weights + output, 0, 0};
    if (needs_data_gradient(index)) elements.backward_data = output + reads + input;
    if (weights > 0) elements.backward_weights = output + input + weights;
    return {kF32Bytes * elements.forward, kF32Bytes * elements.backward_data,
            kF32Bytes * elements.backward_weights};
}

}  // namespace timetrial
