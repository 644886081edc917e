#include "network/attributes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "network/layers.h"
#include "text/text.h"

namespace timetrial {
namespace {

// Beyond it a number is a slip of the keyboard, and products of extents could overflow.
constexpr double kLargest = 1 << 24;

constexpr std::pair<const char*, AttributeType> kTypes[] = {
    {"whole", AttributeType::kWhole}, {"real", AttributeType::kReal}, {"flag", AttributeType::kFlag},
    {"word", AttributeType::kWord},   {"pair", AttributeType::kPair}, {"list", AttributeType::kList}};

std::string quoted(const std::string& word) { return "\"" + word + "\""; }

std::string value_text(const AttributeValue& value) {
    if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
    if (const double* number = std::get_if<double>(&value)) return number_text(*number);
    if (const std::string* word = std::get_if<std::string>(&value)) return quoted(*word);
    std::vector<std::string> numbers;
    for (const double number : std::get<std::vector<double>>(value)) numbers.push_back(number_text(number));
    return "[" + join(numbers) + "]";
}

// Reads what the user wrote for one rule.
class Reader {
  public:
    Reader(const LayerView& layer, const AttributeRule& rule, const AttributeSpecs& specs)
        : layer_(layer), rule_(rule), specs_(specs) {}

    std::vector<Attribute> read(const std::vector<Attribute>& before) const {
        if (rule_.type == AttributeType::kPair) return pair(before);
        const AttributeValue* value = find(rule_.name);
        if (value == nullptr && !rule_.same_as.empty()) return {{rule_.name, known(before, rule_.same_as)}};
        return {{rule_.name, single(value != nullptr ? *value : otherwise())}};
    }

  private:
    const AttributeValue* find(const std::string& key) const {
        const auto found = specs_.find(key);
        return found == specs_.end() ? nullptr : &found->second;
    }

    static const NormalizedValue& known(const std::vector<Attribute>& before, const std::string& name) {
        return std::find_if(before.begin(), before.end(),
                            [&](const Attribute& one) { return one.name == name; })
            ->value;
    }

    std::string expected() const {
        const bool has_least = std::isfinite(rule_.least);
        const std::string from = has_least ? " from " + number_text(rule_.least) : "";
        std::vector<std::string> words;
        for (const std::string& word : rule_.words) words.push_back(quoted(word));
        switch (rule_.type) {
            case AttributeType::kWhole:
                return "a whole number" + from;
            case AttributeType::kReal:
                return "a number" + from;
            case AttributeType::kFlag:
                return "true or false";
            case AttributeType::kWord:
                return join(words, " or ");
            case AttributeType::kNode:
                return "the name of a layer";
            case AttributeType::kPair:
                return words.empty() ? "a whole number or [height, width]"
                                     : "a whole number, [height, width] or " + join(words, " or ");
            case AttributeType::kList:
                return "a list of numbers" + from;
        }
        return "";
    }

    [[noreturn]] void refuse(const std::string& key, const AttributeValue& value,
                             const std::string& wanted) const {
        layer_.refuse("has " + key + " = " + value_text(value) + "; expected " + wanted);
    }

    const AttributeValue& otherwise() const {
        if (!rule_.otherwise) layer_.refuse("needs '" + rule_.name + "', " + expected());
        return *rule_.otherwise;
    }

    std::int64_t whole(const std::string& key, const AttributeValue& value, double number) const {
        if (!(number >= std::max(rule_.least, -kLargest) && number <= kLargest) ||
            number != std::floor(number))
            refuse(key, value,
                   "whole numbers from " + number_text(std::max(rule_.least, -kLargest)) + " to 16777216");
        return static_cast<std::int64_t>(number);
    }

    double real(const AttributeValue& value, double number) const {
        if (!std::isfinite(number) || number < rule_.least) refuse(rule_.name, value, expected());
        return number;
    }

    NormalizedValue single(const AttributeValue& value) const {
        const double* number = std::get_if<double>(&value);
        switch (rule_.type) {
            case AttributeType::kWhole:
                if (number != nullptr) return whole(rule_.name, value, *number);
                break;
            case AttributeType::kReal:
                if (number != nullptr) return real(value, *number);
                break;
            case AttributeType::kFlag:
                if (const bool* flag = std::get_if<bool>(&value)) return std::int64_t{*flag};
                if (number != nullptr && (*number == 0 || *number == 1))
                    return static_cast<std::int64_t>(*number);
                break;
            case AttributeType::kWord:
                if (const auto* word = std::get_if<std::string>(&value))
                    if (std::find(rule_.words.begin(), rule_.words.end(), *word) != rule_.words.end())
                        return *word;
                break;
            case AttributeType::kNode:
                if (const auto* name = std::get_if<std::string>(&value); name != nullptr && !name->empty())
                    return *name;
                break;
            case AttributeType::kList:
                if (const auto* numbers = std::get_if<std::vector<double>>(&value)) {
                    for (const double one : *numbers) real(value, one);
                    return *numbers;
                }
                break;
            case AttributeType::kPair:
                break;
        }
        refuse(rule_.name, value, expected());
    }

    std::array<std::int64_t, 2> both(const AttributeValue& value) const {
        if (const double* number = std::get_if<double>(&value)) {
            const std::int64_t one = whole(rule_.name, value, *number);
            return {one, one};
        }
        const auto* numbers = std::get_if<std::vector<double>>(&value);
        if (numbers == nullptr || numbers->size() != 2) refuse(rule_.name, value, expected());
        return {whole(rule_.name, value, (*numbers)[0]), whole(rule_.name, value, (*numbers)[1])};
    }

    std::int64_t side(const std::string& key, const AttributeValue& value) const {
        const double* number = std::get_if<double>(&value);
        if (number == nullptr) refuse(key, value, "a whole number from " + number_text(rule_.least));
        return whole(key, value, *number);
    }

    std::vector<Attribute> pair(const std::vector<Attribute>& before) const {
        const std::string key_h = rule_.name + "_h", key_w = rule_.name + "_w";
        const AttributeValue *value = find(rule_.name), *h = find(key_h), *w = find(key_w);
        if (value != nullptr && (h != nullptr || w != nullptr))
            layer_.refuse("has '" + rule_.name + "' and also '" + key_h + "' or '" + key_w + "'");
        if (h != nullptr && w != nullptr) return {{key_h, side(key_h, *h)}, {key_w, side(key_w, *w)}};
        if (h != nullptr || w != nullptr)
            layer_.refuse("has only one of '" + key_h + "' and '" + key_w + "'");
        if (value == nullptr && !rule_.same_as.empty())
            return {{key_h, known(before, rule_.same_as + "_h")},
                    {key_w, known(before, rule_.same_as + "_w")}};
        const auto [height, width] = both(value != nullptr ? *value : otherwise());
        return {{key_h, height}, {key_w, width}};
    }

    const LayerView& layer_;
    const AttributeRule& rule_;
    const AttributeSpecs& specs_;
};

void check_keys(const LayerView& layer, const std::vector<AttributeRule>& rules,
                const AttributeSpecs& specs) {
    std::vector<std::string> known;
    for (const AttributeRule& rule : rules) {
        if (!rule.is_derived) known.push_back(rule.name);
        if (rule.type == AttributeType::kPair)
            for (const char* side : {"_h", "_w"}) known.push_back(rule.name + side);
    }
    for (const auto& [key, value] : specs)
        if (std::find(known.begin(), known.end(), key) == known.end())
            layer.refuse("has no attribute '" + key + "'." +
                         (known.empty() ? " This kind has none." : nearest(key, known)));
}

}  // namespace

AttributeType attribute_type(const std::string& word) {
    std::vector<std::string> words;
    for (const auto& [name, type] : kTypes) {
        if (word == name) return type;
        words.emplace_back(name);
    }
    throw NetworkError("there is no type of attributes '" + word + "'." + nearest(word, words));
}

std::vector<Attribute> read_attribute(const LayerView& layer, const AttributeRule& rule,
                                      const AttributeSpecs& specs, const std::vector<Attribute>& before) {
    return Reader(layer, rule, specs).read(before);
}

std::vector<Attribute> read_attributes(const LayerView& layer, const std::vector<AttributeRule>& rules,
                                       const AttributeSpecs& specs) {
    check_keys(layer, rules, specs);
    std::vector<Attribute> attributes;
    for (const AttributeRule& rule : rules) {
        std::vector<Attribute> read = read_attribute(layer, rule, specs, attributes);
        attributes.insert(attributes.end(), read.begin(), read.end());
    }
    return attributes;
}

std::string attribute_words(const std::vector<AttributeRule>& rules) {
    std::vector<std::string> all;
    for (const AttributeRule& rule : rules) {
        if (rule.is_derived) continue;
        std::vector<std::string> notes;
        if (rule.otherwise) notes.push_back(value_text(*rule.otherwise));
        if (!rule.same_as.empty()) notes.push_back("the " + rule.same_as);
        for (const std::string& word : rule.words) notes.push_back("or `" + quoted(word) + "`");
        all.push_back("`" + rule.name + "`" + (notes.empty() ? "" : " (" + join(notes) + ")"));
    }
    return join(all);
}

}  // namespace timetrial
