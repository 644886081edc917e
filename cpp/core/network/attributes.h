// Reads attributes in user form, each error naming the layer, the key, the value and what was expected.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "network/layers.h"

namespace timetrial {

class AttributeReader {
  public:
    AttributeReader(const LayerView& layer, const AttributeSpecs& specs) : layer_(layer), specs_(specs) {}

    // A whole number >= smallest; without a fallback the key must be there.
    std::int64_t whole(const std::string& key, std::int64_t smallest,
                       std::optional<std::int64_t> fallback = std::nullopt) const;
    // true or false; 1 and 0 are the same words in normalized form.
    bool flag(const std::string& key, bool fallback) const;
    // {height, width} of "key": one whole number for both, [h, w], or the two keys key_h and key_w.
    std::array<std::int64_t, 2> pair(
        const std::string& key, std::int64_t smallest,
        std::optional<std::array<std::int64_t, 2>> fallback = std::nullopt) const;
    // Whether "key" is that word.
    bool is_word(const std::string& key, const std::string& word) const;

  private:
    const AttributeValue* find(const std::string& key) const;
    [[noreturn]] void refuse(const std::string& key, const AttributeValue& value,
                             const std::string& expected) const;
    std::int64_t as_whole(const std::string& key, const AttributeValue& value, double number,
                          std::int64_t smallest) const;

    const LayerView& layer_;
    const AttributeSpecs& specs_;
};

}  // namespace timetrial
