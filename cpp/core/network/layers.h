// The kinds of layers. Everything the core knows about a kind is one entry of the table in layers.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "network/node.h"

namespace timetrial {

// What a layer takes: the output of one node, the prediction and its target, or two and more outputs.
enum class Takes { kOne, kPredictionAndTarget, kSeveral };

// What the derivative of a layer without weights looks at, besides the gradient of its output.
enum class BackwardReads { kNothing, kInput, kOutput };

// A layer while its entry of the table looks at it: its own node (name, kind and, once normalized,
// attributes and shape) and the nodes it takes its inputs from.
struct LayerView {
    const Node& node;
    const std::vector<const Node*>& inputs;

    const Shape& input_shape() const { return inputs.front()->shape; }
    // Throws NetworkError: "layer 'fc1' (dense) <words>".
    [[noreturn]] void refuse(const std::string& words) const;
};

struct LayerKind {
    std::string_view name;
    Takes takes;
    BackwardReads backward_reads;
    // Keys that a user may write, in user form and in normalized form.
    std::vector<std::string> keys;
    // User form to normalized form. `node` has name and kind only.
    std::vector<Attribute> (*normalize)(const LayerView& layer, const AttributeSpecs& specs);
    // Shape of the output; throws NetworkError if the inputs do not fit.
    Shape (*infer_shape)(const LayerView& layer);
    std::vector<Parameter> (*parameters)(const LayerView& layer);
    // Of the forward pass over the whole batch. Backward, the product with the weights and the product with
    // the data each take as many.
    std::int64_t (*multiply_accumulates)(const LayerView& layer);

    // For people: the attributes with their defaults, what it computes, and whence the definition. x is the
    // input, y the output, N the batch, C channels, F features of flat values, w and b weight and bias.
    std::string_view attributes;
    std::string_view formula;
    std::string_view source;

    bool is_loss() const { return takes == Takes::kPredictionAndTarget; }
};

const std::vector<LayerKind>& layer_kinds();

// nullptr if there is no such kind.
const LayerKind* find_layer_kind(std::string_view name);

}  // namespace timetrial
