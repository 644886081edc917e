// The judge is judged by central differences (support/differences.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "loader/plugin.h"
#include "network/layers.h"
#include "support/against_reference.h"
#include "support/differences.h"
#include "support/joined.h"

namespace timetrial::testing {
namespace {

TEST(ReferenceGradients, TheCheckSaysNo) {
    EXPECT_TRUE(agree({1, 2, 3}, {1, 2, 3 + 1e-9}));
    EXPECT_FALSE(agree({1, 2, 3}, {1, 2, 3 + 1e-5}));
    EXPECT_FALSE(agree({0, 0}, {0, 0}));
    EXPECT_FALSE(agree({1, 2}, {1, NAN}));
}

TEST(ReferenceGradients, Dense) {
    check_gradients({node("first", "dense", {{"units", 6.0}}),
                     node("last", "dense", {{"units", 4.0}, {"bias", false}}), loss_of("last")},
                    {5});
}
TEST(ReferenceGradients, Relu) { check_flat("relu"); }
TEST(ReferenceGradients, Tanh) { check_flat("tanh"); }
TEST(ReferenceGradients, Sigmoid) { check_flat("sigmoid"); }
TEST(ReferenceGradients, Dropout) {
    check_flat("dropout");
    check_images(node("middle", "dropout"));
}
TEST(ReferenceGradients, SumOfLosses) {
    check_gradients(
        {node("first", "dense", {{"units", 6.0}}), node("middle", "tanh"),
         node("last", "dense", {{"units", 4.0}}), node_of({"last", "labels"}, "one", "squared_error"),
         node_of({"middle", "labels"}, "two", "softmax_cross_entropy"),
         node_of({"one", "two"}, "all", "loss_sum", {{"weights", std::vector<double>{2, 0.5}}})},
        {5});
}
TEST(ReferenceGradients, SquaredError) {
    check_gradients({node("first", "dense", {{"units", 6.0}}), node("middle", "tanh"),
                     node("last", "dense", {{"units", 4.0}}), loss_of("last", "squared_error")},
                    {5});
}
TEST(ReferenceGradients, Conv2d) {
    check_images(node("middle", "conv2d", {{"channels", 4.0}, {"kernel", std::vector<double>{3, 2}}}));
}
TEST(ReferenceGradients, Conv2dStrideAndPadding) {
    check_images(node("middle", "conv2d",
                      {{"channels", 4.0},
                       {"kernel", 3.0},
                       {"stride", std::vector<double>{2, 3}},
                       {"padding", std::vector<double>{2, 1}},
                       {"bias", false}}));
}
TEST(ReferenceGradients, Conv2dGroupsAndDilation) {
    check_images(
        node("middle", "conv2d", {{"channels", 6.0}, {"kernel", 2.0}, {"groups", 3.0}, {"dilation", 2.0}}));
    check_images(node("middle", "conv2d",
                      {{"channels", 3.0},
                       {"kernel", std::vector<double>{2, 3}},
                       {"groups", 3.0},
                       {"stride", std::vector<double>{3, 2}},
                       {"dilation", std::vector<double>{1, 2}},
                       {"padding", "same"}}));
}
TEST(ReferenceGradients, ConvTranspose2d) {
    check_images(node("middle", "conv_transpose2d", {{"channels", 2.0}, {"kernel", 2.0}}));
    check_images(node("middle", "conv_transpose2d",
                      {{"channels", 2.0},
                       {"kernel", std::vector<double>{3, 2}},
                       {"stride", std::vector<double>{2, 3}},
                       {"padding", std::vector<double>{2, 0}},
                       {"output_padding", std::vector<double>{1, 2}},
                       {"bias", false}}));
}
TEST(ReferenceGradients, Upsample2d) {
    check_images(node("middle", "upsample2d", {{"scale", std::vector<double>{2, 3}}}));
}
TEST(ReferenceGradients, MaxPool) { check_images(node("middle", "max_pool2d", {{"kernel", 2.0}})); }
TEST(ReferenceGradients, MaxPoolOverlapsAndPadding) {
    check_images(node("middle", "max_pool2d", {{"kernel", 3.0}, {"stride", 2.0}, {"padding", 1.0}}));
}
TEST(ReferenceGradients, AveragePool) { check_images(node("middle", "avg_pool2d", {{"kernel", 2.0}})); }
TEST(ReferenceGradients, AveragePoolOverlapsAndPadding) {
    check_images(node("middle", "avg_pool2d", {{"kernel", 3.0}, {"stride", 2.0}, {"padding", 1.0}}));
}

// A convolution's output is read by a relu and by a sum, the relu's by the sum and by a concat.
TEST(ReferenceGradients, FansOutAndJoins) {
    check_gradients({node("conv", "conv2d", {{"channels", 3.0}, {"kernel", 2.0}}), node("relu", "relu"),
                     node_of({"relu", "conv"}, "sum", "add"), node_of({"sum", "conv"}, "both", "concat"),
                     node("flat", "flatten"), node("last", "dense", {{"units", 4.0}}), loss_of("last")},
                    {2, 5, 4});
}
TEST(ReferenceGradients, FlatJoins) {
    check_gradients({node("first", "dense", {{"units", 6.0}}), node("tanh", "tanh"),
                     node_of({"tanh", "first", "first"}, "sum", "add"),
                     node_of({"sum", "images", "tanh"}, "both", "concat"),
                     node("last", "dense", {{"units", 4.0}}), loss_of("last")},
                    {5});
}

// Of (1, 2, 3, 4) and (5, 6, 7, 8), two channels of 1 x 4, what one layer makes.
std::vector<double> made_of_two_rows(const std::string& kind, const AttributeSpecs& attributes,
                                     const std::vector<float>& weights) {
    Problem problem({node("y", kind, attributes), node("flat", "flatten"), loss_of("flat", "squared_error")},
                    1, {2, 1, 4}, Numbers::kReal);
    if (!weights.empty()) problem.weights.at("y.weight") = weights;
    problem.images = {1, 2, 3, 4, 5, 6, 7, 8};
    problem.labels = {0};
    Trainer trainer(plugin_path("reference"), problem);
    trainer.step(TT_GRADIENT);
    return trainer.read(TT_ACTIVATION)["y"];
}

TEST(Reference, ConvolutionsByHand) {
    using Values = std::vector<double>;
    const std::vector<double> flat{1, 2};
    // Two groups: each channel meets its own weights only.
    EXPECT_EQ(
        made_of_two_rows("conv2d", {{"channels", 2.0}, {"kernel", flat}, {"groups", 2.0}, {"bias", false}},
                         {1, 10, 1, 100}),
        (Values{21, 32, 43, 605, 706, 807}));
    // A pause of one between the taps.
    EXPECT_EQ(
        made_of_two_rows(
            "conv2d",
            {{"channels", 1.0}, {"kernel", flat}, {"dilation", std::vector<double>{1, 2}}, {"bias", false}},
            {1, 10, 0, 0}),
        (Values{31, 42}));
    // An odd padding: the zero is behind.
    EXPECT_EQ(made_of_two_rows("conv2d",
                               {{"channels", 1.0}, {"kernel", flat}, {"padding", "same"}, {"bias", false}},
                               {1, 10, 0, 0}),
              (Values{21, 32, 43, 4}));
    // Each value sets its kernel down, two further on each time: (1, 10, 0) at 0, (2, 20, 0) at 2, ... of
    // which the first place is cut off and one is added behind.
    EXPECT_EQ(made_of_two_rows("conv_transpose2d",
                               {{"channels", 1.0},
                                {"kernel", flat},
                                {"stride", 2.0},
                                {"padding", std::vector<double>{0, 1}},
                                {"output_padding", std::vector<double>{0, 1}},
                                {"bias", false}},
                               {1, 10, 1, 0}),
              (Values{10, 8, 20, 10, 30, 12, 40}));
    EXPECT_EQ(made_of_two_rows("upsample2d", {{"scale", flat}}, {}),
              (Values{1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8}));
}

// Worked by hand: x = (1, 2) goes through w = 3 as y = (3, 6); y + y and y side by side: (6, 12, 3, 6).
TEST(Reference, JoinsByHand) {
    Problem problem({node("y", "conv2d", {{"channels", 1.0}, {"kernel", 1.0}, {"bias", false}}),
                     node_of({"y", "y"}, "sum", "add"), node_of({"sum", "y"}, "both", "concat"),
                     node("flat", "flatten"), loss_of("flat", "squared_error")},
                    1, {1, 1, 2}, Numbers::kReal);
    problem.weights["y.weight"] = {3.0F};
    problem.images = {1.0F, 2.0F};
    problem.labels = {0};
    Trainer trainer(plugin_path("reference"), problem);
    EXPECT_DOUBLE_EQ(trainer.step(TT_GRADIENT), (25.0 + 144 + 9 + 36) / 4);
    EXPECT_EQ(trainer.read(TT_ACTIVATION).at("both"), (std::vector<double>{6, 12, 3, 6}));
    // dL/dboth = (5, 12, 3, 6) / 2; y gets twice that of the sum, and its own: (13, 30) / 2; times w and x.
    EXPECT_EQ(trainer.read(TT_INPUT_GRADIENT).at("images"), (std::vector<double>{39 / 2.0, 45}));
    EXPECT_DOUBLE_EQ(trainer.read(TT_ROLE_GRADIENT).at("y.weight")[0], 13 / 2.0 + 30);
}

// Worked by hand: x = (1, 2) goes through w = 3 as y = (3, 6), of which the mask leaves twice the second.
TEST(Reference, DropoutByHand) {
    Problem problem({node("y", "conv2d", {{"channels", 1.0}, {"kernel", 1.0}, {"bias", false}}),
                     node("drop", "dropout"), node("flat", "flatten"), loss_of("flat", "squared_error")},
                    1, {1, 1, 2}, Numbers::kReal);
    problem.weights["y.weight"] = {3.0F};
    problem.masks["drop.mask"] = {0.0F, 2.0F};
    problem.images = {1.0F, 2.0F};
    problem.labels = {0};
    Trainer trainer(plugin_path("reference"), problem);
    EXPECT_DOUBLE_EQ(trainer.step(TT_GRADIENT), (1.0 + 144) / 2);
    EXPECT_EQ(trainer.read(TT_ACTIVATION).at("drop"), (std::vector<double>{0, 12}));
    // dL/ddrop = (-1, 12); through the mask (0, 24); times x.
    EXPECT_DOUBLE_EQ(trainer.read(TT_ROLE_GRADIENT).at("y.weight")[0], 48);
    EXPECT_EQ(trainer.read(TT_INPUT_GRADIENT).size(), 1u);  // none of the mask
    EXPECT_EQ(trainer.evaluate(), (std::vector<double>{3, 6}));
}

// A linear network with a squared error is a parabola in each pixel: there the central difference is exact,
// for any step that f32 images can make.
TEST(Reference, InputGradient) {
    const Problem problem(
        {node("conv", "conv2d", {{"channels", 2.0}, {"kernel", 2.0}, {"padding", 1.0}}),
         node("flat", "flatten"), node("last", "dense", {{"units", 3.0}}), loss_of("last", "squared_error")},
        2, {1, 4, 3}, Numbers::kReal);
    Trainer trainer(plugin_path("reference"), problem);
    trainer.step(TT_GRADIENT);
    const std::vector<double> gradient = trainer.read(TT_INPUT_GRADIENT).at("images");
    std::vector<double> differences;
    for (std::size_t i = 0; i < trainer.images.size(); ++i) {
        const float kept = trainer.images[i];
        trainer.images[i] = kept + 0.25F;
        const double after = trainer.step(TT_GRADIENT), up = trainer.images[i];
        trainer.images[i] = kept - 0.25F;
        const double before = trainer.step(TT_GRADIENT), down = trainer.images[i];
        trainer.images[i] = kept;
        differences.push_back((after - before) / (up - down));
    }
    EXPECT_LE(relative_l2(gradient, differences), 1e-6);
}

// Worked by hand: y = w x with w = 2, x = 3, one class: softmax of one value is 1, so use the squared error
// (6 - 1)^2 = 25, dL/dw = 2 * 5 * 3 = 30. Two steps of SGD with momentum 0.5 and weight decay 0.1.
TEST(Reference, SgdByHand) {
    Problem problem({node("fc", "dense", {{"units", 1.0}, {"bias", false}}), loss_of("fc", "squared_error")},
                    1, {1}, Numbers::kReal);
    problem.weights["fc.weight"] = {2.0F};
    problem.images = {3.0F};
    problem.labels = {0};
    Trainer trainer(plugin_path("reference"), problem, {}, {0.01, 0.5, 0.1});
    EXPECT_DOUBLE_EQ(trainer.step(), 25.0);
    EXPECT_DOUBLE_EQ(trainer.read(TT_ROLE_GRADIENT)["fc.weight"][0], 30.0);
    const double v1 = 30 + 0.1 * 2, w1 = 2 - 0.01 * v1;
    EXPECT_NEAR(trainer.read(TT_PARAMETER)["fc.weight"][0], w1, 1e-12);
    trainer.step();
    const double g2 = 2 * (3 * w1 - 1) * 3, v2 = 0.5 * v1 + g2 + 0.1 * w1, w2 = w1 - 0.01 * v2;
    EXPECT_NEAR(trainer.read(TT_OPTIMIZER)["fc.weight.velocity"][0], v2, 1e-12);
    EXPECT_NEAR(trainer.read(TT_PARAMETER)["fc.weight"][0], w2, 1e-12);
    trainer.context().reset();
    EXPECT_EQ(trainer.read(TT_PARAMETER)["fc.weight"][0], 2.0);
    EXPECT_EQ(trainer.read(TT_OPTIMIZER)["fc.weight.velocity"][0], 0.0);
}

// relu'(0) = 0, and the first of equal maxima gets the gradient.
TEST(Reference, CanonicalTies) {
    Problem problem({node("pool", "max_pool2d", {{"kernel", 2.0}}), node("flat", "flatten"),
                     node("fc", "dense", {{"units", 2.0}, {"bias", false}}), loss_of("fc")},
                    1, {1, 2, 2}, Numbers::kReal);
    problem.images = {1.0F, 5.0F, 5.0F, 5.0F};
    Trainer trainer(plugin_path("reference"), problem);
    trainer.step(TT_GRADIENT);
    const std::vector<double> gradient = trainer.read(TT_INPUT_GRADIENT).at("images");
    EXPECT_NE(gradient[1], 0.0);
    EXPECT_EQ((std::vector<double>{gradient[0], gradient[2], gradient[3]}), (std::vector<double>{0, 0, 0}));

    Trainer every(plugin_path("reference"), problem, {{"reference.ties", "all"}});
    every.step(TT_GRADIENT);
    const double whole = gradient[1];
    EXPECT_EQ(every.read(TT_INPUT_GRADIENT).at("images"), (std::vector<double>{0, whole, whole, whole}));
    EXPECT_EQ(every.read(TT_ACTIVATION).at("pool"), (std::vector<double>{5}));

    Problem flat({node("relu", "relu"), node("fc", "dense", {{"units", 2.0}}), loss_of("fc")}, 1, {2},
                 Numbers::kReal);
    flat.images = {0.0F, 1.0F};
    Trainer second(plugin_path("reference"), flat);
    second.step(TT_GRADIENT);
    EXPECT_EQ(second.read(TT_INPUT_GRADIENT).at("images")[0], 0.0);
    EXPECT_NE(second.read(TT_INPUT_GRADIENT).at("images")[1], 0.0);
}

TEST(Reference, FansOutAndJoins) {
    expect_joined([](const Problem& problem, const SgdSpec& sgd) {
        return Trainer(plugin_path("reference"), problem, {}, sgd);
    });
}

TEST(Reference, PartsMakeTheSameStep) {
    const Problem problem(mlp(), 4, {1, 4, 4}, Numbers::kReal);
    Trainer fused(plugin_path("reference"), problem), parts(plugin_path("reference"), problem);
    expect_same_in_parts(fused, parts);
}

TEST(Reference, RefusesBadInput) {
    Problem problem({node("fc", "dense", {{"units", 2.0}}), loss_of("fc")}, 2, {3}, Numbers::kReal);
    Trainer trainer(plugin_path("reference"), problem);
    trainer.labels[1] = 2;
    try {
        trainer.step();
        FAIL() << "a label out of range was taken";
    } catch (const BackendError& error) {
        EXPECT_STREQ(error.what(), "label 2 of sample 1 is outside 0 to 1");
    }
    EXPECT_THROW(Trainer(plugin_path("reference"), problem, {{"threads", "2"}}), BackendError);
    EXPECT_THROW(Trainer(plugin_path("reference"), problem, {{"thread", "1"}}), BackendError);
}

TEST(Reference, HasEveryKindThereIs) {
    const Plugin plugin(plugin_path("reference"));
    const std::vector<std::string> own = word_list(plugin.description().layers);
    for (const LayerKind& kind : layer_kinds())
        EXPECT_NE(std::find(own.begin(), own.end(), kind.name), own.end()) << kind.name;
    EXPECT_EQ(own.size(), 1 + layer_kinds().size());  // and "input"
}

// A profiled step is a step, and it names every layer that has work.
TEST(Reference, ProfilesAStep) {
    const Problem problem(
        {node("conv1", "conv2d", {{"channels", 3.0}, {"kernel", 3.0}}), node("relu1", "relu"),
         node("flat", "flatten"), node("fc1", "dense", {{"units", 4.0}}), loss_of("fc1")},
        4, {2, 8, 8}, Numbers::kReal);
    Trainer stepped(plugin_path("reference"), problem), profiled(plugin_path("reference"), problem);
    std::set<std::pair<std::string, tt_direction>> seen;
    for (int i = 0; i < 3; ++i) {
        stepped.step();
        for (const ProfiledTime& time : profiled.profile()) seen.insert({time.node, time.direction});
    }
    EXPECT_EQ(profiled.read(TT_PARAMETER), stepped.read(TT_PARAMETER));
    for (const char* layer : {"conv1", "relu1", "flat", "fc1"}) {
        EXPECT_TRUE(seen.contains({layer, TT_DIRECTION_FORWARD})) << layer;
        EXPECT_TRUE(seen.contains({layer, TT_DIRECTION_BACKWARD})) << layer;
    }
    EXPECT_TRUE(seen.contains({"fc1", TT_DIRECTION_UPDATE}));
    EXPECT_TRUE(seen.contains({"loss", TT_DIRECTION_LOSS}));
}

TEST(Null, DoesNotTimeItsLayersAndSaysSo) {
    const Problem problem(mlp(), 2, {4}, Numbers::kReal);
    Trainer trainer(plugin_path("null"), problem);
    EXPECT_THROW(trainer.profile(), BackendError);
}

}  // namespace
}  // namespace timetrial::testing
