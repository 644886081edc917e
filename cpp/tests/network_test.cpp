#include "network/network.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "network/c_network.h"
#include "support/inputs.h"

namespace timetrial {
namespace {

using Specs = std::vector<NodeSpec>;
using timetrial::testing::images_and_labels;

const NodeSpec kLoss{"loss", "softmax_cross_entropy", {{"fc2", "labels"}}, {}};

Specs lenet5() {
    return {
        {"conv1", "conv2d", {}, {{"channels", 20.0}, {"kernel", 5.0}}},
        {"pool1", "max_pool2d", {}, {{"kernel", 2.0}}},
        {"conv2", "conv2d", {}, {{"channels", 50.0}, {"kernel", 5.0}}},
        {"pool2", "max_pool2d", {}, {{"kernel", 2.0}}},
        {"flatten", "flatten", {}, {}},
        {"fc1", "dense", {}, {{"units", 500.0}}},
        {"relu1", "relu", {}, {}},
        {"fc2", "dense", {}, {{"units", 10.0}}},
        kLoss,
    };
}

// A network of one layer with a loss behind it.
Specs single(NodeSpec layer) {
    const std::string name = layer.name;
    return {
        std::move(layer), {"flat", "flatten", {}, {}}, {"loss", "squared_error", {{"flat", "labels"}}, {}}};
}

Shape shape_of(NodeSpec layer, const Shape& input) {
    const Network network(single(layer), 2, images_and_labels(input));
    return network.node(2).shape;
}

std::string refusal(const Specs& specs, std::int64_t batch_size = 64, const Shape& input = {1, 28, 28}) {
    try {
        const Network network(specs, batch_size, images_and_labels(input));
    } catch (const NetworkError& error) {
        return error.what();
    }
    return "no error";
}

#define EXPECT_WORDS(text, words) EXPECT_NE((text).find(words), std::string::npos) << (text)

// Work by hand: 24*24 outputs x 20 x 25, 8*8 x 50 x 500, 800 x 500, 500 x 10, each times 64 samples.
TEST(Network, KnowsLeNet5) {
    const Network network(lenet5(), 64, images_and_labels({1, 28, 28}));
    EXPECT_EQ(network.parameter_count(), 20 * 25 + 20 + 50 * 500 + 50 + 800 * 500 + 500 + 5000 + 10);
    EXPECT_EQ(network.node(network.output()).name, "fc2");
    EXPECT_EQ(network.node(network.loss()).name, "loss");
    EXPECT_EQ(network.classes(), 10);
    EXPECT_EQ(network.node(network.index_of("pool2")).shape, (Shape{64, 50, 4, 4}));
    EXPECT_TRUE(network.node(network.loss()).shape.empty());
    const auto work = [&](const char* name) { return network.multiply_accumulates(network.index_of(name)); };
    EXPECT_EQ(work("conv1").forward, 64 * 24 * 24 * 20 * 25);
    EXPECT_EQ(work("conv1").backward_data, 0) << "nothing before the first layer is trained";
    EXPECT_EQ(work("conv1").backward_weights, work("conv1").forward);
    EXPECT_EQ(work("conv2").forward, 64 * 8 * 8 * 50 * 500);
    EXPECT_EQ(work("conv2").backward_data, work("conv2").forward);
    EXPECT_EQ(work("fc1").of(TT_TRAIN), 3 * 64 * 800 * 500);
    EXPECT_EQ(work("fc2").of(TT_FORWARD), 64 * 500 * 10);
    EXPECT_EQ(work("pool1").of(TT_TRAIN), 0);
    EXPECT_EQ(work("images").of(TT_TRAIN), 0);
}

TEST(Network, NamesParametersAsTorchShapesThem) {
    const auto parameters = Network(lenet5(), 64, images_and_labels({1, 28, 28})).parameters();
    ASSERT_EQ(parameters.size(), 8u);
    EXPECT_EQ(parameters[0].name, "conv1.weight");
    EXPECT_EQ(parameters[0].shape, (Shape{20, 1, 5, 5}));
    EXPECT_EQ(parameters[1].name, "conv1.bias");
    EXPECT_EQ(parameters[1].shape, (Shape{20}));
    EXPECT_EQ(parameters[4].shape, (Shape{500, 800}));
    const Network without(single({"fc", "dense", {}, {{"units", 3.0}, {"bias", false}}}), 2,
                          images_and_labels({5}));
    EXPECT_EQ(without.parameters().size(), 1u);
}

TEST(Network, InfersWindows) {
    const auto conv = [](AttributeSpecs attributes) {
        attributes["channels"] = 4.0;
        return NodeSpec{"c", "conv2d", {}, attributes};
    };
    const auto pool = [](AttributeSpecs attributes) { return NodeSpec{"p", "avg_pool2d", {}, attributes}; };
    EXPECT_EQ(shape_of(conv({{"kernel", 3.0}}), {3, 8, 9}), (Shape{2, 4, 6, 7}));
    EXPECT_EQ(shape_of(conv({{"kernel", std::vector{3.0, 5.0}}, {"padding", "same"}}), {3, 8, 9}),
              (Shape{2, 4, 8, 9}));
    EXPECT_EQ(shape_of(conv({{"kernel", 3.0}, {"stride", 2.0}, {"padding", 1.0}}), {3, 8, 9}),
              (Shape{2, 4, 4, 5}));
    EXPECT_EQ(shape_of(conv({{"kernel", 3.0}, {"stride", std::vector{1.0, 3.0}}}), {3, 8, 9}),
              (Shape{2, 4, 6, 3}));
    EXPECT_EQ(shape_of(pool({{"kernel", 2.0}}), {3, 8, 9}), (Shape{2, 3, 4, 4}));
    EXPECT_EQ(shape_of(pool({{"kernel", 3.0}, {"stride", 2.0}, {"padding", 1.0}}), {3, 8, 9}),
              (Shape{2, 3, 4, 5}));
    EXPECT_EQ(shape_of(conv({{"kernel", 8.0}}), {3, 8, 8}), (Shape{2, 4, 1, 1}));
}

// As many outputs as inputs, divided by the stride and rounded up; the larger half of the padding behind.
TEST(Network, PadsToTheSameSize) {
    const auto padded = [](AttributeSpecs attributes, const Shape& sample) {
        attributes["channels"] = 4.0;
        attributes["padding"] = "same";
        const Network network(single({"c", "conv2d", {}, attributes}), 2, images_and_labels(sample));
        const Node& conv = network.node(network.index_of("c"));
        return std::vector{conv.shape[2],           conv.shape[3],
                           conv.whole("padding_h"), conv.whole("padding_end_h"),
                           conv.whole("padding_w"), conv.whole("padding_end_w")};
    };
    using Six = std::vector<std::int64_t>;
    EXPECT_EQ(padded({{"kernel", 3.0}}, {3, 8, 9}), (Six{8, 9, 1, 1, 1, 1}));
    EXPECT_EQ(padded({{"kernel", 4.0}}, {3, 8, 9}), (Six{8, 9, 1, 2, 1, 2}));
    // MobileNet's first layer: nothing in front of an even image.
    EXPECT_EQ(padded({{"kernel", 3.0}, {"stride", 2.0}}, {3, 8, 9}), (Six{4, 5, 0, 1, 1, 1}));
    EXPECT_EQ(padded({{"kernel", 3.0}, {"stride", 2.0}, {"dilation", 2.0}}, {3, 8, 9}),
              (Six{4, 5, 1, 2, 2, 2}));
    EXPECT_EQ(padded({{"kernel", 1.0}, {"stride", 3.0}}, {3, 8, 9}), (Six{3, 3, 0, 0, 0, 0}))
        << "a stride beyond the kernel";
    EXPECT_EQ(padded({{"kernel", 9.0}}, {3, 2, 2}), (Six{2, 2, 4, 4, 4, 4})) << "a kernel beyond the images";
}

TEST(Network, DividesConvolutionsIntoGroups) {
    const auto conv_of = [](double channels, double groups) {
        const Network network(
            single({"c", "conv2d", {}, {{"channels", channels}, {"kernel", 3.0}, {"groups", groups}}}), 2,
            images_and_labels({4, 5, 6}));
        const std::uint32_t index = network.index_of("c");
        const Parameter& weight = network.node(index).parameters[0];
        EXPECT_EQ(network.multiply_accumulates(index).forward,
                  element_count(network.node(index).shape) * weight.shape[1] * 9);
        return std::pair(weight.shape, std::pair(weight.initializer.fan_in, weight.initializer.fan_out));
    };
    EXPECT_EQ(conv_of(6, 2), std::pair(Shape{6, 2, 3, 3}, std::pair(18L, 27L)));
    EXPECT_EQ(conv_of(8, 4), std::pair(Shape{8, 1, 3, 3}, std::pair(9L, 18L)));
}

TEST(Network, EnlargesImages) {
    const NodeSpec transposed{"t",
                              "conv_transpose2d",
                              {},
                              {{"channels", 5.0},
                               {"kernel", std::vector{3.0, 4.0}},
                               {"stride", 2.0},
                               {"padding", 1.0},
                               {"output_padding", std::vector{1.0, 0.0}}}};
    EXPECT_EQ(shape_of(transposed, {3, 8, 9}), (Shape{2, 5, 16, 18}));
    const Network network(single(transposed), 2, images_and_labels({3, 8, 9}));
    const Node& node = network.node(network.index_of("t"));
    EXPECT_EQ(node.parameters[0].shape, (Shape{3, 5, 3, 4})) << "as PyTorch has it: inputs first";
    EXPECT_EQ(node.parameters[1].shape, (Shape{5}));
    EXPECT_EQ(node.parameters[0].initializer.fan_in, 3 * 12);
    EXPECT_EQ(network.multiply_accumulates(network.index_of("t")).forward, 2 * 3 * 8 * 9 * 5 * 12);
    EXPECT_EQ(shape_of({"u", "upsample2d", {}, {{"scale", std::vector{2.0, 3.0}}}}, {3, 8, 9}),
              (Shape{2, 3, 16, 27}));
}

// What a job file carries must mean the same network.
TEST(Network, TakesItsOwnNormalizedNodes) {
    const Network network(lenet5(), 64, images_and_labels({1, 28, 28}));
    Specs specs;
    for (const Node& node : network.nodes()) {
        NodeSpec spec{node.name, node.kind, std::vector<std::string>{}, {}};
        for (const std::uint32_t index : node.inputs) spec.inputs->push_back(network.node(index).name);
        for (const Attribute& attribute : node.attributes)
            spec.attributes[attribute.name] = static_cast<double>(std::get<std::int64_t>(attribute.value));
        specs.push_back(spec);
    }
    const Network again(specs, 64, images_and_labels({1, 28, 28}));
    ASSERT_EQ(again.nodes().size(), network.nodes().size());
    for (std::uint32_t index = 0; index < network.nodes().size(); ++index) {
        const Node& before = network.node(index);
        const Node& after = again.node(index);
        EXPECT_EQ(after.name, before.name);
        EXPECT_EQ(after.shape, before.shape);
        EXPECT_EQ(after.inputs, before.inputs);
        ASSERT_EQ(after.attributes.size(), before.attributes.size());
        for (std::size_t i = 0; i < before.attributes.size(); ++i) {
            EXPECT_EQ(after.attributes[i].name, before.attributes[i].name);
            EXPECT_EQ(after.attributes[i].value, before.attributes[i].value);
        }
    }
}

TEST(Network, CountsTheBytesOfEachPass) {
    const Specs specs{{"fc1", "dense", {}, {{"units", 3.0}}},
                      {"act", "tanh", {}, {}},
                      {"fc2", "dense", {}, {{"units", 2.0}, {"bias", false}}},
                      kLoss};
    const Network network(specs, 10, images_and_labels({5}));
    const PassWork first = network.bytes(network.index_of("fc1"));
    EXPECT_EQ(first.forward, 4 * (10 * 5 + 18 + 10 * 3));
    EXPECT_EQ(first.backward_data, 0);
    EXPECT_EQ(first.backward_weights, 4 * (10 * 3 + 10 * 5 + 18));
    const PassWork act = network.bytes(network.index_of("act"));
    EXPECT_EQ(act.backward_data, 4 * 3 * 30);  // its output, the gradient of its output and of its input
    EXPECT_EQ(act.backward_weights, 0);
    const PassWork second = network.bytes(network.index_of("fc2"));
    EXPECT_EQ(second.backward_data, 4 * (10 * 2 + 6 + 10 * 3));
    EXPECT_EQ(network.activation_bytes(), 4 * (30 + 30 + 20 + 1));
}

TEST(Network, NamesBothLayersAndShapesThatDoNotFit) {
    Specs specs = lenet5();
    specs.erase(specs.begin() + 4);
    EXPECT_EQ(refusal(specs),
              "layer 'fc1' (dense) needs a flat input (N, F); 'pool2' gives (64, 50, 4, 4): put a "
              "flatten between them");
    EXPECT_WORDS(refusal(lenet5(), 64, {784}),
                 "layer 'conv1' (conv2d) needs images (N, C, H, W); 'images' gives (64, 784)");
    EXPECT_WORDS(
        refusal(lenet5(), 64, {1, 8, 8}),
        "layer 'conv2' (conv2d) has a 5x5 kernel with 0x0 padding, larger than its images: 'pool1' gives "
        "(64, 20, 2, 2)");
}

TEST(Network, RefusesWrongAttributes) {
    const auto conv = [](AttributeSpecs attributes) {
        return refusal(single({"c", "conv2d", {}, attributes}));
    };
    EXPECT_WORDS(conv({{"kernel", 3.0}}), "layer 'c' (conv2d) needs 'channels'");
    EXPECT_WORDS(conv({{"channels", 3.0}}), "needs 'kernel'");
    EXPECT_WORDS(conv({{"channels", 3.0}, {"kernal", 3.0}}), "no attribute 'kernal'. Did you mean 'kernel'?");
    EXPECT_WORDS(conv({{"channels", 0.0}, {"kernel", 3.0}}), "channels = 0");
    EXPECT_WORDS(conv({{"channels", 2.5}, {"kernel", 3.0}}), "channels = 2.5");
    EXPECT_WORDS(conv({{"channels", true}, {"kernel", 3.0}}), "channels = true");
    EXPECT_WORDS(conv({{"channels", 1e30}, {"kernel", 3.0}}), "channels = 1e+30");
    EXPECT_WORDS(conv({{"channels", 3.0}, {"kernel", "big"}}), "kernel = \"big\"");
    EXPECT_WORDS(conv({{"channels", 3.0}, {"kernel", std::vector{1.0, 2.0, 3.0}}}), "kernel = [1, 2, 3]");
    EXPECT_WORDS(conv({{"channels", 3.0}, {"kernel", 3.0}, {"padding", -1.0}}), "padding = -1");
    EXPECT_WORDS(conv({{"channels", 3.0}, {"kernel", 3.0}, {"padding", "valid"}}), "padding = \"valid\"");
    EXPECT_WORDS(conv({{"channels", 3.0}, {"padding", "same"}}), "needs 'kernel'");
    EXPECT_WORDS(conv({{"channels", 3.0}, {"kernel", 3.0}, {"padding_end", 1.0}}),
                 "no attribute 'padding_end'. Did you mean 'padding");
    EXPECT_WORDS(conv({{"channels", 3.0}, {"kernel", 3.0}, {"padding", "same"}, {"padding_end_h", 1.0}}),
                 "'padding' and also 'padding_end_h'");
    EXPECT_WORDS(conv({{"channels", 3.0}, {"kernel", 3.0}, {"groups", 0.0}}), "groups = 0");
    EXPECT_WORDS(conv({{"channels", 3.0}, {"kernel", 3.0}, {"groups", 3.0}}),
                 "groups = 3, which must divide both its channels = 3 and the 1 channels of its input; "
                 "'images' gives (64, 1, 28, 28)");
    EXPECT_WORDS(conv({{"channels", 3.0}, {"kernel", 3.0}, {"dilation", 0.0}}), "dilation = 0");
    EXPECT_WORDS(conv({{"channels", 3.0}, {"kernel", 3.0}, {"dilation", 14.0}}),
                 "has a 3x3 kernel, dilated by 14x14, with 0x0 padding, larger than its images");
    const auto transposed = [](AttributeSpecs attributes) {
        attributes["channels"] = 3.0;
        return refusal(single({"c", "conv_transpose2d", {}, attributes}));
    };
    EXPECT_WORDS(transposed({{"kernel", 3.0}, {"stride", 2.0}, {"output_padding", std::vector{0.0, 2.0}}}),
                 "output_padding_w = 2; expected less than its stride, 2");
    EXPECT_WORDS(transposed({{"kernel", 3.0}, {"padding", 15.0}}),
                 "padding_h = 15, which cuts off all 30 of its outputs");
    EXPECT_WORDS(refusal(single({"u", "upsample2d", {}, {}})), "needs 'scale', a whole number or");
    EXPECT_WORDS(refusal(single({"u", "upsample2d", {}, {{"scale", 0.0}}})), "scale = 0");
    EXPECT_WORDS(conv({{"channels", 3.0}, {"kernel_h", 3.0}}), "only one of 'kernel_h' and 'kernel_w'");
    EXPECT_WORDS(conv({{"channels", 3.0}, {"kernel", 3.0}, {"kernel_h", 3.0}}), "'kernel' and also");
    EXPECT_WORDS(conv({{"channels", 3.0}, {"kernel", 3.0}, {"bias", 2.0}}),
                 "bias = 2; expected true or false");
    EXPECT_WORDS(refusal(single({"p", "max_pool2d", {}, {{"kernel", 2.0}, {"padding", 2.0}}})),
                 "half its kernel");
    EXPECT_WORDS(refusal(single({"r", "relu", {}, {{"slope", 0.1}}})),
                 "no attribute 'slope'. This kind has none.");
}

TEST(Network, RefusesWrongGraphs) {
    Specs specs = lenet5();
    specs.pop_back();
    EXPECT_WORDS(refusal(specs), "has no loss");
    specs = lenet5();
    specs.push_back({"loss2", "squared_error", {{"fc2", "labels"}}, {}});
    EXPECT_WORDS(refusal(specs), "several losses (loss, loss2)");
    specs = lenet5();
    specs.back().inputs.reset();
    EXPECT_WORDS(refusal(specs), "needs inputs = [prediction, target]");
    specs.back().inputs = {"fc2"};
    EXPECT_WORDS(refusal(specs), "has 1 input ('fc2'); expected 2: [prediction, target]");
    specs.back().inputs = {"labels", "fc2"};
    EXPECT_WORDS(refusal(specs), "needs a flat input");
    specs = lenet5();
    specs[1].inputs = {"convl"};
    EXPECT_WORDS(refusal(specs),
                 "layer 'pool1' (max_pool2d) has the input 'convl', which is no node before it. Did you "
                 "mean 'conv1'?");
    specs = lenet5();
    specs[2].name = "conv1";
    EXPECT_WORDS(refusal(specs), "two nodes are called 'conv1'");
    specs = lenet5();
    specs[0].kind = "convolution";
    EXPECT_WORDS(refusal(specs), "unknown kind 'convolution'. Known: add, avg_pool2d");
    specs[0].kind = "cnov2d";
    EXPECT_WORDS(refusal(specs), "unknown kind 'cnov2d'. Did you mean 'conv2d'?");
    specs[0].kind = "gelu";  // no slip of "relu"
    EXPECT_WORDS(refusal(specs), "unknown kind 'gelu'. Known: ");
    EXPECT_WORDS(refusal(specs), "callable=\"package.module:make_step\"");
    specs = lenet5();
    specs[0].name = "a/b";
    EXPECT_WORDS(refusal(specs), "layer name 'a/b'");
    specs = lenet5();
    specs[1].inputs = {"labels"};
    EXPECT_WORDS(refusal(specs), "are whole numbers: it computes with real ones");
    specs = lenet5();
    specs.insert(specs.begin() + 7, {"spare", "relu", {{"fc1"}}, {}});
    specs[8].inputs = {"relu1"};
    EXPECT_WORDS(refusal(specs), "layer 'spare' (relu) is the input of no other");
    specs = lenet5();
    specs.push_back({"after", "relu", {{"loss"}}, {}});
    EXPECT_WORDS(refusal(specs), "nothing can follow a loss");
    specs = lenet5();
    specs.insert(specs.begin(), {"mask", "input", {}, {}});
    EXPECT_WORDS(refusal(specs), "input 'mask' is none of the data's: images, labels");
    EXPECT_WORDS(refusal({}), "has no loss");
    EXPECT_WORDS(refusal(lenet5(), 0), "batch_size = 0");
    EXPECT_WORDS(refusal(lenet5(), 64, {28, 28}), "needs images (N, C, H, W); 'images' gives (64, 28, 28)");
    EXPECT_WORDS(refusal(lenet5(), 64, {1, 28, 0}), "input 'images': samples of shape (1, 28, 0); expected");
    EXPECT_WORDS(refusal(lenet5(), 64, {1, 1, 1, 1, 28, 28}), "expected at most 5 whole numbers from 1");
    EXPECT_WORDS(refusal(lenet5(), std::int64_t{1} << 61, {1, 28, 28}), "too large");
}

TEST(Network, HasTheInputsThatTheDataBring) {
    const std::vector<InputSpec> inputs{
        {"left", TT_F32, {3}, TT_INPUT}, {"right", TT_F32, {3}, TT_INPUT}, {"side", TT_I64, {}, TT_TARGET}};
    Specs specs{{"both", "add", {{"left", "right"}}, {}},
                {"out", "dense", {}, {{"units", 2.0}}},
                {"loss", "softmax_cross_entropy", {{"out", "side"}}, {}}};
    const Network network(specs, 5, inputs);
    EXPECT_EQ(network.inputs(), (std::vector<std::uint32_t>{0, 1, 2}));
    EXPECT_EQ(network.node(1).shape, (Shape{5, 3}));
    EXPECT_EQ(network.node(2).role, TT_TARGET);
    EXPECT_EQ(network.values_below(2), 2);
    EXPECT_EQ(network.values_below(0), 0);

    const auto refused = [&](const std::vector<InputSpec>& wrong) -> std::string {
        try {
            const Network one(specs, 5, wrong);
        } catch (const NetworkError& error) {
            return error.what();
        }
        return "";
    };
    std::vector<InputSpec> more = inputs;
    more.push_back({"extra", TT_F32, {7}, TT_INPUT});
    EXPECT_WORDS(refused(more), "the data's 'extra' are the input of no layer");
    more.back().name = "left";
    EXPECT_WORDS(refused(more), "two inputs are called 'left'");
    more.back().name = "a\nb";
    EXPECT_WORDS(refused(more), "expected 1 to 64 letters, digits");
    EXPECT_WORDS(refused({}), "needs an input");
    EXPECT_WORDS(refused({inputs[0], inputs[2]}), "has the input 'right', which is no node before it");
}

TEST(Network, AddsLosses) {
    const std::vector<InputSpec> inputs{{"images", TT_F32, {6}, TT_INPUT}, {"labels", TT_I64, {}, TT_TARGET}};
    Specs specs{{"code", "dense", {{"images"}}, {{"units", 3.0}}},
                {"again", "dense", {}, {{"units", 6.0}}},
                {"error", "mean_squared_error", {{"again", "images"}}, {}},
                {"class", "softmax_cross_entropy", {{"code", "labels"}}, {}},
                {"all", "loss_sum", {{"class", "error"}}, {}}};
    const Network network(specs, 5, inputs);
    EXPECT_EQ(network.node(network.loss()).name, "all");
    EXPECT_EQ(network.node(network.output_loss()).name, "class");
    EXPECT_EQ(network.node(network.output()).name, "code");
    EXPECT_EQ(network.classes(), 3);
    EXPECT_EQ(std::get<std::vector<double>>(network.node(network.loss()).attribute("weights")),
              (std::vector<double>{1, 1}));
    const auto refused = [&]() -> std::string {
        try {
            const Network one(specs, 5, inputs);
        } catch (const NetworkError& error) {
            return error.what();
        }
        return "";
    };
    specs.back().attributes = {{"weights", std::vector<double>{1.0}}};
    EXPECT_WORDS(refused(), "layer 'all' (loss_sum) has 1 weights for 2 losses: expected one for each");
    specs.back().attributes = {{"weights", std::vector<double>{1.0, -1.0}}};
    EXPECT_WORDS(refused(), "weights");
    specs.back() = {"all", "loss_sum", {{"class", "class"}}, {}};
    EXPECT_WORDS(refused(), "has 'class' as input twice");
    specs.back() = {"all", "loss_sum", {{"class", "again"}}, {}};
    EXPECT_WORDS(refused(), "has 'again' as input, which is no loss");
    specs.back() = {"all", "loss_sum", {{"class"}}, {}};
    EXPECT_WORDS(refused(), "expected two or more");
    specs.pop_back();
    EXPECT_WORDS(refused(), "several losses (error, class); expected one, or a node of kind loss_sum");
    specs.push_back({"after", "relu", {{"class"}}, {}});
    EXPECT_WORDS(refused(), "nothing can follow a loss but a node of kind loss_sum");
}

TEST(Network, GivesEachDropoutAMask) {
    const Specs specs{{"conv", "conv2d", {{"images"}}, {{"channels", 2.0}, {"kernel", 3.0}}},
                      {"drop1", "dropout", {}, {{"rate", 0.25}}},
                      {"flat", "flatten", {}, {}},
                      {"drop2", "dropout", {}, {}},
                      {"both", "add", {{"flat", "drop2"}}, {}},
                      {"loss", "squared_error", {{"both", "labels"}}, {}}};
    const Network network(specs, 2, images_and_labels({1, 4, 4}));
    EXPECT_EQ(network.inputs(), (std::vector<std::uint32_t>{0, 1, 2, 3}));
    EXPECT_EQ(network.node(2).name, "drop1.mask");
    EXPECT_EQ(network.node(2).shape, (Shape{2, 2, 2, 2}));
    EXPECT_EQ(network.node(3).name, "drop2.mask");
    EXPECT_EQ(network.node(3).shape, (Shape{2, 8}));
    EXPECT_EQ(network.node(3).role, TT_MASK);
    const auto inputs_of = [&](const char* name) { return network.node(network.index_of(name)).inputs; };
    EXPECT_EQ(inputs_of("conv"), (std::vector<std::uint32_t>{0}));
    EXPECT_EQ(inputs_of("drop1"), (std::vector<std::uint32_t>{network.index_of("conv"), 2}));
    EXPECT_EQ(inputs_of("both"),
              (std::vector<std::uint32_t>{network.index_of("flat"), network.index_of("drop2")}));
    EXPECT_EQ(inputs_of("loss"), (std::vector<std::uint32_t>{network.index_of("both"), 1}));
    EXPECT_EQ(network.node(network.output()).name, "both");
    EXPECT_EQ(network.parameter_count(), 2 * 9 + 2);
    constexpr std::int64_t one = 2 * 2 * 2 * 2 * 4;  // bytes of a tensor of the first
    const PassWork work = network.bytes(network.index_of("drop1"));
    EXPECT_EQ(work.forward, 3 * one);        // reads x and m, writes y
    EXPECT_EQ(work.backward_data, 3 * one);  // reads dy and m, writes dx
}

TEST(Network, RefusesWrongMasks) {
    Specs specs{{"fc", "dense", {{"images"}}, {{"units", 2.0}}},
                {"drop", "dropout", {{"fc", "noise"}}, {}},
                {"loss", "squared_error", {{"drop", "labels"}}, {}}};
    std::vector<InputSpec> inputs = images_and_labels({3});
    inputs.push_back({"noise", TT_F32, {2}, TT_MASK});
    const auto refused = [&]() -> std::string {
        try {
            const Network one(specs, 5, inputs);
        } catch (const NetworkError& error) {
            return error.what();
        }
        return "";
    };
    EXPECT_EQ(refused(), "");
    inputs.back().sample = {4};
    EXPECT_WORDS(refused(), "a mask in the shape of the first, (5, 2); 'noise' is (5, 4). Leave it out");
    inputs.back() = {"noise", TT_F32, {2}, TT_INPUT};
    EXPECT_WORDS(refused(), "'noise' is (5, 2) and no mask");
    inputs.back().role = TT_MASK;
    specs.insert(specs.begin() + 2, {"again", "dropout", {{"drop", "noise"}}, {}});
    specs.back().inputs = {"again", "labels"};
    EXPECT_WORDS(refused(), "layer 'again' (dropout) has the mask of 'drop': each layer draws its own");
    specs[2].inputs = {"drop"};
    EXPECT_EQ(refused(), "");
    specs[2].attributes = {{"rate", 1.0}};
    EXPECT_WORDS(refused(), "has rate = 1; expected the share of values that are dropped, from 0 to below 1");
    specs[2].attributes = {{"rate", -0.1}};
    EXPECT_WORDS(refused(), "rate = -0.1");
    specs[2].attributes = {{"p", 0.1}};
    EXPECT_WORDS(refused(), "rate");
    specs[2] = {"again", "dropout", {{"drop", "fc", "noise"}}, {}};
    EXPECT_WORDS(refused(), "has 3 inputs");
}

// Two convolutions of the images, `join`, and a loss.
Specs joined(NodeSpec join, double first_channels = 4.0, double second_kernel = 3.0) {
    const std::string name = join.name;
    return {{"a", "conv2d", {{"images"}}, {{"channels", first_channels}, {"kernel", 3.0}}},
            {"b", "conv2d", {{"images"}}, {{"channels", 4.0}, {"kernel", second_kernel}}},
            std::move(join),
            {"flat", "flatten", {}, {}},
            {"loss", "squared_error", {{"flat", "labels"}}, {}}};
}

const NodeSpec kAdd{"both", "add", {{"a", "b"}}, {}};
const NodeSpec kConcat{"both", "concat", {{"a", "b", "a"}}, {}};

TEST(Network, JoinsShapesAndCountsAllInputs) {
    const Network sum(joined(kAdd), 2, images_and_labels({1, 5, 5}));
    const std::uint32_t add = sum.index_of("both");
    EXPECT_EQ(sum.node(add).shape, (Shape{2, 4, 3, 3}));
    EXPECT_EQ(sum.node(add).inputs, (std::vector<std::uint32_t>{2, 3}));
    constexpr std::int64_t one = 2 * 4 * 3 * 3;
    EXPECT_EQ(sum.bytes(add).forward, 4 * 3 * one);        // both inputs, the output
    EXPECT_EQ(sum.bytes(add).backward_data, 4 * 3 * one);  // the same of their gradients
    EXPECT_EQ(sum.multiply_accumulates(add).of(TT_TRAIN), 0);

    const Network side(joined(kConcat, 6.0), 2, images_and_labels({1, 5, 5}));
    EXPECT_EQ(side.node(side.index_of("both")).shape, (Shape{2, 16, 3, 3}));
    const Network flat({{"fc", "dense", {}, {{"units", 3.0}}},
                        {"both", "concat", {{"fc", "images"}}, {}},
                        {"loss", "squared_error", {{"both", "labels"}}, {}}},
                       2, images_and_labels({5}));
    const std::uint32_t both = flat.index_of("both");
    EXPECT_EQ(flat.node(both).shape, (Shape{2, 8}));
    EXPECT_EQ(flat.bytes(both).backward_data, 4 * 2 * (8 + 3)) << "nobody needs the images' gradient";
}

TEST(Network, RefusesWrongJoins) {
    EXPECT_EQ(refusal(joined(kAdd, 6.0), 2, {1, 5, 5}),
              "layer 'both' (add) needs inputs of one shape; 'a' gives (2, 6, 3, 3), 'b' gives (2, 4, 3, 3)");
    EXPECT_EQ(refusal(joined(kConcat, 6.0, 5.0), 2, {1, 5, 5}),
              "layer 'both' (concat) needs inputs that differ in nothing but their channels (axis 1); 'a' "
              "gives (2, 6, 3, 3), 'b' gives (2, 4, 1, 1), 'a' gives (2, 6, 3, 3)");
    EXPECT_EQ(refusal(joined({"both", "add", {{"a"}}, {}})),
              "layer 'both' (add) has 1 input ('a'); expected two or more: inputs = [\"...\", \"...\"]");
    EXPECT_WORDS(refusal(joined({"both", "concat", {}, {}})), "has 1 input ('b'); expected two or more");
    EXPECT_WORDS(refusal(joined({"both", "concat", {{}}, {}})), "has 0 inputs; expected two or more");
    EXPECT_WORDS(refusal(joined({"both", "relu", {{"a", "b"}}, {}})), "has 2 inputs ('a', 'b'); expected 1");
    EXPECT_WORDS(refusal(joined({"both", "add", {{"a", "labels"}}, {}})),
                 "are whole numbers: it computes with real ones");
    EXPECT_WORDS(refusal(joined({"both", "concat", {{"a", "b"}}, {{"axis", 1.0}}})),
                 "no attribute 'axis'. This kind has none.");
    EXPECT_WORDS(refusal(joined({"both", "add", {{"a", "a"}}, {}})),
                 "layer 'b' (conv2d) is the input of no other");
    Specs specs = joined(kAdd);
    specs.insert(specs.begin() + 3, {"flatter", "flatten", {{"a"}}, {}});
    specs.insert(specs.begin() + 4, {"mixed", "concat", {{"both", "flatter"}}, {}});
    EXPECT_WORDS(refusal(specs), "'both' gives (64, 4, 26, 26), 'flatter' gives (64, 2704)");
}

TEST(Network, RefusesCycles) {
    Specs specs = joined(kAdd);
    specs[1].inputs = {"both"};
    EXPECT_EQ(
        refusal(specs),
        "layer 'b' (conv2d) takes part in a cycle (b reads both reads b): a network is computed node by "
        "node, so none can wait for its own output");
    specs = joined(kAdd);
    specs[0].inputs = {"flat"};
    EXPECT_WORDS(refusal(specs),
                 "layer 'a' (conv2d) takes part in a cycle (a reads flat reads both reads a)");
    specs = joined(kAdd);
    specs[0].inputs = {"a"};
    EXPECT_WORDS(refusal(specs), "takes part in a cycle (a reads a)");
    specs = joined(kAdd);
    std::swap(specs[1], specs[2]);  // no cycle, only in the wrong order
    EXPECT_EQ(refusal(specs),
              "layer 'both' (add) has the input 'b', which stands behind it: move 'b' in front of it");
}

TEST(CNetwork, SaysTheSameInPlainStructs) {
    const Network network(lenet5(), 64, images_and_labels({1, 28, 28}));
    const std::vector<float> weight(500, 0.5f);
    const CNetwork c_network(network, {{"conv1.weight", weight.data()}});
    const tt_network* c = c_network.get();
    ASSERT_EQ(c->n_nodes, 11u);
    EXPECT_STREQ(c->nodes[0].name, "images");
    EXPECT_EQ(c->nodes[0].output.role, static_cast<std::uint32_t>(TT_INPUT));
    EXPECT_EQ(c->nodes[1].output.dtype, static_cast<std::uint32_t>(TT_I64));
    const tt_node& conv = c->nodes[2];
    EXPECT_STREQ(conv.kind, "conv2d");
    EXPECT_EQ(conv.inputs[0], 0u);
    EXPECT_EQ(conv.output.shape[1], 20);
    EXPECT_STREQ(conv.attributes[1].name, "kernel_h");
    EXPECT_EQ(conv.attributes[1].number, 5.0);
    EXPECT_EQ(conv.attributes[1].text, nullptr);
    ASSERT_EQ(conv.n_parameters, 2u);
    EXPECT_EQ(conv.parameters[0].data, weight.data());
    EXPECT_EQ(conv.parameters[1].data, nullptr);
    EXPECT_STREQ(c->nodes[c->output].name, "fc2");
    EXPECT_STREQ(c->nodes[c->loss].name, "loss");
    for (std::uint32_t i = 0; i < c->n_nodes; ++i) EXPECT_EQ(c->nodes[i].size, sizeof(tt_node));
}

}  // namespace
}  // namespace timetrial
