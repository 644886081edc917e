// Attributes of layers: what a user may write, by type, and what becomes of it. Each error names the layer,
// the key, the value and what was expected.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "network/node.h"

namespace timetrial {

struct LayerView;

enum class AttributeType {
    kWhole,  // 5
    kReal,   // 0.5
    kFlag,   // true; normalized 1 or 0
    kWord,   // "tanh", one of the rule's words
    kNode,   // "embed", the name of a layer in front of it
    kPair,   // along height and width: 5, [5, 3], or KEY_h and KEY_w, which are its normalized form
    kList,   // [3, 8, 8]
};

// "whole", "real", "flag", "word", "pair", "list"; NetworkError for another word.
AttributeType attribute_type(const std::string& word);

// One attribute of a kind. Without `otherwise` and `same_as` it has to be given.
struct AttributeRule {
    std::string name;
    AttributeType type;
    std::optional<AttributeValue> otherwise = std::nullopt;
    std::string same_as =
        "";  // an attribute before it, of the same type, whose value it has if none is given
    double least = -std::numeric_limits<double>::infinity();  // of every number
    // Of kWord: what it may be. Of another type: words that the kind translates before rules are applied.
    std::vector<std::string> words = {};
    // Of kPair: not written by people, who have another attribute for it; only the normalized form has it.
    bool is_derived = false;
};

// One attribute of the user's, in normalized form; two of a pair. Nothing is looked up but this rule's keys.
std::vector<Attribute> read_attribute(const LayerView& layer, const AttributeRule& rule,
                                      const AttributeSpecs& specs, const std::vector<Attribute>& before = {});

// All of a kind, in the order of its rules. Refuses keys that no rule has.
std::vector<Attribute> read_attributes(const LayerView& layer, const std::vector<AttributeRule>& rules,
                                       const AttributeSpecs& specs);

// For people: "`channels`, `kernel`, `stride` (1), `bias` (true)".
std::string attribute_words(const std::vector<AttributeRule>& rules);

}  // namespace timetrial
