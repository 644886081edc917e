// A backend against the reference: activations, gradients and training of small networks.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
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

// Convolutions with groups and dilation, with as many groups as channels, with padding at one side only; the
// way back through one; larger images. Bit for bit on small integers where the loss divides by a power of
// two, and within rounding where the numbers of channels are odd. `before`: channels of the layer before.
inline void expect_convolutions(const MakeTrainer& make) {
    using Pair = std::vector<double>;
    const auto check = [&](const NodeSpec& middle, const Shape& input, std::int64_t batch, double before) {
        const std::vector<NodeSpec> specs{node("first", "conv2d", {{"channels", before}, {"kernel", 1.0}}),
                                          middle, node("flat", "flatten"), loss_of("flat", "squared_error")};
        const Problem problem(specs, batch, input, Numbers::kIntegers);
        const auto values = static_cast<std::uint64_t>(element_count(problem.network.node(4).shape));
        const bool is_exact = std::has_single_bit(values);
        expect_step(make, specs, input, batch, is_exact ? Numbers::kIntegers : Numbers::kReal,
                    is_exact ? 0 : 2e-6);
    };
    const auto conv = [&](double before, const AttributeSpecs& attributes, const Shape& input,
                          std::int64_t batch = 4) {
        check(node("middle", "conv2d", attributes), input, batch, before);
    };
    // Groups of several channels, and one group.
    conv(6, {{"channels", 8.0}, {"kernel", 3.0}, {"groups", 2.0}}, {2, 6, 6});
    conv(9, {{"channels", 15.0}, {"kernel", Pair{2, 3}}, {"groups", 3.0}, {"bias", false}}, {1, 5, 6});
    conv(32, {{"channels", 32.0}, {"kernel", 3.0}, {"groups", 2.0}, {"padding", "same"}}, {1, 4, 4}, 2);
    conv(1, {{"channels", 4.0}, {"kernel", 3.0}, {"groups", 1.0}}, {2, 6, 6}, 1);
    // Depthwise, with one and with several outputs for each channel.
    for (const double channels : {2.0, 5.0, 8.0, 16.0, 24.0})
        conv(channels, {{"channels", channels}, {"kernel", 3.0}, {"groups", channels}, {"padding", "same"}},
             {2, 8, 4}, 2);
    conv(4, {{"channels", 8.0}, {"kernel", Pair{3, 2}}, {"groups", 4.0}, {"stride", 2.0}, {"padding", 1.0}},
         {2, 7, 7}, 1);
    conv(3, {{"channels", 9.0}, {"kernel", 5.0}, {"groups", 3.0}, {"padding", "same"}, {"bias", false}},
         {1, 7, 3}, 1);
    conv(4, {{"channels", 4.0}, {"kernel", 2.0}, {"groups", 4.0}, {"stride", Pair{3, 4}}, {"padding", 1.0}},
         {1, 10, 5});
    conv(8,
         {{"channels", 8.0},
          {"kernel", 3.0},
          {"groups", 8.0},
          {"stride", 2.0},
          {"dilation", Pair{3, 2}},
          {"padding", "same"}},
         {1, 8, 16}, 2);
    // Dilation, strides beyond the kernel, and padding at one side only.
    conv(3, {{"channels", 4.0}, {"kernel", 3.0}, {"dilation", 2.0}}, {2, 8, 6}, 2);
    conv(4, {{"channels", 6.0}, {"kernel", 3.0}, {"dilation", Pair{1, 3}}, {"groups", 2.0}, {"padding", 2.0}},
         {2, 4, 6}, 1);
    conv(3, {{"channels", 4.0}, {"kernel", 2.0}, {"stride", 3.0}, {"padding", Pair{1, 0}}}, {1, 10, 11});
    conv(2, {{"channels", 4.0}, {"kernel", 2.0}, {"padding", "same"}}, {2, 4, 4});
    conv(2, {{"channels", 4.0}, {"kernel", 3.0}, {"stride", 2.0}, {"padding", "same"}}, {2, 8, 4});
    conv(16, {{"channels", 16.0}, {"kernel", 4.0}, {"dilation", 2.0}, {"padding", "same"}}, {1, 4, 4}, 2);

    const auto transposed = [&](double before, const AttributeSpecs& attributes, const Shape& input,
                                std::int64_t batch = 2) {
        check(node("middle", "conv_transpose2d", attributes), input, batch, before);
    };
    transposed(3, {{"channels", 4.0}, {"kernel", 3.0}}, {2, 2, 6});
    transposed(5, {{"channels", 3.0}, {"kernel", 2.0}, {"stride", 2.0}}, {1, 4, 4}, 1);
    transposed(16, {{"channels", 16.0}, {"kernel", 4.0}, {"stride", 2.0}, {"padding", 1.0}}, {2, 4, 4});
    transposed(2,
               {{"channels", 1.0},
                {"kernel", Pair{3, 2}},
                {"stride", Pair{2, 3}},
                {"padding", Pair{1, 0}},
                {"output_padding", Pair{1, 2}},
                {"bias", false}},
               {2, 4, 4}, 4);
    for (const double channels : {1.0, 3.0, 16.0})
        for (const Pair& scale : {Pair{2, 2}, Pair{1, 4}, Pair{3, 1}})
            check(node("middle", "upsample2d", {{"scale", scale}}), {2, 4, 4}, 2, channels);
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
