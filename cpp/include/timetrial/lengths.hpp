// The setting `lengths`: ways through a batch of sequences of unequal lengths, for plug-ins written in C++.
// All compute the same; they differ in how much is computed behind the end of a sequence.
#ifndef TIMETRIAL_LENGTHS_HPP
#define TIMETRIAL_LENGTHS_HPP

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "timetrial/backend.hpp"

namespace timetrial {

enum class Way {
    kPadded,   // all steps there are, of every sequence
    kRounded,  // of every sequence as many as the longest of its batch has, rounded up to one of eight
               // numbers
    kTrimmed,  // of every sequence as many as the longest of its batch has
    kPacked,   // the steps that count
};

inline constexpr std::array way_words = {
    std::pair{std::string_view("padded"), Way::kPadded},
    std::pair{std::string_view("rounded"), Way::kRounded},
    std::pair{std::string_view("trimmed"), Way::kTrimmed},
    std::pair{std::string_view("packed"), Way::kPacked},
};

inline std::string word_of(Way way) {
    for (const auto& [word, value] : way_words)
        if (value == way) return std::string(word);
    return "";
}

// `has`: the ways of the plug-in.
inline Way read_way(std::string_view name, std::string_view value,
                    std::initializer_list<Way> has = {Way::kPadded, Way::kTrimmed, Way::kPacked}) {
    std::string words;
    for (const Way way : has) {
        if (word_of(way) == value) return way;
        words += (words.empty() ? "" : ", ") + word_of(way);
    }
    throw Unsupported(std::string(name) + " = '" + std::string(value) + "': it has " + words);
}

// The least number of eighths of all steps, in whole steps, that has room for the longest.
inline int64_t rounded_steps(int64_t longest, int64_t steps) {
    constexpr int64_t parts = 8;
    const int64_t eighths = parts * (longest - 1) / steps + 1;
    return (steps * eighths + parts - 1) / parts;
}

// What a layer along time computes, for facts.
inline std::string computed_words(Way way, int64_t steps) {
    if (way == Way::kPacked) return "the steps that count";
    std::string longest = "of every sample as many steps as the longest of its batch has";
    if (way == Way::kTrimmed) return longest;
    if (way == Way::kRounded) return longest + ", rounded up to eighths of " + std::to_string(steps);
    return "all " + std::to_string(steps) + " steps of every sample";
}

// The longest of a batch.
inline int64_t longest_of(const int64_t* lengths, int64_t batch) {
    return batch == 0 ? 0 : *std::max_element(lengths, lengths + batch);
}

}  // namespace timetrial

#endif  // TIMETRIAL_LENGTHS_HPP
