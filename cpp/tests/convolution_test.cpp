// The setting `convolution` of the backends over the layers engine: each algorithm against reference, in
// every direction, for extents that fit nothing; and that it is obeyed.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <ostream>

#include "support/against_reference.h"
#include "support/pools.h"

namespace timetrial::testing {
namespace {

const auto* const kEndsPools = ::testing::AddGlobalTestEnvironment(new EndsPools);

using Pair = std::vector<double>;
using Settings = std::map<std::string, std::string>;

Settings settings_of(const std::string& plugin, const std::string& algorithm, const std::string& threads) {
    Settings settings{{"threads", threads}, {"convolution", algorithm}};
    if (plugin.starts_with("cblas")) settings["blas.library"] = test_blas();
    return settings;
}

std::map<std::string, std::string> facts_of(Trainer& trainer) {
    std::map<std::string, std::string> found;
    for (const Fact& fact : trainer.context().facts()) found[fact.name] = fact.value;
    return found;
}

std::vector<std::string> plugins() {
    std::vector<std::string> all = variants_of("eigen");
    all.push_back(variants_of("cblas").front());
    return all;
}

// A convolution in the middle, whose three directions are all computed.
std::vector<NodeSpec> in_the_middle(const AttributeSpecs& attributes) {
    return {node("first", "conv2d", {{"channels", 3.0}, {"kernel", 1.0}}),
            node("middle", "conv2d", attributes), node("flat", "flatten"), loss_of("flat", "squared_error")};
}

// A plug-in and an algorithm.
using Way = std::pair<std::string, std::string>;

class Algorithms : public ::testing::TestWithParam<Way> {
  protected:
    Trainer make(const Problem& problem, const std::string& threads) const {
        const auto& [plugin, algorithm] = GetParam();
        return Trainer(plugin_path(plugin), problem, settings_of(plugin, algorithm, threads));
    }

    Trainer expect_gradient(const Problem& problem, const std::string& threads) const {
        Trainer ours = make(problem, threads), judge(plugin_path("reference"), problem);
        ours.step(TT_GRADIENT);
        judge.step(TT_GRADIENT);
        expect_same(ours, judge, TT_ROLE_GRADIENT, 5e-6);
        return ours;
    }

    // Real numbers: the transforms round. Within what timetrial allows a gradient in f32, by a factor of
    // four.
    void expect_close(const AttributeSpecs& attributes, const Shape& input, std::int64_t batch) const {
        for (const char* threads : {"1", "2", "5"}) {
            const Problem problem(in_the_middle(attributes), batch, input, Numbers::kReal);
            Trainer ours = make(problem, threads);
            Trainer judge(plugin_path("reference"), problem);
            ours.step(TT_GRADIENT);
            judge.step(TT_GRADIENT);
            expect_same(ours, judge, TT_ACTIVATION, 5e-6);
            expect_same(ours, judge, TT_ROLE_GRADIENT, 5e-6);
            for (const auto& direction : {"forward", "backward_data", "backward_weights"})
                EXPECT_EQ(facts_of(ours).at("middle " + std::string(direction)), GetParam().second);
        }
    }
};

std::vector<Way> ways_of(const std::string& algorithm) {
    std::vector<Way> all;
    for (const std::string& plugin : plugins()) all.emplace_back(plugin, algorithm);
    return all;
}

std::string name_of(std::string name) {
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}
const auto kPlugin = [](const auto& test) { return name_of(test.param.first); };
INSTANTIATE_TEST_SUITE_P(Im2col, Algorithms, ::testing::ValuesIn(ways_of("im2col")), kPlugin);
INSTANTIATE_TEST_SUITE_P(Winograd, Algorithms, ::testing::ValuesIn(ways_of("winograd")), kPlugin);
INSTANTIATE_TEST_SUITE_P(Direct, Algorithms, ::testing::ValuesIn(ways_of("direct")), kPlugin);

TEST_P(Algorithms, WholeTiles) {
    expect_close({{"channels", 16.0}, {"kernel", 3.0}, {"padding", 1.0}}, {2, 8, 8}, 4);
}

TEST_P(Algorithms, OddExtentsAndChannels) {
    expect_close({{"channels", 7.0}, {"kernel", 3.0}, {"padding", 1.0}}, {2, 9, 13}, 3);
    expect_close({{"channels", 37.0}, {"kernel", 3.0}}, {5, 7, 6}, 2);
    expect_close({{"channels", 1.0}, {"kernel", 3.0}, {"bias", false}}, {1, 5, 3}, 2);
}

TEST_P(Algorithms, Paddings) {
    for (const auto& padding : {Pair{0, 0}, Pair{0, 1}, Pair{2, 0}, Pair{1, 2}, Pair{2, 2}})
        expect_close({{"channels", 5.0}, {"kernel", 3.0}, {"padding", padding}}, {2, 6, 11}, 2);
    expect_close({{"channels", 5.0}, {"kernel", 3.0}, {"padding", "same"}}, {2, 4, 4}, 3);
}

TEST_P(Algorithms, OneImageAndOnePixel) {
    expect_close({{"channels", 6.0}, {"kernel", 3.0}, {"padding", 1.0}}, {2, 10, 10}, 1);
    expect_close({{"channels", 6.0}, {"kernel", 3.0}, {"padding", 1.0}}, {2, 1, 1}, 2);
    expect_close({{"channels", 6.0}, {"kernel", 3.0}}, {2, 3, 3}, 2);
}

// An image is cut into blocks of rows, and many small ones make a block.
TEST_P(Algorithms, LargeImagesAndManySmallOnes) {
    expect_close({{"channels", 40.0}, {"kernel", 3.0}, {"padding", 1.0}}, {2, 70, 66}, 1);
    expect_close({{"channels", 9.0}, {"kernel", 3.0}, {"padding", 1.0}}, {2, 5, 5}, 150);
}

// Two layers read one value, so the second adds its gradient to that of the first.
TEST_P(Algorithms, AddsToAGradient) {
    const auto conv = [](const char* name, const char* input) {
        NodeSpec made = node(name, "conv2d", {{"channels", 4.0}, {"kernel", 3.0}, {"padding", 1.0}});
        made.inputs = {input};
        return made;
    };
    NodeSpec sum = node("sum", "add");
    sum.inputs = {"left", "right"};
    const std::vector<NodeSpec> specs{node("first", "conv2d", {{"channels", 4.0}, {"kernel", 1.0}}),
                                      conv("left", "first"),
                                      conv("right", "first"),
                                      sum,
                                      node("flat", "flatten"),
                                      loss_of("flat", "squared_error")};
    const Problem problem(specs, 3, {2, 9, 7}, Numbers::kReal);
    expect_gradient(problem, "2");
}

TEST_P(Algorithms, TwoRunsAreEqualBitForBit) {
    const Problem problem(in_the_middle({{"channels", 20.0}, {"kernel", 3.0}}), 5, {2, 9, 9}, Numbers::kReal);
    Trainer first = make(problem, "2"), second = make(problem, "2");
    for (int step = 0; step < 3; ++step) EXPECT_EQ(first.step(), second.step());
    EXPECT_EQ(first.read(TT_PARAMETER), second.read(TT_PARAMETER));
}

TEST_P(Algorithms, NanReachesTheLoss) {
    Problem problem(in_the_middle({{"channels", 8.0}, {"kernel", 3.0}}), 2, {2, 8, 8}, Numbers::kReal);
    problem.images[5] = NAN;
    EXPECT_TRUE(std::isnan(make(problem, "1").step()));
}

class Im2col : public Algorithms {};
INSTANTIATE_TEST_SUITE_P(Plugins, Im2col, ::testing::ValuesIn(ways_of("im2col")), kPlugin);

// What the threads have is summed in squares that lie in one group each; five threads share 63 channels.
TEST_P(Im2col, GroupsThatNoSquareFits) {
    const std::vector<NodeSpec> specs{
        node("first", "conv2d", {{"channels", 27.0}, {"kernel", 1.0}}),
        node("middle", "conv2d", {{"channels", 63.0}, {"kernel", 3.0}, {"groups", 3.0}}),
        node("flat", "flatten"), loss_of("flat", "squared_error")};
    const Problem problem(specs, 5, {3, 6, 7}, Numbers::kReal);
    Trainer ours = expect_gradient(problem, "5");
    EXPECT_EQ(facts_of(ours).at("middle backward_weights"), "im2col");
}

class Direct : public Algorithms {};
INSTANTIATE_TEST_SUITE_P(Plugins, Direct, ::testing::ValuesIn(ways_of("direct")), kPlugin);

// It only sums, so integers come out exact.
TEST_P(Direct, OtherKernelsAreExact) {
    const MakeTrainer maker = [this](const Problem& problem, const SgdSpec&) { return make(problem, "2"); };
    const auto exact = [&](const AttributeSpecs& attributes, const Shape& input) {
        expect_exact(maker, node("middle", "conv2d", attributes), input);
    };
    exact({{"channels", 8.0}, {"kernel", 5.0}, {"padding", 2.0}}, {1, 8, 8});
    exact({{"channels", 8.0}, {"kernel", Pair{2, 4}}, {"padding", Pair{1, 3}}}, {2, 7, 5});
    exact({{"channels", 4.0}, {"kernel", 1.0}}, {3, 8, 4});
    exact({{"channels", 2.0}, {"kernel", Pair{1, 4}}, {"padding", Pair{0, 3}}}, {2, 4, 1});
}

// ---- that the setting is obeyed

class ConvolutionSetting : public ::testing::TestWithParam<std::string> {
  protected:
    Trainer make(const Problem& problem, const std::string& algorithm) const {
        return Trainer(plugin_path(GetParam()), problem, settings_of(GetParam(), algorithm, "1"));
    }
};
INSTANTIATE_TEST_SUITE_P(Plugins, ConvolutionSetting,
                         ::testing::Values(variants_of("eigen").front(), variants_of("cblas").front()),
                         [](const auto& test) { return name_of(test.param); });

// Another algorithm rounds otherwise: were the setting ignored, the bits would be the same.
TEST_P(ConvolutionSetting, ChangesTheBitsAndNothingElse) {
    const Problem problem(in_the_middle({{"channels", 16.0}, {"kernel", 3.0}}), 4, {2, 12, 12},
                          Numbers::kReal);
    Trainer plain = make(problem, "im2col");
    plain.step(TT_GRADIENT);
    for (const char* algorithm : {"direct", "winograd"}) {
        Trainer other = make(problem, algorithm);
        other.step(TT_GRADIENT);
        EXPECT_NE(plain.read(TT_ROLE_GRADIENT), other.read(TT_ROLE_GRADIENT)) << algorithm;
        for (const tt_role role : {TT_ACTIVATION, TT_ROLE_GRADIENT}) expect_same(other, plain, role, 5e-6);
        EXPECT_EQ(other.context().read_setting("convolution").effective, algorithm);
        EXPECT_EQ(facts_of(other).at("middle backward_data"), algorithm);
    }
    EXPECT_EQ(plain.context().read_setting("convolution").effective, "im2col");
    EXPECT_EQ(facts_of(plain).at("middle forward"), "im2col");
}

// What the algorithm cannot do is done by im2col, and both the facts and the setting say so.
TEST_P(ConvolutionSetting, SaysWhereItDoesNotApply) {
    for (const AttributeSpecs& other : {AttributeSpecs{{"channels", 8.0}, {"kernel", 5.0}},
                                        AttributeSpecs{{"channels", 8.0}, {"kernel", 3.0}, {"stride", 2.0}},
                                        AttributeSpecs{{"channels", 8.0}, {"kernel", 3.0}, {"padding", 3.0}},
                                        AttributeSpecs{{"channels", 8.0}, {"kernel", Pair{3, 1}}}}) {
        const Problem problem(in_the_middle(other), 2, {2, 9, 9}, Numbers::kReal);
        Trainer trainer = make(problem, "winograd");
        EXPECT_EQ(facts_of(trainer).at("middle forward"), "im2col");
        EXPECT_EQ(trainer.context().read_setting("convolution").effective, "im2col");
    }
    const Problem without(mlp(), 4, {1, 4, 4}, Numbers::kReal);
    Trainer trainer = make(without, "winograd");
    EXPECT_THROW(trainer.context().read_setting("convolution"), BackendError);
}

// Few channels or few tiles leave Winograd's filtering nothing to gain.
TEST_P(ConvolutionSetting, DefaultGoesByShape) {
    const std::vector<NodeSpec> specs{
        node("thin", "conv2d", {{"channels", 7.0}, {"kernel", 3.0}, {"padding", 1.0}}),
        node("few", "conv2d", {{"channels", 32.0}, {"kernel", 3.0}, {"padding", 1.0}}),
        node("many", "conv2d", {{"channels", 16.0}, {"kernel", 3.0}, {"padding", 1.0}}),
        node("pool", "max_pool2d", {{"kernel", 16.0}}),
        node("small", "conv2d", {{"channels", 16.0}, {"kernel", 3.0}, {"padding", 1.0}}),
        node("flat", "flatten"),
        loss_of("flat", "squared_error")};
    const Problem problem(specs, 4, {3, 32, 32}, Numbers::kReal);
    Trainer trainer(plugin_path(GetParam()), problem, [&] {
        Settings settings = settings_of(GetParam(), "", "1");
        settings.erase("convolution");
        return settings;
    }());
    const auto facts = facts_of(trainer);
    EXPECT_EQ(facts.at("thin forward"), "direct");
    EXPECT_EQ(facts.at("few forward"), "im2col");
    EXPECT_EQ(facts.at("many forward"), "winograd");
    EXPECT_EQ(facts.at("small forward"), "im2col");
    EXPECT_FALSE(facts.contains("thin backward_data"));  // nobody needs it
    EXPECT_EQ(trainer.context().read_setting("convolution").effective, "by_shape");
}

TEST_P(ConvolutionSetting, TrialTellsItsTimes) {
    const Problem problem(in_the_middle({{"channels", 32.0}, {"kernel", 3.0}}), 8, {2, 40, 40},
                          Numbers::kReal);
    Trainer trainer = make(problem, "auto");
    const auto facts = facts_of(trainer);
    const std::string trial = facts.at("middle forward trial");
    EXPECT_NE(trial.find("im2col"), std::string::npos);
    EXPECT_NE(trial.find(facts.at("middle forward")), std::string::npos);
    EXPECT_NE(trial.find("(chosen)"), std::string::npos);
    EXPECT_EQ(trainer.context().read_setting("convolution").effective, "auto");
    Trainer judge(plugin_path("reference"), problem);  // the trial has left nothing behind
    judge.step();
    trainer.step();
    expect_same(trainer, judge, TT_PARAMETER, 1e-5);
}

TEST_P(ConvolutionSetting, RefusesOthers) {
    const Problem problem(mlp(), 4, {1, 4, 4}, Numbers::kReal);
    for (const char* value : {"fft", "", "Winograd"}) {
        try {
            make(problem, value);
            ADD_FAILURE() << value;
        } catch (const BackendError& error) {
            EXPECT_NE(std::string(error.what()).find("winograd"), std::string::npos) << error.what();
        }
    }
}

}  // namespace
}  // namespace timetrial::testing
