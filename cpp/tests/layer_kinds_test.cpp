// Kinds of layers: typed attributes, and kinds that are registered.
#include "network/layers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "network/c_network.h"
#include "network/network.h"
#include "support/inputs.h"

namespace timetrial {
namespace {

using timetrial::testing::images_and_labels;
using Specs = std::vector<NodeSpec>;

const NodeSpec kLoss{"loss", "squared_error", {{"x", "labels"}}, {}};

const char* nothing(void*, const tt_layer_call*, double*) { return nullptr; }

// Of flat values, with an attribute of each type.
LayerKind every_type() {
    LayerKind kind;
    kind.name = "every_type";
    kind.attributes = {{"count", AttributeType::kWhole, {}, "", 2},
                       {"slope", AttributeType::kReal, 0.5, "", 0},
                       {"on", AttributeType::kFlag, true},
                       {"form", AttributeType::kWord, "exact", "", 0, {"exact", "fast"}},
                       {"window", AttributeType::kPair, {}, "", 1},
                       {"step", AttributeType::kPair, {}, "window", 1},
                       {"axes", AttributeType::kList, std::vector<double>{}}};
    kind.parameters = [](const LayerView& layer) -> std::vector<Parameter> {
        return {{layer.node.name + ".scale", {layer.input_shape()[1]}, {"ones", 0, 0}, TT_PARAMETER, false},
                {layer.node.name + ".mean", {3}, {}, TT_STATE}};
    };
    auto definition = std::make_shared<Definition>();
    definition->c_form = {sizeof(tt_definition), "every_type", nullptr, nothing, nullptr, nullptr};
    definition->digest = "1";
    kind.definition = definition;
    return kind;
}

Network with(AttributeSpecs attributes) {
    static const bool is_registered = (register_layer_kind(every_type()), true);
    EXPECT_TRUE(is_registered);
    return {{{"x", "every_type", {}, std::move(attributes)}, kLoss}, 2, images_and_labels({4})};
}

std::string refusal(AttributeSpecs attributes) {
    try {
        with(std::move(attributes));
    } catch (const NetworkError& error) {
        return error.what();
    }
    return "no error";
}

#define EXPECT_WORDS(text, words) EXPECT_NE((text).find(words), std::string::npos) << (text)

const AttributeSpecs kLeast{{"count", 2.0}, {"window", 3.0}};

TEST(LayerKinds, ReadAttributesByTheirTypes) {
    const Node least = with(kLeast).node(2);
    EXPECT_EQ(least.whole("count"), 2);
    EXPECT_EQ(std::get<double>(least.attribute("slope")), 0.5);
    EXPECT_EQ(least.whole("on"), 1);
    EXPECT_EQ(std::get<std::string>(least.attribute("form")), "exact");
    EXPECT_EQ(least.whole("window_h"), 3);
    EXPECT_EQ(least.whole("step_w"), 3) << "it follows the window";
    EXPECT_TRUE(std::get<std::vector<double>>(least.attribute("axes")).empty());
    const std::vector<double> axes{2, 0.25};
    const Network network = with({{"count", 7.0},
                                  {"slope", 2.0},
                                  {"on", false},
                                  {"form", "fast"},
                                  {"window", std::vector{3.0, 5.0}},
                                  {"step", 1.0},
                                  {"axes", axes}});
    const Node all = network.node(2);
    EXPECT_EQ(std::get<double>(all.attribute("slope")), 2.0) << "a whole number is a real one too";
    EXPECT_EQ(all.whole("window_w"), 5);
    EXPECT_EQ(all.whole("step_h"), 1);
    EXPECT_EQ(std::get<std::vector<double>>(all.attribute("axes")), axes);
}

TEST(LayerKinds, RefuseAttributesOfOtherTypes) {
    const auto refused = [](const char* key, const AttributeValue& value) {
        AttributeSpecs attributes = kLeast;
        attributes[key] = value;
        return refusal(attributes);
    };
    EXPECT_WORDS(refusal({}), "layer 'x' (every_type) needs 'count', a whole number from 2");
    EXPECT_WORDS(refused("count", 1.0), "count = 1; expected whole numbers from 2");
    EXPECT_WORDS(refused("count", "two"), "count = \"two\"; expected a whole number from 2");
    EXPECT_WORDS(refused("slope", -0.5), "slope = -0.5; expected a number from 0");
    EXPECT_WORDS(refused("slope", true), "slope = true; expected a number from 0");
    EXPECT_WORDS(refused("on", "yes"), "on = \"yes\"; expected true or false");
    EXPECT_WORDS(refused("form", "slow"), "form = \"slow\"; expected \"exact\" or \"fast\"");
    EXPECT_WORDS(refused("form", 1.0), "form = 1; expected \"exact\" or \"fast\"");
    EXPECT_WORDS(refused("axes", 1.0), "axes = 1; expected a list of numbers");
    EXPECT_WORDS(refused("axe", 1.0), "no attribute 'axe'. Did you mean 'axes'?");
}

// As backends get them, and as a job file carries them to a process that knows no such kind.
TEST(LayerKinds, ReachAPluginTyped) {
    AttributeSpecs attributes = kLeast;
    attributes["form"] = "fast";
    attributes["axes"] = std::vector<double>{1, 2};
    const Network known = with(attributes);
    NodeSpec stated{
        "x",
        "unheard_of",
        {{"images"}},
        {},
        StatedNode{{2, 4}, {{"x.scale", {4}, {}, TT_PARAMETER, false}, {"x.mean", {3}, {}, TT_STATE}}, 0}};
    stated.attributes = {{"form", "fast"}, {"axes", std::vector<double>{1, 2}}, {"count", 2.0}};
    const Network told({stated, kLoss}, 2, images_and_labels({4}));
    for (const Network* network : {&known, &told}) {
        const CNetwork c(*network, {});
        const tt_node& node = c.get()->nodes[2];
        ASSERT_EQ(node.n_parameters, 2u);
        EXPECT_EQ(node.parameters[0].role, std::uint32_t{TT_PARAMETER});
        EXPECT_EQ(node.parameters[1].role, std::uint32_t{TT_STATE});
        EXPECT_EQ(node.parameter_flags[0], std::uint32_t{TT_UNDECAYED});
        EXPECT_EQ(node.parameter_flags[1], 0u);
        EXPECT_EQ(network->parameter_count(), 4) << "states are not trained";
        int seen = 0;
        for (std::uint32_t i = 0; i < node.n_attributes; ++i) {
            const tt_attribute& one = node.attributes[i];
            const std::string name = one.name;
            if (name == "form") seen += std::string(one.text) == "fast";
            if (name == "axes") seen += one.n_numbers == 2 && one.numbers[1] == 2;
            if (name == "count") seen += one.number == 2 && one.text == nullptr && one.numbers == nullptr;
        }
        EXPECT_EQ(seen, 3);
        EXPECT_EQ(c.definitions().size(), network == &known ? 1u : 0u);
    }
}

TEST(LayerKinds, AreRegisteredUnderNamesOfTheirOwn) {
    LayerKind kind = every_type();
    kind.name = "relu";
    EXPECT_THROW(register_layer_kind(kind), NetworkError);
    kind.name = "two words";
    EXPECT_THROW(register_layer_kind(kind), NetworkError);
    kind.name = "renewed";
    register_layer_kind(kind);
    const LayerKind* before = find_layer_kind("renewed");
    kind.formula = "another";
    register_layer_kind(kind);
    EXPECT_EQ(find_layer_kind("renewed")->formula, "another");
    EXPECT_EQ(before->formula, "") << "who holds the old one still can";
}

TEST(LayerKinds, MayLookUpWholeNumbers) {
    LayerKind kind;
    kind.name = "looked_up";
    kind.attributes = {{"rows", AttributeType::kWhole, {}, "", 1}};
    kind.infer_shape = [](const LayerView& layer) -> Shape { return {layer.input_shape()[0], 3}; };
    kind.integers_below = [](const LayerView& layer) { return layer.node.whole("rows"); };
    kind.definition = every_type().definition;
    register_layer_kind(kind);
    const std::vector<InputSpec> inputs{{"words", TT_I64, {5}}, {"labels", TT_I64, {}, TT_TARGET}};
    const Network network({{"x", "looked_up", {{"words"}}, {{"rows", 7.0}}}, kLoss}, 2, inputs);
    EXPECT_EQ(network.values_below(0), 7);
    EXPECT_EQ(network.values_below(1), 3) << "labels are classes still";
}

}  // namespace
}  // namespace timetrial
