// Networks that fan out and join: values that several layers read, and layers that read several.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/against_reference.h"

namespace timetrial::testing {

inline NodeSpec node_of(const std::vector<std::string>& inputs, const std::string& name,
                        const std::string& kind, const AttributeSpecs& attributes = {}) {
    return {name, kind, inputs, attributes};
}

// A convolution that is read by `kind` and by two joins, behind which `kind` is read once more.
inline std::vector<NodeSpec> fan(const std::string& kind, double channels = 2.0, double kernel = 1.0) {
    return {node("conv", "conv2d", {{"channels", channels}, {"kernel", kernel}, {"padding", "same"}}),
            node("way", kind),
            node_of({"way", "conv"}, "sum", "add"),
            node_of({"sum", "way"}, "both", "concat"),
            node("flat", "flatten"),
            loss_of("flat", "squared_error")};
}

// Everything that a backend may do in place or leave out for a single reader, with several of them: an
// activation behind a convolution and behind a sum, pooling behind a relu, a flatten, the images.
inline std::vector<NodeSpec> joined() {
    return {node("conv1", "conv2d", {{"channels", 5.0}, {"kernel", 3.0}, {"padding", "same"}}),
            node("relu1", "relu"),
            node_of({"relu1"}, "pool1", "max_pool2d", {{"kernel", 2.0}}),
            node_of({"relu1", "conv1"}, "sum1", "add"),
            node_of({"sum1"}, "pool2", "avg_pool2d", {{"kernel", 2.0}}),
            node_of({"images"}, "small", "max_pool2d", {{"kernel", 2.0}}),
            node_of({"pool1", "small", "pool2"}, "both", "concat"),
            node_of({"both"}, "conv2", "conv2d",
                    {{"channels", 12.0}, {"kernel", 3.0}, {"padding", "same"}, {"bias", false}}),
            node_of({"both", "conv2"}, "residual", "add"),
            node("relu2", "relu"),
            node_of({"relu2"}, "drop2", "dropout"),
            node_of({"drop2"}, "conv3", "conv2d", {{"channels", 12.0}, {"kernel", 1.0}}),
            node_of({"conv3", "relu2", "residual"}, "three", "add"),
            node_of({"three"}, "pool3", "max_pool2d", {{"kernel", 2.0}}),
            node("flat", "flatten"),
            node("fc1", "dense", {{"units", 9.0}}),
            node("tanh1", "tanh"),
            node("drop3", "dropout"),
            node_of({"fc1", "drop3", "flat"}, "flat_both", "concat"),
            node("fc2", "dense", {{"units", 7.0}}),
            node_of({"flat"}, "fc3", "dense", {{"units", 7.0}}),
            node_of({"fc2", "fc3", "fc2"}, "flat_sum", "add"),
            node("relu3", "relu"),
            node("fc4", "dense", {{"units", 4.0}}),
            node_of({"fc4", "labels"}, "loss", "softmax_cross_entropy"),
            node_of({"flat_sum", "labels"}, "loss2", "squared_error"),
            node_of({"loss", "loss2"}, "sum", "loss_sum", {{"weights", std::vector<double>{1, 0.3}}})};
}

inline const Shape kJoinedInput{2, 8, 8};

// Of images, in whatever format a backend keeps them.
inline void expect_over_two_losses(const MakeTrainer& make) {
    for (const double channels : {1.0, 2.0, 16.0})
        expect_step(
            make,
            {node("conv", "conv2d", {{"channels", channels}, {"kernel", 3.0}, {"padding", "same"}}),
             node("flat", "flatten"), node_of({"conv"}, "relu", "relu"),
             node_of({"relu"}, "small", "max_pool2d", {{"kernel", 2.0}}),
             node_of({"small"}, "flat2", "flatten"), node_of({"flat", "labels"}, "one", "squared_error"),
             node_of({"flat2", "labels"}, "two", "squared_error"),
             node_of({"two", "one"}, "all", "loss_sum")},
            {2, 4, 4}, 4, Numbers::kIntegers, 0);
}

// Bit for bit on small integers.
inline void expect_exact_joins(const MakeTrainer& make) {
    for (const char* kind : {"relu", "max_pool2d", "conv2d"}) {
        for (const double channels : {1.0, 2.0, 16.0}) {
            std::vector<NodeSpec> specs = fan(kind, channels, 3.0);
            if (kind == std::string("max_pool2d"))
                specs[1].attributes = {{"kernel", 3.0}, {"stride", 1.0}, {"padding", 1.0}};
            if (kind == std::string("conv2d"))
                specs[1].attributes = {{"channels", channels}, {"kernel", 1.0}};
            expect_step(make, specs, {1, 4, 4}, 4, Numbers::kIntegers, 0);
        }
    }
    const auto expect_over_images = [&](std::vector<NodeSpec> specs) {
        specs.insert(specs.end(), {node("flat", "flatten"), loss_of("flat", "squared_error")});
        expect_step(make, specs, {2, 4, 4}, 4, Numbers::kIntegers, 0);
    };
    const NodeSpec conv = node("conv", "conv2d", {{"channels", 2.0}, {"kernel", 1.0}});
    // A sum hands one gradient to a relu, which multiplies it, and to who reads it after that.
    expect_over_images({conv, node("relu", "relu"), node_of({"relu", "conv"}, "sum", "add")});
    expect_over_images({conv, node_of({"conv"}, "other", "max_pool2d", {{"kernel", 2.0}}),
                        node_of({"conv"}, "relu", "relu"), node("pool", "max_pool2d", {{"kernel", 2.0}}),
                        node_of({"pool", "other"}, "sum", "add")});
    // The first input of a sum has nothing to learn.
    expect_over_images({node("small", "max_pool2d", {{"kernel", 1.0}}),
                        node_of({"images"}, "conv", "conv2d", {{"channels", 2.0}, {"kernel", 1.0}}),
                        node_of({"small", "conv"}, "sum", "add")});
    // Values that are dropped: of a convolution, of an activation, of the images, of what is read twice.
    const auto dropped = [](const std::string& of) { return node_of({of}, "drop", "dropout"); };
    for (const double channels : {1.0, 2.0, 16.0}) {
        const NodeSpec wide = node("conv", "conv2d", {{"channels", channels}, {"kernel", 1.0}});
        expect_over_images({wide, dropped("conv")});
        expect_over_images({wide, node("relu", "relu"), dropped("relu")});
        expect_over_images({dropped("images"), wide});
        expect_over_images({wide, dropped("conv"), node_of({"drop", "conv"}, "sum", "add")});
        expect_over_images({wide, node_of({"conv"}, "small", "flatten"), dropped("small")});
    }
    expect_step(make,
                {node("fc", "dense", {{"units", 4.0}}), dropped("fc"), node_of({"drop", "fc"}, "sum", "add"),
                 loss_of("sum", "squared_error")},
                {4}, 4, Numbers::kIntegers, 0);
    // Two losses: of values that nobody else reads, of one that another layer reads, and both of the same.
    const NodeSpec fc = node("fc", "dense", {{"units", 4.0}}), other = node_of({"fc"}, "other", "relu");
    const auto both = [](const std::vector<double>& weights) {
        return NodeSpec{"all", "loss_sum", {{"one", "two"}}, {{"weights", weights}}};
    };
    const auto loss_at = [](const std::string& of, const std::string& name) {
        return node_of({of, "labels"}, name, "squared_error");
    };
    const NodeSpec second = node_of({"images"}, "fc2", "dense", {{"units", 8.0}});
    expect_step(make, {fc, second, loss_at("fc", "one"), loss_at("fc2", "two"), both({1, 0.5})}, {4}, 4,
                Numbers::kIntegers, 0);
    expect_step(make, {fc, other, loss_at("other", "one"), loss_at("fc", "two"), both({2, 4})}, {4}, 4,
                Numbers::kIntegers, 0);
    expect_step(make, {fc, other, loss_at("fc", "one"), loss_at("other", "two"), both({2, 4})}, {4}, 4,
                Numbers::kIntegers, 0);
    expect_step(make, {fc, loss_at("fc", "one"), loss_at("fc", "two"), both({1, 0.25})}, {4}, 4,
                Numbers::kIntegers, 0);
    expect_over_two_losses(make);
    // Flat, with a value that is read twice by one join, and a join of what nobody learns.
    expect_step(make,
                {node("fc", "dense", {{"units", 4.0}}), node("relu", "relu"),
                 node_of({"relu", "fc", "relu"}, "three", "add"), node_of({"fc", "fc"}, "twice", "concat"),
                 node_of({"images", "images"}, "images2", "add"),
                 node_of({"three", "twice", "images2"}, "all", "concat"), loss_of("all", "squared_error")},
                {4}, 4, Numbers::kIntegers, 0);
}

// Forward and gradients; then three steps, whole, in parts and profiled: the same bit for bit, and what the
// reference gets. One trainer, since another launch of a backend may choose other primitives.
inline void expect_joined(const MakeTrainer& make) {
    expect_step(make, joined(), kJoinedInput, 5, Numbers::kReal, 3e-6);
    const SgdSpec sgd{0.005, 0.9, 0.01};
    const Problem problem(joined(), 5, kJoinedInput, Numbers::kReal, 4);
    Trainer ours = make(problem, sgd), judge(plugin_path("reference"), problem, {}, sgd);
    std::vector<double> losses;
    for (int step = 0; step < 3; ++step) {
        losses.push_back(ours.step());
        EXPECT_LE(std::abs(losses.back() - judge.step()), 5e-6 * losses.back());
    }
    for (const tt_role role : {TT_PARAMETER, TT_OPTIMIZER}) expect_same(ours, judge, role, 2e-5);
    EXPECT_LE(relative_l2(ours.evaluate(), judge.evaluate()), 1e-5);
    const auto parameters = ours.read(TT_PARAMETER);
    ours.context().reset();
    for (const double loss : losses) {
        ours.part(TT_PART_FORWARD);
        EXPECT_EQ(ours.part(TT_PART_LOSS), loss);
        ours.part(TT_PART_BACKWARD);
        ours.part(TT_PART_UPDATE);
    }
    EXPECT_TRUE(ours.read(TT_PARAMETER) == parameters) << "in parts";
    ours.context().reset();
    std::map<std::string, std::set<tt_direction>> seen;
    for (int step = 0; step < 3; ++step)
        for (const ProfiledTime& time : ours.profile()) seen[time.node].insert(time.direction);
    EXPECT_TRUE(ours.read(TT_PARAMETER) == parameters) << "profiled";
    for (const char* name : {"sum1", "both", "three", "flat_both", "flat_sum"}) {
        EXPECT_TRUE(seen[name].contains(TT_DIRECTION_FORWARD)) << name;
    }
    for (const char* name : {"both", "flat_both"}) {  // sums may hand on their gradient as it is
        EXPECT_TRUE(seen[name].contains(TT_DIRECTION_BACKWARD_DATA) ||
                    seen[name].contains(TT_DIRECTION_BACKWARD))
            << name;
    }
}

}  // namespace timetrial::testing
