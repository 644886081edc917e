// Normalization, leaky_relu, relu6 and global pooling: what the core says of them, and their definitions in
// the reference.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "network/layers.h"
#include "support/differences.h"
#include "support/inputs.h"

namespace timetrial::testing {
namespace {

Network with(const NodeSpec& layer, const Shape& input, std::int64_t batch = 2) {
    std::vector<NodeSpec> specs{layer};
    if (input.size() > 1 && layer.kind != "global_avg_pool2d") specs.push_back(node("flat", "flatten"));
    specs.push_back(loss_of(specs.back().name));
    return {specs, batch, images_and_labels(input)};
}

template <class Call>
std::string refusal(Call&& call) {
    try {
        call();
    } catch (const NetworkError& error) {
        return error.what();
    }
    return "no error";
}
std::string refused(const std::string& kind, const AttributeSpecs& attributes,
                    const Shape& input = {3, 4, 4}) {
    return refusal([&] { with(node("x", kind, attributes), input); });
}

#define EXPECT_WORDS(text, words) EXPECT_NE((text).find(words), std::string::npos) << (text)

TEST(Normalization, HasParametersAndStates) {
    for (const Shape& input : {Shape{3, 4, 5}, Shape{3}}) {
        const Network network = with(node("norm", "batch_norm"), input);
        const Node& norm = network.node(network.index_of("norm"));
        EXPECT_EQ(norm.shape, network.node(0).shape);
        ASSERT_EQ(norm.parameters.size(), 4u);
        const char* names[] = {"norm.weight", "norm.bias", "norm.running_mean", "norm.running_var"};
        const char* initial[] = {"ones", "zeros", "zeros", "ones"};
        for (std::size_t i = 0; i < 4; ++i) {
            const Parameter& one = norm.parameters[i];
            EXPECT_EQ(one.name, names[i]);
            EXPECT_EQ(one.initializer.name, initial[i]);
            EXPECT_EQ(one.shape, Shape{3});
            EXPECT_EQ(one.role, i < 2 ? TT_PARAMETER : TT_STATE);
            EXPECT_TRUE(one.decays);
        }
        EXPECT_EQ(network.parameter_count(), 6);
        EXPECT_EQ(std::get<double>(norm.attribute("epsilon")), 1e-5);
        EXPECT_EQ(std::get<double>(norm.attribute("momentum")), 0.1);
    }
}

TEST(Normalization, KnowsShapesAndDefaults) {
    const Network network = with(node("lrn", "local_response_norm", {{"size", 5.0}}), {6, 3, 4});
    const Node& lrn = network.node(network.index_of("lrn"));
    EXPECT_EQ(lrn.shape, (Shape{2, 6, 3, 4}));
    EXPECT_EQ(std::get<double>(lrn.attribute("alpha")), 1e-4);
    EXPECT_EQ(std::get<double>(lrn.attribute("beta")), 0.75);
    EXPECT_EQ(std::get<double>(lrn.attribute("k")), 1.0);
    EXPECT_EQ(lrn.whole("alpha_over_size"), 1);
    const Network pooled = with(node("pool", "global_avg_pool2d"), {6, 3, 4});
    EXPECT_EQ(pooled.node(pooled.index_of("pool")).shape, (Shape{2, 6}));
}

TEST(Normalization, RefusesInWords) {
    EXPECT_WORDS(refused("batch_norm", {}, {3, 4}), "needs images (N, C, H, W) or flat samples (N, F)");
    EXPECT_WORDS(refused("batch_norm", {{"epsilon", 0.0}}), "epsilon = 0; expected a number above 0");
    EXPECT_WORDS(refused("batch_norm", {{"epsilon", -1e-5}}), "expected a number from 0");
    EXPECT_WORDS(refused("batch_norm", {{"momentum", 1.5}}),
                 "momentum = 1.5; expected the weight of the new");
    EXPECT_WORDS(refused("batch_norm", {{"eps", 1e-3}}), "has no attribute 'eps'");
    EXPECT_WORDS(refused("local_response_norm", {}), "needs 'size'");
    EXPECT_WORDS(refused("local_response_norm", {{"size", 4.0}}), "size = 4; expected an odd number");
    EXPECT_WORDS(refused("local_response_norm", {{"size", 5.0}, {"k", 0.0}}),
                 "k = 0; expected a number above 0");
    EXPECT_WORDS(refused("local_response_norm", {{"size", 5.0}}, {3}), "needs images");
    EXPECT_WORDS(refused("global_avg_pool2d", {}, {3}), "needs images");
    EXPECT_WORDS(refused("leaky_relu", {{"slope", -0.1}}), "slope = -0.1; expected a number from 0");
}

// It can infer: the running values are there.
TEST(Normalization, DoesNotTrainOnOneValue) {
    const auto trained = [](const Shape& input, std::int64_t batch) {
        const Network network = with(node("norm", "batch_norm"), input, batch);
        return refusal([&] { network.check_training(); });
    };
    EXPECT_WORDS(trained({3}, 1), "layer 'norm' (batch_norm) would train on one value per feature");
    EXPECT_WORDS(trained({3, 1, 1}, 1), "one value per channel");
    EXPECT_EQ(trained({3}, 2), "no error");
    EXPECT_EQ(trained({3, 1, 2}, 1), "no error");
}

TEST(Normalization, CouplesItsBatch) {
    EXPECT_TRUE(find_layer_kind("batch_norm")->couples_batch);
    EXPECT_FALSE(find_layer_kind("local_response_norm")->couples_batch);
}

TEST(ReferenceGradients, BatchNorm) {
    check_flat("batch_norm");
    check_images(node("middle", "batch_norm", {{"epsilon", 0.01}}));
}
TEST(ReferenceGradients, LocalResponseNorm) {
    for (const double beta : {0.75, 0.5})
        check_images(node("middle", "local_response_norm",
                          {{"size", 3.0}, {"alpha", 0.7}, {"beta", beta}, {"k", 0.5}}));
    check_images(
        node("middle", "local_response_norm", {{"size", 9.0}, {"alpha", 0.3}, {"alpha_over_size", false}}));
}
TEST(ReferenceGradients, LeakyRelu) { check_flat("leaky_relu", {{"slope", 0.3}}); }
TEST(ReferenceGradients, Relu6) { check_flat("relu6"); }
TEST(ReferenceGradients, GlobalAveragePool) {
    check_gradients(
        {node("first", "conv2d", {{"channels", 3.0}, {"kernel", 2.0}}), node("middle", "global_avg_pool2d"),
         node("last", "dense", {{"units", 4.0}}), loss_of("last")},
        {2, 8, 7});
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << i;
}

// Worked by hand: x = 1 and 5 have the mean 3 and the biased variance 4; with epsilon 5 the divisor is 3.
TEST(Reference, BatchNormByHand) {
    Problem problem({node("norm", "batch_norm", {{"epsilon", 5.0}, {"momentum", 0.25}}),
                     loss_of("norm", "squared_error")},
                    2, {1}, Numbers::kReal);
    problem.images = {1.0F, 5.0F};
    problem.labels = {0, 0};
    problem.weights = {{"norm.weight", {6.0F}},
                       {"norm.bias", {1.0F}},
                       {"norm.running_mean", {2.0F}},
                       {"norm.running_var", {8.0F}}};
    Trainer trainer(plugin_path("reference"), problem);
    EXPECT_DOUBLE_EQ(trainer.step(TT_GRADIENT), 16.0);  // y = 1 -+ 4, the target 1
    expect_near(trainer.read(TT_ACTIVATION).at("norm"), {-3, 5});
    expect_near(trainer.read(TT_ROLE_GRADIENT).at("norm.weight"), {4 * 2 * 4 / 6.0});
    expect_near(trainer.read(TT_ROLE_GRADIENT).at("norm.bias"), {0});
    // dL/dy = (-4, 4), so w / s * (g - mean(g) - xhat mean(g xhat)) with xhat = -+ 2/3: 2 (4 - 2/3 8/3).
    expect_near(trainer.read(TT_INPUT_GRADIENT).at("images"), {-2 * (4 - 16 / 9.0), 2 * (4 - 16 / 9.0)});
    expect_near(trainer.read(TT_STATE).at("norm.running_mean"), {0.75 * 2 + 0.25 * 3});
    expect_near(trainer.read(TT_STATE).at("norm.running_var"), {0.75 * 8 + 0.25 * 4});
    trainer.write(TT_STATE, "norm.running_mean", {2});
    trainer.write(TT_STATE, "norm.running_var", {4});
    expect_near(trainer.evaluate(), {6 * -1 / 3.0 + 1, 6 * 3 / 3.0 + 1});
    expect_near(trainer.read(TT_STATE).at("norm.running_mean"), {2});
    trainer.context().reset();
    expect_near(trainer.read(TT_STATE).at("norm.running_var"), {8});
}

// Worked by hand: the channels 1, 2, 3 at one position, a window of three.
TEST(Reference, LocalResponseNormByHand) {
    const auto normalized = [](bool over_size) {
        Problem problem(
            {node("lrn", "local_response_norm",
                  {{"size", 3.0}, {"alpha", 3.0}, {"beta", 1.0}, {"k", 2.0}, {"alpha_over_size", over_size}}),
             node("flat", "flatten"), loss_of("flat")},
            1, {3, 1, 1}, Numbers::kReal);
        problem.images = {1.0F, 2.0F, 3.0F};
        return Trainer(plugin_path("reference"), problem).evaluate();
    };
    expect_near(normalized(true), {1 / 7.0, 2 / 16.0, 3 / 15.0});
    expect_near(normalized(false), {1 / 17.0, 2 / 44.0, 3 / 41.0});
}

// The derivative at a kink is that of the lower side of leaky_relu, and 0 at both edges of relu6.
TEST(Reference, KinksByHand) {
    const auto step = [](const NodeSpec& layer) {
        Problem problem({layer, loss_of("x", "squared_error")}, 1, {4}, Numbers::kReal);
        problem.images = {-2.0F, 0.0F, 6.0F, 7.0F};
        problem.labels = {1};
        Trainer trainer(plugin_path("reference"), problem);
        trainer.step(TT_GRADIENT);
        return std::pair(trainer.read(TT_ACTIVATION).at("x"), trainer.read(TT_INPUT_GRADIENT).at("images"));
    };
    const auto [leaky, slopes] = step(node("x", "leaky_relu", {{"slope", 0.25}}));
    expect_near(leaky, {-0.5, 0, 6, 7});
    expect_near(slopes, {-0.25 * 0.25, -0.5 * 0.25, 3, 3.5});
    const auto [clipped, edges] = step(node("x", "relu6"));
    expect_near(clipped, {0, 0, 6, 6});
    expect_near(edges, {0, 0, 0, 0});
}

}  // namespace
}  // namespace timetrial::testing
