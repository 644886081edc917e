// What a network is made of, as plain values: what the user wrote (NodeSpec) and what it means (Node).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "timetrial/backend.h"

namespace timetrial {

using Shape = std::vector<std::int64_t>;

// Elements of a tensor of that shape.
std::int64_t element_count(const Shape& shape);

// A network that cannot be: the text names the layers and shapes that do not fit.
class NetworkError : public std::invalid_argument {
  public:
    using std::invalid_argument::invalid_argument;
};

// true, 5, 0.5, "same" or [5, 3].
using AttributeValue = std::variant<bool, double, std::string, std::vector<double>>;
using AttributeSpecs = std::map<std::string, AttributeValue>;

// A tensor that every batch brings: samples of one shape. What it is for: TT_INPUT, TT_TARGET, TT_MASK or
// TT_LENGTHS.
struct InputSpec {
    std::string name;
    tt_dtype dtype = TT_F32;
    Shape sample;  // shape without the batch: (1, 28, 28); empty for one number per sample
    tt_role role = TT_INPUT;
};

// "input", "target", "mask", "lengths".
const char* role_word(tt_role role) noexcept;
// NetworkError for another word.
tt_role input_role(const std::string& word);

// In normalized form, as backends receive it: a whole number (of a flag 0 or 1), a real one, a word, or a
// list of numbers.
using NormalizedValue = std::variant<std::int64_t, double, std::string, std::vector<double>>;

struct Attribute {
    std::string name;
    NormalizedValue value;
};

// What a parameter is before the first step: initial.h.
struct Initializer {
    std::string name = "zeros";
    std::int64_t fan_in = 0;   // how many values each output is made of
    std::int64_t fan_out = 0;  // how many outputs each value is part of
};

// A tensor of a layer that begins with given values: TT_PARAMETER is trained, TT_STATE changed by training
// steps and read by inference.
struct Parameter {
    std::string name;  // "<node>.weight", "<node>.bias"
    Shape shape;
    Initializer initializer;
    tt_role role = TT_PARAMETER;
    bool decays = true;  // whether the optimizer's weight decay is for it
};

// What a node is beyond its name, kind, inputs and attributes, said by whoever inferred it: for a kind that
// the core does not know, because a user registered it in another process.
struct StatedNode {
    Shape shape;  // of its output, the batch first
    std::vector<Parameter> parameters;
    std::int64_t integers_below = 0;  // LayerKind::integers_below
};

// A layer as the user writes it. Without `inputs` it takes the node before it (the first one: the first
// input of the network).
struct NodeSpec {
    std::string name;
    std::string kind;
    std::optional<std::vector<std::string>> inputs;
    AttributeSpecs attributes;
    std::optional<StatedNode> stated = std::nullopt;  // looked at only where no kind of that name is known
};

struct Definition;

// A layer with everything inferred. Shapes include the batch as first extent.
struct Node {
    std::string name;
    std::string kind;
    std::vector<std::uint32_t> inputs;  // indices of earlier nodes
    std::vector<Attribute> attributes;
    Shape shape;  // of its output
    tt_dtype dtype = TT_F32;
    std::vector<Parameter> parameters;  // those that are trained, then states
    tt_role role = TT_ACTIVATION;       // of its output: TT_ACTIVATION, or what an input is for
    std::int64_t integers_below = 0;    // whole numbers that it reads are; 0: it looks nothing up by them
    std::shared_ptr<const Definition> definition = nullptr;  // of a registered kind
    std::string tied = "";  // the embedding whose weight is its own too; empty: none

    bool is_input() const { return role != TT_ACTIVATION; }

    // The attribute of that name; a normalized node of a kind has all of the kind's attributes.
    const NormalizedValue& attribute(std::string_view attribute_name) const;
    // The same of one that is a whole number or a flag.
    std::int64_t whole(std::string_view attribute_name) const;
};

}  // namespace timetrial
