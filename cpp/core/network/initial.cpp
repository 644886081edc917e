#include "network/initial.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "random/draws.h"
#include "text/text.h"

namespace timetrial {
namespace {

struct Kind {
    std::string_view name;
    float constant;                         // where nothing is drawn
    double (*fans)(const Initializer& of);  // by whose number 6 is divided
};

constexpr std::array kinds{
    Kind{"zeros", 0, nullptr},
    Kind{"ones", 1, nullptr},
    Kind{"forget_ones", 0, nullptr},
    Kind{"glorot_uniform", 0,
         [](const Initializer& of) {
             return static_cast<double>(of.fan_in) + static_cast<double>(of.fan_out);
         }},
    Kind{"he_uniform", 0, [](const Initializer& of) { return static_cast<double>(of.fan_in); }},
};

const Kind& kind_of(const Parameter& parameter) {
    const Initializer& initializer = parameter.initializer;
    for (const Kind& kind : kinds) {
        if (kind.name != initializer.name) continue;
        if (kind.fans != nullptr && !(initializer.fan_in > 0 && kind.fans(initializer) > 0))
            throw NetworkError("parameter '" + parameter.name + "': " + initializer.name +
                               " needs to know its fans; fan_in = " + std::to_string(initializer.fan_in) +
                               ", fan_out = " + std::to_string(initializer.fan_out));
        return kind;
    }
    throw NetworkError("parameter '" + parameter.name + "': there is no initializer '" + initializer.name +
                       "'." + nearest(initializer.name, initializer_names()));
}

}  // namespace

std::vector<std::string> initializer_names() {
    std::vector<std::string> names;
    for (const Kind& kind : kinds) names.emplace_back(kind.name);
    return names;
}

void check_initializer(const Parameter& parameter) { kind_of(parameter); }

void draw_initial(std::uint64_t seed, const Parameter& parameter, std::span<float> values) {
    const Kind& kind = kind_of(parameter);
    if (kind.fans == nullptr) {
        std::fill(values.begin(), values.end(), kind.constant);
        // The second of four gates: i, f, g, o.
        const std::size_t gate = values.size() / 4;
        if (kind.name == "forget_ones") std::fill_n(values.begin() + gate, gate, 1.0F);
        return;
    }
    const auto limit = static_cast<float>(std::sqrt(6.0 / kind.fans(parameter.initializer)));
    uniform(seed, parameter.name, -limit, limit, values);
}

}  // namespace timetrial
