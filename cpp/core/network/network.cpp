#include "network/network.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <string>

#include "network/attributes.h"
#include "network/initial.h"
#include "network/layers.h"
#include "text/text.h"

namespace timetrial {
namespace {

constexpr std::int64_t kF32Bytes = 4;

constexpr std::pair<const char*, tt_role> input_roles[] = {
    {"input", TT_INPUT}, {"target", TT_TARGET}, {"mask", TT_MASK}, {"lengths", TT_LENGTHS}};

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

constexpr std::string_view mask_suffix = ".mask";

// Names become names of tensors, files and C strings. That of a mask is its layer's and a suffix.
void check_name(std::string name, tt_role role = TT_ACTIVATION) {
    if (role == TT_MASK && name.ends_with(mask_suffix)) name.resize(name.size() - mask_suffix.size());
    const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; };
    if (name.empty() || name.size() > 64 || !std::all_of(name.begin(), name.end(), is_word))
        throw NetworkError("layer name '" + name + "': expected 1 to 64 letters, digits, '_' or '-'");
}

// What another process inferred already.
std::vector<Attribute> stated_attributes(const AttributeSpecs& specs) {
    std::vector<Attribute> attributes;
    for (const auto& [name, value] : specs) {
        if (const auto* flag = std::get_if<bool>(&value))
            attributes.push_back({name, std::int64_t{*flag}});
        else if (const auto* number = std::get_if<double>(&value))
            attributes.push_back({name, *number});
        else if (const auto* word = std::get_if<std::string>(&value))
            attributes.push_back({name, *word});
        else
            attributes.push_back({name, std::get<std::vector<double>>(value)});
    }
    return attributes;
}

// "softmax_cross_entropy or squared_error"
std::string loss_kinds() {
    std::vector<std::string> names;
    for (const LayerKind& kind : layer_kinds())
        if (kind.is_loss()) names.push_back(kind.name);
    return join(names, " or ");
}

std::int64_t parameter_elements(const Node& node) {
    std::int64_t elements = 0;
    for (const Parameter& parameter : node.parameters)
        if (parameter.role == TT_PARAMETER) elements += element_count(parameter.shape);
    return elements;
}

// The names in `inputs`, or that of the node before, which is what a node without them takes (the first one
// takes the first input, which leads nowhere).
std::vector<std::string> input_names(const std::vector<NodeSpec>& specs, std::size_t index) {
    if (specs[index].inputs) return *specs[index].inputs;
    return index == 0 ? std::vector<std::string>{} : std::vector<std::string>{specs[index - 1].name};
}

// From specs[from] along inputs to the node `to`, by name; empty if no way leads there.
std::vector<std::string> way_to(const std::vector<NodeSpec>& specs, std::size_t from, const std::string& to,
                                std::vector<bool>& seen) {
    if (specs[from].name == to) return {to};
    seen[from] = true;
    for (const std::string& name : input_names(specs, from)) {
        for (std::size_t next = 0; next < specs.size(); ++next) {
            if (specs[next].name != name || seen[next]) continue;
            std::vector<std::string> way = way_to(specs, next, to, seen);
            if (way.empty()) continue;
            way.insert(way.begin(), specs[from].name);
            return way;
        }
    }
    return {};
}

// For an input that is no node before the layer.
[[noreturn]] void refuse_input(const LayerView& layer, const std::string& name,
                               const std::vector<NodeSpec>& specs, const std::vector<Node>& before) {
    for (std::size_t index = 0; index < specs.size(); ++index) {
        if (specs[index].name != name) continue;
        std::vector<bool> seen(specs.size());
        const std::vector<std::string> way = way_to(specs, index, layer.node.name, seen);
        if (!way.empty())
            layer.refuse("takes part in a cycle (" + layer.node.name + " reads " + join(way, " reads ") +
                         "): a network is computed node by node, so none can wait for its own output");
        layer.refuse("has the input '" + name + "', which stands behind it: move '" + name +
                     "' in front of it");
    }
    layer.refuse("has the input '" + name + "', which is no node before it." +
                 nearest(name, names_of(before)));
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

const char* role_word(tt_role role) noexcept {
    for (const auto& [word, known] : input_roles)
        if (known == role) return word;
    return "";
}

tt_role input_role(const std::string& word) {
    std::vector<std::string> known;
    for (const auto& [name, role] : input_roles) {
        if (word == name) return role;
        known.emplace_back(name);
    }
    throw NetworkError("an input cannot be for '" + word + "'." + nearest(word, known));
}

const NormalizedValue& Node::attribute(std::string_view attribute_name) const {
    for (const Attribute& attribute : attributes)
        if (attribute.name == attribute_name) return attribute.value;
    throw NetworkError("layer '" + name + "' (" + kind + ") has no attribute '" +
                       std::string(attribute_name) + "'");
}

std::int64_t Node::whole(std::string_view attribute_name) const {
    return std::get<std::int64_t>(attribute(attribute_name));
}

Network::Network(const std::vector<NodeSpec>& specs, std::int64_t batch_size,
                 const std::vector<InputSpec>& inputs) {
    add_inputs(batch_size, inputs);
    check_input_specs(specs);
    for (const NodeSpec& spec : specs)
        if (spec.kind != "input") add_layer(spec, specs);
    find_loss_and_output();
    refuse_unused();
}

void Network::add_inputs(std::int64_t batch_size, const std::vector<InputSpec>& inputs) {
    if (batch_size < 1)
        throw NetworkError("batch_size = " + std::to_string(batch_size) + "; expected a whole number from 1");
    batch_size_ = batch_size;
    for (const InputSpec& input : inputs) {
        check_name(input.name, input.role);
        for (const Node& node : nodes_)
            if (node.name == input.name)
                throw NetworkError("two inputs are called '" + input.name + "': names must differ");
        if (!std::all_of(input.sample.begin(), input.sample.end(), [](auto extent) { return extent > 0; }) ||
            input.sample.size() >= TT_MAX_RANK)
            throw NetworkError("input '" + input.name + "': samples of shape " + shape_text(input.sample) +
                               "; expected at most " + std::to_string(TT_MAX_RANK - 1) +
                               " whole numbers from 1, such as (channels, height, width) or (features,)");
        Shape shape{batch_size};
        shape.insert(shape.end(), input.sample.begin(), input.sample.end());
        element_count(shape);
        nodes_.push_back({input.name, "input", {}, {}, std::move(shape), input.dtype, {}, input.role});
    }
    n_inputs_ = static_cast<std::uint32_t>(nodes_.size());
    if (n_inputs_ == 0) throw NetworkError("a network needs an input: the data set gives none");
    trains_.assign(n_inputs_, false);
}

void Network::check_input_specs(const std::vector<NodeSpec>& specs) const {
    for (const NodeSpec& spec : specs)
        if (spec.kind == "input" &&
            std::none_of(nodes_.begin(), nodes_.end(), [&](const Node& n) { return n.name == spec.name; }))
            throw NetworkError("input '" + spec.name + "' is none of the data's: " + join(names_of(nodes_)));
}

std::vector<std::uint32_t> Network::inputs() const {
    std::vector<std::uint32_t> indices(n_inputs_);
    std::iota(indices.begin(), indices.end(), 0);
    return indices;
}

std::int64_t Network::values_below(std::uint32_t input) const {
    if (nodes_[input].dtype != TT_I64) return 0;
    std::int64_t least = 0;  // of all who look something up
    for (const Node& node : nodes_) {
        if (std::find(node.inputs.begin(), node.inputs.end(), input) == node.inputs.end()) continue;
        if (node.integers_below > 0 && (least == 0 || node.integers_below < least))
            least = node.integers_below;
    }
    return least;
}

std::int64_t Network::values_from(std::uint32_t input) const {
    bool is_skipped = false;  // by all who look something up
    for (const Node& node : nodes_) {
        if (std::find(node.inputs.begin(), node.inputs.end(), input) == node.inputs.end()) continue;
        const LayerKind* kind = find_layer_kind(node.kind);
        if (kind == nullptr || !kind->skips_minus_one) return 0;
        is_skipped = true;
    }
    return is_skipped ? -1 : 0;
}

void Network::add_layer(const NodeSpec& spec, const std::vector<NodeSpec>& all) {
    check_name(spec.name);
    for (const Node& node : nodes_)
        if (node.name == spec.name)
            throw NetworkError("two nodes are called '" + spec.name + "': names must differ" +
                               (node.is_input() ? " ('" + spec.name + "' is an input of the network)" : ""));
    const LayerKind* kind = find_layer_kind(spec.kind);
    if (kind == nullptr && !spec.stated) {
        throw NetworkError(
            "layer '" + spec.name + "' has the unknown kind '" + spec.kind + "'." +
            nearest(spec.kind, layer_kind_names()) +
            " What is not here can be raced today: write the training step in your framework, and "
            "name the function that makes it, callable=\"package.module:make_step\". A kind for a backend of "
            "your own is registered with timetrial.layer_kind.");
    }
    Node node{spec.name, spec.kind, {}, {}, {}, TT_F32, {}};
    std::vector<const Node*> inputs;
    const LayerView layer{node, inputs};
    // A loss names its inputs; another layer may leave that out and follows the node before.
    if (!spec.inputs && kind != nullptr && kind->is_loss())
        layer.refuse("needs inputs = [prediction, target]");
    const std::string before = nodes_.size() == n_inputs_ ? nodes_.front().name : nodes_.back().name;
    node.inputs =
        find_inputs(layer, kind, spec.inputs ? *spec.inputs : std::vector<std::string>{before}, all);
    if (kind != nullptr && kind->has_mask()) add_mask(layer, node.inputs);
    if (kind != nullptr && kind->takes_lengths) check_lengths(layer, node.inputs);
    inputs = inputs_of(nodes_, node);
    if (kind == nullptr) {
        node.attributes = stated_attributes(spec.attributes);
        node.shape = spec.stated->shape;
        node.parameters = spec.stated->parameters;
        node.integers_below = spec.stated->integers_below;
    } else {
        node.attributes =
            read_attributes(layer, kind->attributes,
                            kind->translate ? kind->translate(layer, spec.attributes) : spec.attributes);
        for (const AttributeRule& rule : kind->attributes)
            for (const Attribute& one : node.attributes)
                if (rule.type == AttributeType::kNode && one.name == rule.name)
                    node.tied = std::get<std::string>(one.value);
        node.shape = kind->infer_shape(layer);
        if (!node.tied.empty()) check_tied(layer);
        node.parameters = kind->parameters(layer);
        if (kind->integers_below) node.integers_below = kind->integers_below(layer);
        node.definition = kind->definition;
    }
    element_count(node.shape);
    for (const Parameter& parameter : node.parameters) check_initializer(parameter);
    bool trains = weight_elements(node) > 0;
    for (const std::uint32_t index : node.inputs) trains = trains || trains_[index];
    nodes_.push_back(std::move(node));
    trains_.push_back(trains);
}

void Network::add_mask(const LayerView& layer, std::vector<std::uint32_t>& inputs) {
    const Shape shape = nodes_[inputs.front()].shape;
    if (inputs.size() == 2) {
        const Node& mask = nodes_[inputs[1]];
        if (mask.role != TT_MASK || mask.shape != shape)
            layer.refuse("needs as its second input a mask in the shape of the first, " + shape_text(shape) +
                         "; '" + mask.name + "' is " + shape_text(mask.shape) +
                         (mask.role == TT_MASK ? "" : " and no mask") +
                         ". Leave it out, and the layer gets one of its own");
        for (const Node& node : nodes_)
            if (!node.is_input() && node.inputs.size() == 2 && node.inputs[1] == inputs[1])
                layer.refuse("has the mask of '" + node.name + "': each layer draws its own");
        return;
    }
    const std::uint32_t added = n_inputs_++;
    for (Node& node : nodes_)
        for (std::uint32_t& index : node.inputs) index += index >= added ? 1 : 0;
    inputs[0] += inputs[0] >= added ? 1 : 0;
    inputs.push_back(added);
    nodes_.insert(nodes_.begin() + added,
                  {layer.node.name + std::string(mask_suffix), "input", {}, {}, shape, TT_F32, {}, TT_MASK});
    trains_.insert(trains_.begin() + added, false);
}

void Network::check_lengths(const LayerView& layer, const std::vector<std::uint32_t>& inputs) const {
    if (inputs.size() < 2) return;
    const Node& lengths = nodes_[inputs[1]];
    if (lengths.role != TT_LENGTHS || lengths.dtype != TT_I64 || lengths.shape.size() != 1)
        layer.refuse(
            "needs as its second input lengths: an input of the network of the role lengths, one "
            "whole number per sample; '" +
            lengths.name + "' is " + shape_text(lengths.shape) +
            (lengths.role == TT_LENGTHS ? "" : " and no lengths"));
}

void Network::check_tied(const LayerView& layer) const {
    const Node& node = layer.node;
    std::vector<std::string> tables;
    for (const Node& before : nodes_) {
        if (before.tied == node.tied)
            layer.refuse("has tied = \"" + node.tied + "\", to which '" + before.name +
                         "' is tied: one layer can be");
        if (before.kind == "embedding") tables.push_back(before.name);
    }
    if (std::find(tables.begin(), tables.end(), node.tied) == tables.end())
        layer.refuse("has tied = \"" + node.tied + "\"; expected the name of an embedding in front of it" +
                     (tables.empty() ? ", and there is none" : "." + nearest(node.tied, tables)));
    const Shape& weight = nodes_[index_of(node.tied)].parameters.front().shape;
    const Shape wanted{node.whole("units"), layer.input_shape().back()};
    if (weight != wanted)
        layer.refuse("has tied = \"" + node.tied + "\", whose weight is " + shape_text(weight) +
                     "; expected (units, features of the input) = " + shape_text(wanted));
}

std::vector<std::uint32_t> Network::find_inputs(const LayerView& layer, const LayerKind* kind,
                                                const std::vector<std::string>& names,
                                                const std::vector<NodeSpec>& all) const {
    std::vector<std::uint32_t> found;
    for (const std::string& name : names) {
        const std::uint32_t count = static_cast<std::uint32_t>(nodes_.size());
        std::uint32_t index = 0;
        while (index < count && nodes_[index].name != name) ++index;
        if (index == count) refuse_input(layer, name, all, nodes_);
        const LayerKind* before = find_layer_kind(nodes_[index].kind);
        const bool is_loss = before != nullptr && before->is_loss();
        const bool adds_losses = kind != nullptr && kind->is_sum_of_losses();
        if (nodes_[index].shape.empty() && !(is_loss && adds_losses))
            layer.refuse("has the loss '" + name + "' as input: nothing can follow a loss" +
                         (is_loss ? " but a node of kind loss_sum" : ""));
        if (adds_losses && (!is_loss || std::find(found.begin(), found.end(), index) != found.end()))
            layer.refuse("has '" + name + "' as input" +
                         (is_loss ? " twice: weights say how much a loss counts" : ", which is no loss"));
        if (nodes_[index].dtype == TT_I64 && kind != nullptr && !kind->is_loss() && !kind->integers_below)
            layer.refuse("has '" + name + "' as input, which are whole numbers: it computes with real ones");
        found.push_back(index);
    }
    const std::string has =
        "has " + std::to_string(found.size()) + (found.size() == 1 ? " input" : " inputs");
    const std::string named = names.empty() ? "" : " ('" + join(names, "', '") + "')";
    if (kind == nullptr) return found;
    const bool names_second = (kind->has_mask() || kind->takes_lengths) && found.size() == 2;
    if (kind->takes == Takes::kOne && found.size() != 1 && !names_second)
        layer.refuse(has + named + "; expected 1");
    if ((kind->takes == Takes::kSeveral || kind->is_sum_of_losses()) && found.size() < 2)
        layer.refuse(has + named + "; expected two or more: inputs = [\"...\", \"...\"]");
    if (kind->takes == Takes::kSequenceAndState && found.size() != 2)
        layer.refuse(has + named + "; expected 2: [sequence, state]");
    if (kind->is_loss() && found.size() != 2)
        layer.refuse(has + named + "; expected 2: [prediction, target]");
    return found;
}

void Network::find_loss_and_output() {
    std::vector<std::string> losses, sums;
    for (std::uint32_t index = n_inputs_; index < nodes_.size(); ++index) {
        const LayerKind* kind = find_layer_kind(nodes_[index].kind);
        if (kind == nullptr || !(kind->is_loss() || kind->is_sum_of_losses())) continue;
        (kind->is_loss() ? losses : sums).push_back(nodes_[index].name);
        if (kind->is_loss() && !sums.empty()) continue;
        loss_ = index;
        output_loss_ = kind->is_loss() ? index : nodes_[index].inputs[0];
    }
    output_ = nodes_[output_loss_].inputs.empty() ? 0 : nodes_[output_loss_].inputs[0];
    if (losses.empty())
        throw NetworkError("the network has no loss: end it with a node of kind " + loss_kinds());
    if (sums.size() > 1) throw NetworkError("the network has several sums of losses (" + join(sums) + ")");
    if (losses.size() > 1 && sums.empty())
        throw NetworkError("the network has several losses (" + join(losses) +
                           "); expected one, or a node of kind loss_sum that adds them");
}

// Work that reaches no loss would be done by one backend and left out by another; so would the gathering of
// data that nothing reads.
void Network::refuse_unused() const {
    std::vector<bool> used(nodes_.size(), false);
    for (const Node& node : nodes_)
        for (const std::uint32_t input : node.inputs) used[input] = true;
    for (std::uint32_t index = 0; index < nodes_.size(); ++index) {
        if (index == loss_ || used[index]) continue;
        if (nodes_[index].is_input())
            throw NetworkError("the data's '" + nodes_[index].name + "' are the input of no layer: connect " +
                               "them, or take data without");
        throw NetworkError("layer '" + nodes_[index].name + "' (" + nodes_[index].kind +
                           ") is the input of no other: remove it or connect it to the loss");
    }
}

std::uint32_t Network::index_of(std::string_view name) const {
    for (std::uint32_t index = 0; index < nodes_.size(); ++index)
        if (nodes_[index].name == name) return index;
    throw NetworkError("the network has no node '" + std::string(name) + "'." +
                       nearest(name, names_of(nodes_)));
}

bool Network::couples_batch() const {
    return std::any_of(nodes_.begin(), nodes_.end(), [](const Node& node) {
        const LayerKind* kind = find_layer_kind(node.kind);
        const auto is_state = [](const Parameter& one) { return one.role == TT_STATE; };
        return (kind != nullptr && kind->couples_batch) ||
               std::any_of(node.parameters.begin(), node.parameters.end(), is_state);
    });
}

void Network::check_training() const {
    for (const Node& node : nodes_)
        if (const LayerKind* kind = find_layer_kind(node.kind); kind != nullptr && kind->check_training)
            kind->check_training({node, inputs_of(nodes_, node)});
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

std::int64_t Network::weight_elements(const Node& node) const {
    const std::int64_t own = parameter_elements(node);
    return node.tied.empty() ? own : own + parameter_elements(nodes_[index_of(node.tied)]);
}

std::int64_t Network::activation_bytes() const {
    std::int64_t elements = 0;
    for (const Node& node : nodes_)
        if (node.kind != "input") elements += element_count(node.shape);
    return kF32Bytes * elements;
}

// Of a node's output, where it is f32.
std::int64_t Network::elements_of(std::uint32_t index) const {
    return nodes_[index].dtype == TT_F32 ? element_count(nodes_[index].shape) : 0;
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
    const std::int64_t through_time = kind->products_through_time({node, inputs});
    // What the weights multiply is the first input; a state to begin with gets its gradient through time.
    const bool needs_data = through_time > 0 ? trains_[node.inputs.front()] : needs_data_gradient(index);
    return {products, needs_data ? products - through_time : 0,
            weight_elements(node) == 0 ? 0 : products + through_time};
}

PassWork Network::bytes(std::uint32_t index) const {
    const Node& node = nodes_[index];
    const LayerKind* kind = find_layer_kind(node.kind);
    if (kind == nullptr) return {};
    std::int64_t input = 0, input_gradient = 0;
    for (const std::uint32_t index_of_input : node.inputs) {
        input += elements_of(index_of_input);
        if (trains_[index_of_input]) input_gradient += elements_of(index_of_input);
    }
    const std::int64_t output = element_count(node.shape);
    const std::int64_t weights = weight_elements(node);
    const std::int64_t reads = kind->backward_reads == BackwardReads::kInput    ? input
                               : kind->backward_reads == BackwardReads::kOutput ? output
                               : kind->backward_reads == BackwardReads::kMask
                                   ? elements_of(node.inputs.back())
                                   : weights;
    PassWork elements{input + weights + output, 0, 0};
    if (input_gradient > 0) elements.backward_data = output + reads + input_gradient;
    if (weights > 0) elements.backward_weights = output + input + weights;
    return {kF32Bytes * elements.forward, kF32Bytes * elements.backward_data,
            kF32Bytes * elements.backward_weights};
}

}  // namespace timetrial
