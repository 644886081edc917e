// The setting `convolution`: which algorithm computes each convolution.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layers/trial.h"
#include "timetrial/backend.hpp"

namespace timetrial::layers {

enum class Algorithm {
    kByShape,   // what a rule expects to be the fastest for a layer's shape
    kIm2col,    // columns and one matrix product: every convolution
    kDirect,    // no columns: stride 1
    kWinograd,  // kernels of 3 x 3 with stride 1
    kAuto,      // what a timed trial finds
};

inline constexpr std::array algorithm_words = {
    std::pair{std::string_view("by_shape"), Algorithm::kByShape},
    std::pair{std::string_view("im2col"), Algorithm::kIm2col},
    std::pair{std::string_view("direct"), Algorithm::kDirect},
    std::pair{std::string_view("winograd"), Algorithm::kWinograd},
    std::pair{std::string_view("auto"), Algorithm::kAuto},
};

inline std::string word_of(Algorithm algorithm) {
    for (const auto& [word, value] : algorithm_words)
        if (value == algorithm) return std::string(word);
    return "";
}

inline Algorithm read_algorithm(std::string_view name, std::string_view value) {
    std::string known;
    for (const auto& [word, algorithm] : algorithm_words) {
        if (word == value) return algorithm;
        known += (known.empty() ? "" : ", ") + std::string(word);
    }
    throw Unsupported(std::string(name) + " = '" + std::string(value) + "': it has " + known);
}

// What computes a direction of a layer, where there is a choice.
struct Chosen {
    tt_direction direction;
    Algorithm algorithm;
    std::string trial;  // how it was found; "": without one
};

// What was asked, if anything that was built does it; else what does.
inline Reading read_back(Algorithm asked, const std::vector<Chosen>& all) {
    if (all.empty()) throw Unsupported("no layer of the network is a convolution");
    std::string counts, others;
    bool runs = asked == Algorithm::kByShape || asked == Algorithm::kAuto;
    for (const auto& [word, algorithm] : algorithm_words) {
        const auto count = std::ranges::count(all, algorithm, &Chosen::algorithm);
        if (count == 0) continue;
        runs = runs || algorithm == asked;
        counts += (counts.empty() ? "" : ", ") + std::string(word) + " " + std::to_string(count);
        others += (others.empty() ? "" : ", ") + std::string(word);
    }
    return {runs ? word_of(asked) : others, "passes of convolutions: " + counts + " (the facts say which)"};
}

}  // namespace timetrial::layers
