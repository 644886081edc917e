// Gradients of the judge against central differences: (L(w + e) - L(w - e)) / 2e is the gradient, up to e^2.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "support/inputs.h"
#include "support/trainer.h"

namespace timetrial::testing {

// 1e-6 of the gradient's size; a loss of size 1 is only good to 1e-16, so the difference to 1e-10 a weight.
inline bool agree(const std::vector<double>& gradient, const std::vector<double>& differences) {
    double norm = 0, error = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
        norm = std::hypot(norm, gradient[i]);
        error = std::hypot(error, gradient[i] - differences[i]);
    }
    const double rounding = 1e-9 * std::sqrt(static_cast<double>(gradient.size()));
    return norm > 0 && error <= 1e-6 * norm + rounding;
}

// Every weight of every layer against its central difference. A layer without weights is checked through
// the layer in front of it, whose gradient passes through.
inline void check_gradients_with(const std::vector<InputSpec>& inputs, const std::vector<NodeSpec>& specs) {
    const Problem problem(specs, inputs, 3, Numbers::kReal);
    Trainer trainer(plugin_path("reference"), problem);
    const auto states = trainer.read(TT_STATE);  // every step begins with these
    trainer.step(TT_GRADIENT);
    const auto gradients = trainer.read(TT_ROLE_GRADIENT);
    const auto parameters = trainer.read(TT_PARAMETER);
    ASSERT_FALSE(gradients.empty());
    constexpr double epsilon = 1e-6;
    for (const auto& [name, gradient] : gradients) {
        std::vector<double> differences, values = parameters.at(name);
        for (double& value : values) {
            const double kept = value;
            const auto loss_at = [&](double moved) {
                value = moved;
                trainer.write(TT_PARAMETER, name, values);
                for (const auto& [of, start] : states) trainer.write(TT_STATE, of, start);
                return trainer.step(TT_GRADIENT);
            };
            differences.push_back((loss_at(kept + epsilon) - loss_at(kept - epsilon)) / (2 * epsilon));
            value = kept;
        }
        trainer.write(TT_PARAMETER, name, values);
        EXPECT_TRUE(agree(gradient, differences)) << name << " of " << specs[0].kind << ", " << specs[1].kind;
    }
}

inline void check_gradients(const std::vector<NodeSpec>& specs, const Shape& input_shape) {
    check_gradients_with(images_and_labels(input_shape), specs);
}

// A dense layer in front, `middle`, and a dense layer behind it.
inline void check_flat(const std::string& kind, const AttributeSpecs& attributes = {}) {
    check_gradients({node("first", "dense", {{"units", 6.0}}), node("middle", kind, attributes),
                     node("last", "dense", {{"units", 4.0}}), loss_of("last")},
                    {5});
}

inline void check_images(const NodeSpec& middle) {
    check_gradients({node("first", "conv2d", {{"channels", 3.0}, {"kernel", 2.0}}), middle,
                     node("flat", "flatten"), node("last", "dense", {{"units", 4.0}}), loss_of("last")},
                    {2, 8, 7});
}

}  // namespace timetrial::testing
