// The setting `convolution`: with which of oneDNN's algorithms convolutions are described.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onednn/version.h"
#include "timetrial/backend.hpp"

namespace timetrial::onednn {

enum class Algorithm {
    kDirect,
    kWinograd,  // where oneDNN has it: version 2 on AVX-512, version 3 on no x86-64
    kAuto,      // either, by the trial among the forms
};

inline constexpr std::array algorithm_words = {
    std::pair{std::string_view("direct"), Algorithm::kDirect},
    std::pair{std::string_view("winograd"), Algorithm::kWinograd},
    std::pair{std::string_view("auto"), Algorithm::kAuto},
};

inline std::string word_of(Algorithm algorithm) {
    for (const auto& [word, value] : algorithm_words)
        if (value == algorithm) return std::string(word);
    return "";
}

inline Algorithm read_algorithm(std::string_view value) {
    for (const auto& [word, algorithm] : algorithm_words)
        if (word == value) return algorithm;
    throw Unsupported("convolution = '" + std::string(value) + "': onednn has direct, winograd, auto");
}

// What to describe a convolution with, in the order in which equals are preferred.
inline std::vector<dnnl::algorithm> described_by(Algorithm algorithm) {
    if (algorithm == Algorithm::kDirect) return {dnnl::algorithm::convolution_direct};
    return {dnnl::algorithm::convolution_direct, dnnl::algorithm::convolution_winograd};
}

// "jit_wino_4x3:avx512_core"
inline bool is_winograd(std::string_view implementation) {
    return implementation.find("wino") != std::string_view::npos;
}

}  // namespace timetrial::onednn
