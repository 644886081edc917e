#include "network/attributes.h"

#include <cmath>
#include <vector>

#include "text/text.h"

namespace timetrial {
namespace {

std::string value_text(const AttributeValue& value) {
    if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
    if (const double* number = std::get_if<double>(&value)) return number_text(*number);
    if (const std::string* word = std::get_if<std::string>(&value)) return "\"" + *word + "\"";
    std::vector<std::string> numbers;
    for (const double number : std::get<std::vector<double>>(value)) numbers.push_back(number_text(number));
    return "[" + join(numbers) + "]";
}

// Beyond it a number is a slip of the keyboard, and products of extents could overflow.
constexpr double kLargest = 1 << 24;

}  // namespace

const AttributeValue* AttributeReader::find(const std::string& key) const {
    const auto found = specs_.find(key);
    return found == specs_.end() ? nullptr : &found->second;
}

void AttributeReader::refuse(const std::string& key, const AttributeValue& value,
                             const std::string& expected) const {
    layer_.refuse("has " + key + " = " + value_text(value) + "; expected " + expected);
}

std::int64_t AttributeReader::as_whole(const std::string& key, const AttributeValue& value, double number,
                                       std::int64_t smallest) const {
    if (!(number >= static_cast<double>(smallest) && number <= kLargest) || number != std::floor(number))
        refuse(key, value, "whole numbers from " + std::to_string(smallest) + " to 16777216");
    return static_cast<std::int64_t>(number);
}

std::int64_t AttributeReader::whole(const std::string& key, std::int64_t smallest,
                                    std::optional<std::int64_t> fallback) const {
    const AttributeValue* value = find(key);
    if (value == nullptr) {
        if (!fallback) layer_.refuse("needs '" + key + "', a whole number from " + std::to_string(smallest));
        return *fallback;
    }
    const double* number = std::get_if<double>(value);
    if (number == nullptr) refuse(key, *value, "a whole number from " + std::to_string(smallest));
    return as_whole(key, *value, *number, smallest);
}

bool AttributeReader::flag(const std::string& key, bool fallback) const {
    const AttributeValue* value = find(key);
    if (value == nullptr) return fallback;
    if (const bool* flag = std::get_if<bool>(value)) return *flag;
    const double* number = std::get_if<double>(value);
    if (number == nullptr || (*number != 0 && *number != 1)) refuse(key, *value, "true or false");
    return *number == 1;
}

std::array<std::int64_t, 2> AttributeReader::pair(const std::string& key, std::int64_t smallest,
                                                  std::optional<std::array<std::int64_t, 2>> fallback) const {
    const AttributeValue* value = find(key);
    const bool has_both = find(key + "_h") != nullptr && find(key + "_w") != nullptr;
    const bool has_one = find(key + "_h") != nullptr || find(key + "_w") != nullptr;
    if (value != nullptr && has_one)
        layer_.refuse("has '" + key + "' and also '" + key + "_h' or '" + key + "_w'");
    if (has_both) return {whole(key + "_h", smallest), whole(key + "_w", smallest)};
    if (has_one) layer_.refuse("has only one of '" + key + "_h' and '" + key + "_w'");
    if (value == nullptr) {
        if (!fallback) layer_.refuse("needs '" + key + "', a whole number or [height, width]");
        return *fallback;
    }
    if (const double* number = std::get_if<double>(value)) {
        const std::int64_t both = as_whole(key, *value, *number, smallest);
        return {both, both};
    }
    const auto* numbers = std::get_if<std::vector<double>>(value);
    if (numbers == nullptr || numbers->size() != 2) refuse(key, *value, "a whole number or [height, width]");
    return {as_whole(key, *value, (*numbers)[0], smallest), as_whole(key, *value, (*numbers)[1], smallest)};
}

bool AttributeReader::is_word(const std::string& key, const std::string& word) const {
    const AttributeValue* value = find(key);
    const std::string* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
    if (text == nullptr) return false;
    if (*text != word) refuse(key, *value, "a whole number, [height, width] or \"" + word + "\"");
    return true;
}

}  // namespace timetrial
