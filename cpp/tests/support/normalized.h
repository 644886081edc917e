// Networks with normalization: layers that couple the images of a batch, and keep states.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "support/against_reference.h"
#include "support/joined.h"
#include "support/states.h"

namespace timetrial::testing {

// (No biases in front of a batch_norm: their gradient is 0, so that it is nothing but rounding.)
// Residual blocks behind each other: batch_norm before a relu and before a sum, of channels that blocked
// formats hold and of others, read once and twice, of the images themselves, and of flat values.
inline std::vector<NodeSpec> normalized(double channels) {
    const auto conv = [&](const std::string& input, const std::string& name, double kernel = 3.0) {
        return node_of({input}, name, "conv2d",
                       {{"channels", channels}, {"kernel", kernel}, {"padding", "same"}, {"bias", false}});
    };
    return {node_of({"images"}, "norm0", "batch_norm", {{"momentum", 0.3}}),
            conv("norm0", "conv1"),
            node("norm1", "batch_norm"),
            node("relu1", "relu"),
            conv("relu1", "conv2"),
            node("norm2", "batch_norm", {{"epsilon", 1e-3}}),
            node("relu2", "relu6"),
            conv("relu2", "conv3"),
            node("norm3", "batch_norm"),
            node_of({"norm3", "relu1"}, "sum", "add"),
            node("relu3", "leaky_relu", {{"slope", 0.2}}),
            conv("relu3", "conv4", 1.0),
            node("lrn", "local_response_norm", {{"size", 5.0}, {"alpha", 0.5}, {"k", 2.0}}),
            node_of({"lrn", "relu3"}, "both", "concat"),
            node("norm4", "batch_norm"),
            node_of({"norm4"}, "drop", "dropout"),
            node_of({"norm4", "drop"}, "sum2", "add"),
            node("pool", "global_avg_pool2d"),
            node("fc1", "dense", {{"units", 9.0}, {"bias", false}}),
            node("norm5", "batch_norm"),
            node("tanh", "tanh"),
            node("fc2", "dense", {{"units", 4.0}}),
            loss_of("fc2")};
}

// Steps, inference by the running values, a reset, parts and a profile.
inline void expect_normalized(const MakeTrainer& make, double channels, tt_dtype dtype = TT_F32) {
    const double rounding = dtype == TT_F64 ? 1e-10 : 1e-5;
    const SgdSpec sgd{0.01, 0.9, 0.01};
    const Problem problem(normalized(channels), 6, {3, 6, 7}, Numbers::kReal, 3);
    Trainer ours = make(problem, sgd), judge(plugin_path("reference"), problem, {}, sgd);
    ASSERT_EQ(ours.read(TT_STATE).size(), 12u);
    std::map<std::string, std::size_t> seen = expect_states(ours, judge, rounding, 6 * rounding);
    for (const char* name : {"norm0", "norm1", "norm5", "lrn", "pool", "relu3"})
        EXPECT_GE(seen[name], 2u) << name;
    const auto before = ours.evaluate();
    ours.write(TT_STATE, "norm1.running_var", std::vector<double>(static_cast<std::size_t>(channels), 0.25));
    EXPECT_GT(relative_l2(ours.evaluate(), before), 1e-3) << "what is written counts";
}

// Of 65,536 values a channel: whoever adds them up in float, one behind the other, is off by ten times as
// much.
inline void expect_exact_statistics(const MakeTrainer& make, double channels) {
    const Problem problem({node("conv", "conv2d", {{"channels", channels}, {"kernel", 1.0}}),
                           node("norm", "batch_norm"), node("pool", "global_avg_pool2d"), loss_of("pool")},
                          16, {2, 64, 64}, Numbers::kReal);
    Trainer ours = make(problem, {}), judge(plugin_path("reference"), problem);
    ours.step(TT_GRADIENT), judge.step(TT_GRADIENT);
    EXPECT_LE(relative_l2(ours.read(TT_ACTIVATION).at("norm"), judge.read(TT_ACTIVATION).at("norm")), 5e-7);
}

// One layer behind a convolution: what its gradient is, and what it hands on.
inline void expect_middle(const MakeTrainer& make, const NodeSpec& middle, double channels,
                          double tolerance) {
    std::vector<NodeSpec> specs{
        node("first", "conv2d", {{"channels", channels}, {"kernel", 1.0}, {"bias", false}}), middle};
    if (middle.kind != "global_avg_pool2d") specs.push_back(node("flat", "flatten"));
    specs.push_back(node("last", "dense", {{"units", 4.0}}));
    specs.push_back(loss_of("last"));
    expect_step(make, specs, {3, 5, 7}, 5, Numbers::kReal, tolerance);
}

inline void expect_each_kind(const MakeTrainer& make) {
    for (const double channels : {1.0, 6.0, 16.0, 24.0}) {
        for (const double beta : {0.75, 0.6})
            for (const bool over_size : {true, false})
                expect_middle(make,
                              node("middle", "local_response_norm",
                                   {{"size", over_size ? 5.0 : 3.0},
                                    {"alpha", 0.8},
                                    {"beta", beta},
                                    {"k", 1.5},
                                    {"alpha_over_size", over_size}}),
                              channels, 5e-6);
        expect_middle(make, node("middle", "global_avg_pool2d"), channels, 5e-6);
        for (const double slope : {0.0, 0.3})
            expect_middle(make, node("middle", "leaky_relu", {{"slope", slope}}), channels, 5e-6);
        expect_middle(make, node("middle", "relu6"), channels, 5e-6);
        expect_middle(make, node("middle", "batch_norm"), channels, 5e-5);
    }
}

}  // namespace timetrial::testing
