// The kinds of layers. Everything the core knows about a kind is one entry in one of the files of kinds/,
// or one that a user registered.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "network/attributes.h"
#include "network/node.h"
#include "timetrial/backend.h"

namespace timetrial {

// What a layer takes: the output of one node, the prediction and its target, two and more outputs, two and
// more losses, or a sequence and the state in front of its first step.
enum class Takes { kOne, kPredictionAndTarget, kSeveral, kLosses, kSequenceAndState };

// What the derivative of a layer without weights looks at, besides the gradient of its output.
enum class BackwardReads { kNothing, kInput, kOutput, kMask };

// A layer while its entry of the table looks at it: its own node (name, kind and, once normalized,
// attributes and shape) and the nodes it takes its inputs from.
struct LayerView {
    const Node& node;
    const std::vector<const Node*>& inputs;

    const Shape& input_shape() const { return inputs.front()->shape; }
    // Throws NetworkError: "layer 'fc1' (dense) <words>".
    [[noreturn]] void refuse(const std::string& words) const;
};

// What a layer of a registered kind computes, in double, for whoever judges. `digest`: another one for
// another definition. `owner` keeps alive what `c_form` points to.
struct Definition {
    tt_definition c_form{};
    std::string digest;
    std::shared_ptr<const void> owner;
};

std::vector<Parameter> no_parameters(const LayerView& layer);
std::int64_t no_products(const LayerView& layer);
Shape same_shape(const LayerView& layer);

struct LayerKind {
    std::string name;
    Takes takes = Takes::kOne;
    BackwardReads backward_reads = BackwardReads::kNothing;
    std::vector<AttributeRule> attributes = {};
    // Shape of the output; throws NetworkError if the inputs or the attributes do not fit.
    std::function<Shape(const LayerView&)> infer_shape = same_shape;
    std::function<std::vector<Parameter>(const LayerView&)> parameters = no_parameters;
    // Of the forward pass over the whole batch. Backward, the product with the weights and the product with
    // the data each take as many.
    std::function<std::int64_t(const LayerView&)> multiply_accumulates = no_products;
    // Those of them that take a state to the next step: their product with the weights is part of the
    // gradient of the weights, of all earlier steps, whether or not anything before the layer learns.
    std::function<std::int64_t(const LayerView&)> products_through_time = no_products;

    // For people: what it computes, and whence the definition. x is the input, y the output, N the batch, C
    // channels, F features of flat values, w and b weight and bias.
    std::string formula;
    std::string source;

    // Of a layer that treats each value alone: where its derivative jumps, so that rounding decides it.
    std::vector<double> kinks = {};
    bool picks_largest = false;  // in each window, so that of close rivals rounding decides
    bool moves_nothing = false;  // y is x under another shape
    bool keeps_places = false;   // each value of y stands where the value of x stood that it is made of
    // While it learns, what it makes of one sample depends on the others of the batch: its value, or its
    // share.
    bool couples_batch = false;
    // Of a kind that drops some of its values while it learns: the attribute with the share of them. Which
    // ones the batch says: an input of the network of the role TT_MASK, the second of the layer, in the shape
    // of the first, 0 where a value is dropped and 1 / (1 - rate) where it stays.
    std::string mask_rate = "";
    // Its states are of the samples of a batch, which go on in the next one.
    bool carries_state = false;
    // It may have a second input: of the role TT_LENGTHS, how many steps of each sample count.
    bool takes_lengths = false;

    // Whole numbers that it reads lie in 0 to this - 1; empty where it reads none.
    std::function<std::int64_t(const LayerView&)> integers_below = nullptr;
    bool skips_minus_one = false;  // or are -1, of a loss: that place does not count
    // Words of attributes (padding = "same") as the numbers that they stand for; empty: there are none.
    std::function<AttributeSpecs(const LayerView&, const AttributeSpecs&)> translate = nullptr;
    // NetworkError for a layer that can infer with these shapes, but not learn; empty: there is none.
    std::function<void(const LayerView&)> check_training = nullptr;
    // Of a registered kind only.
    std::shared_ptr<const Definition> definition = nullptr;

    bool is_loss() const { return takes == Takes::kPredictionAndTarget; }
    bool is_sum_of_losses() const { return takes == Takes::kLosses; }
    bool has_mask() const { return !mask_rate.empty(); }
};

// Those of the core, without registered ones.
const std::vector<LayerKind>& layer_kinds();

// Of the core, or registered; nullptr if there is no such kind. What is found stays.
const LayerKind* find_layer_kind(std::string_view name);

// Names of all kinds, those of the core first.
std::vector<std::string> layer_kind_names();

// Adds a kind with a definition. Who registers a name again means the new one from then on. NetworkError for
// a kind of the core, and a name that is no word.
void register_layer_kind(LayerKind kind);

}  // namespace timetrial
