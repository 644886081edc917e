// The setting `lengths`: ways through a batch of sequences of unequal lengths, for plug-ins written in C++.
// All compute the same; they differ in how much is computed behind the end of a sequence.
#ifndef TIMETRIAL_LENGTHS_HPP
#define TIMETRIAL_LENGTHS_HPP

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "timetrial/backend.hpp"

namespace timetrial {

enum class Way {
    kPadded,   // all steps there are, of every sequence
    kTrimmed,  // of every sequence as many as the longest of its batch has
    kPacked,   // the steps that count
};

inline constexpr std::array way_words = {
    std::pair{std::string_view("padded"), Way::kPadded},
    std::pair{std::string_view("trimmed"), Way::kTrimmed},
    std::pair{std::string_view("packed"), Way::kPacked},
};

inline std::string word_of(Way way) {
    for (const auto& [word, value] : way_words)
        if (value == way) return std::string(word);
    return "";
}

inline Way read_way(std::string_view name, std::string_view value) {
    for (const auto& [word, way] : way_words)
        if (word == value) return way;
    throw Unsupported(std::string(name) + " = '" + std::string(value) + "': it has padded, trimmed, packed");
}

// What a layer along time computes, for facts.
inline std::string computed_words(Way way, int64_t steps) {
    if (way == Way::kPacked) return "the steps that count";
    if (way == Way::kTrimmed) return "of every sample as many steps as the longest of its batch has";
    return "all " + std::to_string(steps) + " steps of every sample";
}

// The longest of a batch.
inline int64_t longest_of(const int64_t* lengths, int64_t batch) {
    return batch == 0 ? 0 : *std::max_element(lengths, lengths + batch);
}

}  // namespace timetrial

#endif  // TIMETRIAL_LENGTHS_HPP
