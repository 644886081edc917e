// A backend against the reference: activations, gradients and training of small networks.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "support/trainer.h"

namespace timetrial::testing {

// Builds the backend under test for a problem.
using MakeTrainer = std::function<Trainer(const Problem&, const SgdSpec&)>;

// What is there must be right; tolerance 0: bit for bit. An activation may be absent: one that works in place
// has overwritten it.
inline void expect_same(Trainer& ours, Trainer& judge, tt_role role, double tolerance) {
    const auto expected = judge.read(role);
    const auto found = ours.read(role);
    ASSERT_GE(found.size(), role == TT_ACTIVATION ? 1u : expected.size());
    for (const auto& [name, values] : found) {
        ASSERT_TRUE(expected.contains(name)) << name;
        if (tolerance == 0) {
            EXPECT_EQ(values, expected.at(name)) << name;
        } else {
            EXPECT_LE(relative_l2(values, expected.at(name)), tolerance) << name;
        }
    }
}

// All activations and all gradients of one step.
inline void expect_step(const MakeTrainer& make, const std::vector<NodeSpec>& specs, const Shape& input,
                        std::int64_t batch, Numbers numbers, double tolerance) {
    const Problem problem(specs, batch, input, numbers);
    Trainer ours = make(problem, {}), judge(plugin_path("reference"), problem);
    const double loss = ours.step(TT_GRADIENT), expected = judge.step(TT_GRADIENT);
    EXPECT_LE(std::abs(loss - expected), (tolerance == 0 ? 1e-12 : tolerance) * std::abs(expected));
    expect_same(ours, judge, TT_ACTIVATION, tolerance);
    expect_same(ours, judge, TT_ROLE_GRADIENT, tolerance);
}

// `middle` behind a convolution, which gets its gradient through it, and before a squared error, whose
// gradient is exact in f32 when N * F is a power of two.
inline void expect_exact(const MakeTrainer& make, const NodeSpec& middle, const Shape& input,
                         std::int64_t batch = 4, double channels = 2.0) {
    expect_step(make,
                {node("first", "conv2d", {{"channels", channels}, {"kernel", 1.0}}), middle,
                 node("flat", "flatten"), loss_of("flat", "squared_error")},
                input, batch, Numbers::kIntegers, 0);
}

// The largest error of a gradient and of five steps, in units of the tolerances by which timetrial proves a
// backend.
inline double training_error(const MakeTrainer& make, const std::vector<NodeSpec>& specs, const SgdSpec& sgd,
                             std::uint64_t seed) {
    const Problem problem(specs, 6, {1, 28, 28}, Numbers::kReal, seed);
    Trainer ours = make(problem, sgd), judge(plugin_path("reference"), problem, {}, sgd);
    double worst = 0;
    const auto compare = [&](tt_role role, double tolerance) {
        const auto expected = judge.read(role);
        for (const auto& [name, found] : ours.read(role))
            worst = std::max(worst, relative_l2(found, expected.at(name)) / tolerance);
    };
    ours.step(TT_GRADIENT);
    judge.step(TT_GRADIENT);
    compare(TT_ROLE_GRADIENT, 2e-5);
    for (int step = 0; step < 5; ++step) {
        const double expected = judge.step();
        worst = std::max(worst, std::abs(ours.step() - expected) / (5e-6 * expected));
    }
    compare(TT_PARAMETER, 1e-5);
    compare(TT_OPTIMIZER, 1e-4);
    return std::max(worst, relative_l2(ours.evaluate(), judge.evaluate()) / 1e-5);
}

// Two of three seeds: in about one of twenty, two values in a pooling window or a ReLU's zero are so close
// that f32 and f64 decide differently, and the runs part.
inline void expect_training(const MakeTrainer& make, const std::vector<NodeSpec>& specs, const SgdSpec& sgd) {
    int agreed = 0;
    for (const std::uint64_t seed : {1, 2, 3})
        if (agreed < 2 && training_error(make, specs, sgd, seed) <= 1) ++agreed;
    EXPECT_EQ(agreed, 2) << "seeds of three";
}

// Three steps in parts are three fused steps, bit for bit.
inline void expect_same_in_parts(Trainer& fused, Trainer& parts) {
    for (int step = 0; step < 3; ++step) {
        parts.part(TT_PART_FORWARD);
        const double loss = parts.part(TT_PART_LOSS);
        parts.part(TT_PART_BACKWARD);
        parts.part(TT_PART_UPDATE);
        EXPECT_EQ(fused.step(), loss);
    }
    EXPECT_EQ(fused.read(TT_PARAMETER), parts.read(TT_PARAMETER));
}

}  // namespace timetrial::testing
