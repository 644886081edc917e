// The setting `recompute`: whether values that cost one pass over others are computed once more on the way
// back, instead of being kept until then.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "timetrial/backend.hpp"

namespace timetrial::layers {

enum class Recompute { kByDefault, kOn, kOff };

inline std::string word_of(Recompute asked) {
    return asked == Recompute::kOn ? "on" : asked == Recompute::kOff ? "off" : "by default";
}

inline Recompute read_recompute(std::string_view name, std::string_view value) {
    if (value == "on") return Recompute::kOn;
    if (value == "off") return Recompute::kOff;
    throw Unsupported(std::string(name) + " = '" + std::string(value) + "': expected on or off");
}

// What was built: values, and what they would take.
struct Recomputed {
    int64_t values = 0, bytes = 0;

    std::string words() const {
        return std::to_string(values) + " values, " + std::to_string(bytes >> 20) + " MB";
    }
};

inline Reading read_back(Recompute asked, bool is_built, const Recomputed& built) {
    if (!is_built) return {word_of(asked), "what was asked: build() decides"};
    if (asked == Recompute::kOn && built.values == 0)
        throw Unsupported(
            "recompute = 'on': nothing is recomputed here. It can be in a task that learns, in f32, where a "
            "convolution alone reads a batch_norm");
    return {built.values > 0 ? "on" : "off", "what was built: " + built.words()};
}

}  // namespace timetrial::layers
