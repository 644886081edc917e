// onednn against reference: bit for bit on small integers, within rounding on real numbers; what it says
// about itself; and what it refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "support/against_reference.h"
#include "support/joined.h"
#include "support/normalized.h"
#include "support/onednn.h"
#include "support/passing.h"
#include "support/pools.h"
#include "support/recomputed.h"
#include "support/sequences.h"

namespace timetrial::testing {
namespace {

const auto* const kEndsPools = ::testing::AddGlobalTestEnvironment(new EndsPools);

class OneDnn : public ::testing::TestWithParam<const char*> {
  protected:
    MakeTrainer make(std::map<std::string, std::string> settings = {}) const {
        settings["threads"] = GetParam();
        return [settings](const Problem& problem, const SgdSpec& sgd) {
            return Trainer(onednn(), problem, settings, sgd);
        };
    }
    void exact(const NodeSpec& middle, const Shape& input, std::int64_t batch = 4,
               double channels = 2) const {
        expect_exact(make(), middle, input, batch, channels);
    }
};

INSTANTIATE_TEST_SUITE_P(Threads, OneDnn, ::testing::Values("1", "2"));

std::map<std::string, std::string> facts_of(Trainer& trainer) {
    std::map<std::string, std::string> found;
    for (const Fact& fact : trainer.context().facts()) found[fact.name] = fact.value;
    return found;
}

using Pair = std::vector<double>;

// ---- normalization

TEST_P(OneDnn, Normalizes) {
    for (const double channels : {5.0, 16.0})
        for (const char* recompute : {"on", "off"})
            expect_normalized(make({{"recompute", recompute}}), channels);
}
TEST_P(OneDnn, StatisticsAreExact) {
    for (const double channels : {6.0, 16.0, 24.0}) expect_exact_statistics(make(), channels);
}
TEST_P(OneDnn, GoesAlongTime) {
    if (std::string(GetParam()) == "1") return expect_sequences(make(), TT_F32);
    // Threads meet several times in each step, and wait long where the machine is busy: one step of it.
    const Problem problem(text_classifier(9, 7), tokens_and_labels(2), 4, Numbers::kReal);
    Trainer ours = make()(problem, {}), judge(plugin_path("reference"), problem);
    EXPECT_NEAR(ours.step(TT_GRADIENT), judge.step(TT_GRADIENT), 5e-6);
    expect_same(ours, judge, TT_ROLE_GRADIENT, 5e-6);
}
TEST_P(OneDnn, ReadsMapsRowByRow) { expect_maps_as_sequences(make(), 1e-5); }
TEST_P(OneDnn, CarriesStates) {
    if (std::string(GetParam()) == "1") return expect_carried_states(make());
    expect_carried_states(make(), TT_F32, {7});  // threads meet often: of one width
}
TEST_P(OneDnn, RecomputesWhatItNormalizes) {
    expect_recomputed(make({{"recompute", "on"}}), 24.0, 5.0);
    expect_recomputed(make({{"recompute", "on"}}), 6.0, 16.0);
    // Threads meet in each of many layers, and share the memory: of one thread it is the same.
    if (std::string(GetParam()) == "1") expect_one_value_a_block(make({{"recompute", "on"}}));
}
TEST_P(OneDnn, KeepsNoGradientsThatItUsesAtOnce) {
    expect_memory_of_no_gradients(make());
    expect_memory_given_back(make());
    expect_gradients_between_steps(make(), 1e-5);  // each build tries its kernels
}
// It costs time there: only where much is saved, unless it is asked.
TEST_P(OneDnn, KeepsWhatIsSmall) {
    expect_kept(make());
    expect_kept(make({{"recompute", "off"}}));
    if (std::string(GetParam()) != "1") return;
    const Problem large(
        {plain_conv("first", 64.0, {{"kernel", 1.0}}), node("norm", "batch_norm"),
         plain_conv("last", 2.0, {{"kernel", 1.0}}), node("pool", "global_avg_pool2d"), loss_of("pool")},
        8, {1, 256, 257}, Numbers::kIntegers);
    Trainer trainer = make()(large, {});
    EXPECT_EQ(trainer.context().read_setting("recompute").effective, "on");
    EXPECT_EQ(facts_of(trainer).at("recomputed"), "1 values, 128 MB");
}
TEST_P(OneDnn, EachKindIsRight) { expect_each_kind(make()); }

// One primitive does both, so the value between them is nowhere; a relu that is not the only reader stays
// alone.
TEST_P(OneDnn, AppliesAReluWithTheNorm) {
    const auto has_its_own = [&](const std::string& kind, bool is_read_twice) {
        std::vector<NodeSpec> specs{node("conv", "conv2d", {{"channels", 16.0}, {"kernel", 3.0}}),
                                    node("norm", "batch_norm"), node("next", kind)};
        if (is_read_twice) specs.push_back(node_of({"norm", "next"}, "sum", "add"));
        specs.insert(specs.end(), {node("pool", "global_avg_pool2d"), loss_of("pool")});
        const Problem problem(specs, 4, {3, 8, 8}, Numbers::kReal);
        Trainer trainer = make()(problem, {});
        trainer.step(TT_GRADIENT);
        // The norm's output can be read only where somebody else reads it as well.
        EXPECT_EQ(trainer.read(TT_ACTIVATION).contains("norm"), is_read_twice);
        return facts_of(trainer).contains("next forward");
    };
    EXPECT_FALSE(has_its_own("relu", false));
    EXPECT_TRUE(has_its_own("relu", true));
    EXPECT_TRUE(has_its_own("tanh", false));
}

// ---- exact

TEST_P(OneDnn, DenseIsExact) {
    expect_step(
        make(),
        {node("first", "dense", {{"units", 9.0}}), node("second", "dense", {{"units", 8.0}, {"bias", false}}),
         loss_of("second", "squared_error")},
        {7}, 4, Numbers::kIntegers, 0);
    expect_step(make(), {node("only", "dense", {{"units", 512.0}}), loss_of("only", "squared_error")}, {33},
                8, Numbers::kIntegers, 0);
}

// So large that its gradient is made in parts, each of which is used at once where a step trains.
TEST_P(OneDnn, LargeDenseIsExact) {
    const std::vector<NodeSpec> specs{node("only", "dense", {{"units", 2048.0}}),
                                      loss_of("only", "squared_error")};
    expect_step(make(), specs, {1056}, 4, Numbers::kIntegers, 0);
    Trainer trainer = make()(Problem(specs, 4, {1056}, Numbers::kIntegers), {});
    const auto facts = facts_of(trainer);
    if (facts.at("onednn.isa") != "avx2") return;
    EXPECT_TRUE(facts.contains("only backward_weights parts"));
}

// Over images that still lie in the format of the convolution.
TEST_P(OneDnn, DenseOverImagesIsExact) {
    for (const double channels : {1.0, 3.0, 16.0, 20.0})
        expect_step(
            make(),
            {node("conv", "conv2d", {{"channels", channels}, {"kernel", 3.0}}), node("flat", "flatten"),
             node("fc", "dense", {{"units", 8.0}}), loss_of("fc", "squared_error")},
            {2, 6, 5}, 4, Numbers::kIntegers, 0);
}

TEST_P(OneDnn, Conv2dIsExact) {
    exact(node("middle", "conv2d", {{"channels", 4.0}, {"kernel", Pair{3, 2}}}), {3, 6, 5});
    exact(node("middle", "conv2d", {{"channels", 8.0}, {"kernel", 5.0}, {"bias", false}}), {1, 8, 20}, 8);
    exact(node("middle", "conv2d", {{"channels", 64.0}, {"kernel", 3.0}}), {3, 6, 6}, 4, 17);
    exact(node("middle", "conv2d", {{"channels", 32.0}, {"kernel", 3.0}, {"padding", "same"}}), {1, 8, 8}, 4,
          20);
    exact(node("middle", "conv2d", {{"channels", 1.0}, {"kernel", 3.0}}), {3, 6, 6}, 4, 1);
}

TEST_P(OneDnn, Conv2dStrideAndPaddingIsExact) {
    exact(node("middle", "conv2d",
               {{"channels", 4.0}, {"kernel", 3.0}, {"stride", Pair{2, 3}}, {"padding", Pair{1, 2}}}),
          {2, 7, 8});
    exact(node("middle", "conv2d", {{"channels", 4.0}, {"kernel", 3.0}, {"padding", "same"}}), {2, 8, 4});
    exact(node("middle", "conv2d", {{"channels", 2.0}, {"kernel", Pair{1, 4}}, {"padding", Pair{0, 3}}}),
          {2, 4, 1});
}

TEST_P(OneDnn, Convolutions) { expect_convolutions(make()); }

// oneDNN has no fast weight gradient of images of 2 x 2 pixels below AVX-512: a product is there that has.
TEST_P(OneDnn, ConvolutionsOfSmallImagesAreExact) {
    for (const bool bias : {true, false}) {
        const auto conv = node("middle", "conv2d",
                               {{"channels", 128.0}, {"kernel", 3.0}, {"padding", "same"}, {"bias", bias}});
        exact(conv, {64, 2, 2}, 16, 64);
        const Problem problem({conv, node("pool", "global_avg_pool2d"), loss_of("pool")}, 16, {64, 2, 2},
                              Numbers::kIntegers);
        Trainer trainer = make()(problem, {});
        const auto facts = facts_of(trainer);
        if (facts.at("onednn.isa") != "avx2") continue;
        // Which is the fastest of those that are tried is the machine's business.
        EXPECT_NE(facts.at("middle backward_weights trial").find("unfolded:sgemm"), std::string::npos);
    }
}

// Plain images, which the library makes of few channels and our own loops everywhere, are turned for pooling.
// Real numbers pass no relu and no maximum, whose decisions rounding could turn.
TEST_P(OneDnn, HandsOnNoPlainImages) {
    const auto expect_none = [&](const std::vector<NodeSpec>& specs, Numbers numbers, double tolerance) {
        expect_step(make(), specs, {3, 39, 39}, 4, numbers, tolerance);
        const Problem problem(specs, 4, {3, 39, 39}, numbers);
        Trainer trainer = make()(problem, {});
        EXPECT_FALSE(facts_of(trainer).at("pool forward").ends_with(" abcd -> abcd"));
    };
    const AttributeSpecs window{{"kernel", 3.0}, {"stride", 2.0}};
    const NodeSpec mean = node("mean", "global_avg_pool2d"), loss = loss_of("mean", "squared_error");
    const NodeSpec conv =
        node("conv", "conv2d", {{"channels", 64.0}, {"kernel", 11.0}, {"stride", 4.0}, {"padding", 2.0}});
    expect_none({conv, node("next", "relu"), node("pool", "max_pool2d", window), mean, loss},
                Numbers::kIntegers, 0);
    const NodeSpec lrn = node("lrn", "local_response_norm", {{"size", 5.0}, {"alpha", 0.5}, {"k", 2.0}});
    expect_none({conv, lrn, node("pool", "avg_pool2d", window), mean, loss}, Numbers::kReal, 4e-6);
}

// Integers make many ties: the first maximum must win everywhere.
TEST_P(OneDnn, MaxPoolIsExact) {
    for (const double channels : {1.0, 2.0, 16.0, 32.0})
        exact(node("middle", "max_pool2d", {{"kernel", 2.0}}), {2, 8, 8}, 4, channels);
    exact(node("middle", "max_pool2d", {{"kernel", 2.0}}), {2, 9, 9});  // a row and a column dropped
    exact(node("middle", "max_pool2d", {{"kernel", Pair{3, 2}}, {"stride", Pair{1, 2}}}), {1, 6, 8});
    exact(node("middle", "max_pool2d", {{"kernel", 3.0}, {"stride", 2.0}, {"padding", 1.0}}), {2, 8, 8});
}

TEST_P(OneDnn, AveragePoolIsExact) {
    exact(node("middle", "avg_pool2d", {{"kernel", 2.0}}), {2, 8, 8});
    exact(node("middle", "avg_pool2d", {{"kernel", 2.0}}), {2, 9, 9});
    exact(node("middle", "avg_pool2d", {{"kernel", Pair{2, 4}}, {"stride", 2.0}, {"padding", Pair{1, 2}}}),
          {2, 6, 6});
    exact(node("middle", "avg_pool2d", {{"kernel", 2.0}, {"padding", 1.0}}), {2, 6, 6}, 4, 16);
}

TEST_P(OneDnn, ReluIsExact) { exact(node("middle", "relu"), {2, 4, 4}); }

// A relu in front of max pooling gives its gradient at the pooled size. Windows without a positive value, and
// ties, must come out as in the reference.
TEST_P(OneDnn, ReluBeforeMaxPoolIsExact) {
    for (const double channels : {2.0, 16.0})
        expect_step(make(),
                    {node("conv", "conv2d", {{"channels", channels}, {"kernel", 3.0}}), node("relu", "relu"),
                     node("pool", "max_pool2d", {{"kernel", 2.0}}), node("flat", "flatten"),
                     loss_of("flat", "squared_error")},
                    {1, 10, 10}, 4, Numbers::kIntegers, 0);
}

// An activation that follows no primitive which could apply it.
TEST_P(OneDnn, ReluBehindPoolingIsExact) {
    expect_step(make(),
                {node("conv", "conv2d", {{"channels", 4.0}, {"kernel", 3.0}}),
                 node("pool", "max_pool2d", {{"kernel", 2.0}}), node("relu", "relu"), node("twice", "relu"),
                 node("flat", "flatten"), node("flatrelu", "relu"), loss_of("flatrelu", "squared_error")},
                {1, 10, 10}, 4, Numbers::kIntegers, 0);
}

TEST_P(OneDnn, JoinsAreExact) { expect_exact_joins(make()); }
TEST_P(OneDnn, FansOutAndJoins) { expect_joined(make()); }

TEST(OneDnnThreads, MoreThanImages) {
    const MakeTrainer make = [](const Problem& problem, const SgdSpec& sgd) {
        return Trainer(onednn(), problem, {{"threads", "5"}}, sgd);
    };
    expect_exact(make, node("middle", "conv2d", {{"channels", 4.0}, {"kernel", 3.0}}), {2, 6, 6}, 1);
}

// ---- real numbers: relative L2 <= 1e-6 * max(1, sqrt(K) / 10), K the longest sum

TEST_P(OneDnn, ActivationsAndLosses) {
    for (const char* kind : {"tanh", "sigmoid", "relu"}) {
        for (const char* loss : {"softmax_cross_entropy", "squared_error"}) {
            expect_step(make(),
                        {node("first", "dense", {{"units", 30.0}}), node("middle", kind),
                         node("last", "dense", {{"units", 10.0}}), loss_of("last", loss)},
                        {20}, 13, Numbers::kReal, 1e-6);
        }
    }
}

TEST_P(OneDnn, RealConvolutions) {
    const double sum = 64 * 10 * 10;  // of the weight gradient
    expect_step(
        make(),
        {node("conv1", "conv2d", {{"channels", 6.0}, {"kernel", 5.0}, {"padding", 2.0}}),
         node("pool1", "avg_pool2d", {{"kernel", 3.0}, {"stride", 2.0}, {"padding", 1.0}}),
         node("tanh1", "tanh"),
         node("conv2", "conv2d", {{"channels", 7.0}, {"kernel", 3.0}, {"stride", 2.0}, {"padding", 1.0}}),
         node("sigmoid2", "sigmoid"), node("flat", "flatten"), node("fc", "dense", {{"units", 10.0}}),
         loss_of("fc")},
        {3, 20, 20}, 16, Numbers::kReal, 1e-6 * std::sqrt(sum) / 10);
}

TEST_P(OneDnn, LeNet5Trains) { expect_training(make(), lenet5(), {0.02, 0.9, 0.0}); }
TEST_P(OneDnn, MlpTrains) { expect_training(make(), mlp(), {0.02, 0.9, 0.001}); }

// ---- what a plug-in promises besides arithmetic

TEST_P(OneDnn, TwoRunsAreEqualBitForBit) {
    const Problem problem(lenet5(), 7, {1, 28, 28}, Numbers::kReal);
    Trainer trainer = make()(problem, {});
    std::vector<double> losses;
    for (int step = 0; step < 5; ++step) losses.push_back(trainer.step());
    const auto parameters = trainer.read(TT_PARAMETER);
    trainer.context().reset();
    for (int step = 0; step < 5; ++step) EXPECT_EQ(trainer.step(), losses[static_cast<std::size_t>(step)]);
    EXPECT_EQ(trainer.read(TT_PARAMETER), parameters);
}

TEST_P(OneDnn, PartsMakeTheSameStep) {
    const Problem problem(lenet5(), 6, {1, 28, 28}, Numbers::kReal);
    Trainer trainer = make()(problem, {0.02, 0.9, 0.01});
    std::vector<double> losses;
    for (int step = 0; step < 3; ++step) losses.push_back(trainer.step());
    const auto parameters = trainer.read(TT_PARAMETER);
    trainer.context().reset();
    for (int step = 0; step < 3; ++step) {
        trainer.part(TT_PART_FORWARD);
        EXPECT_EQ(trainer.part(TT_PART_LOSS), losses[static_cast<std::size_t>(step)]);
        trainer.part(TT_PART_BACKWARD);
        trainer.part(TT_PART_UPDATE);
    }
    EXPECT_EQ(trainer.read(TT_PARAMETER), parameters);
}

// Whatever the format inside, what is written is what is read and what is used.
TEST_P(OneDnn, TensorsGoInAndOut) {
    const Problem problem(lenet5(), 5, {1, 28, 28}, Numbers::kReal);
    Trainer first = make()(problem, {}), second = make()(problem, {});
    first.step();
    first.step();
    for (const tt_role role : {TT_PARAMETER, TT_OPTIMIZER}) {
        for (const auto& [name, values] : first.read(role)) second.write(role, name, values);
        EXPECT_EQ(second.read(role), first.read(role));
    }
    EXPECT_LE(relative_l2({second.step()}, {first.step()}), 1e-6);
    EXPECT_THROW(second.write(TT_ACTIVATION, "fc2", std::vector<double>(50)), BackendError);
}

TEST_P(OneDnn, ReadsItsSettingsBack) {
    const Problem problem(mlp(), 4, {1, 4, 4}, Numbers::kReal);
    Trainer trainer(onednn(), problem, {{"threads", GetParam()}, {"parallel", "product"}});
    EXPECT_EQ(trainer.context().read_setting("threads").effective, GetParam());
    EXPECT_EQ(trainer.context().read_setting("parallel").effective, "product");
}

TEST_P(OneDnn, RefusesBadInput) {
    const Problem problem(mlp(), 4, {1, 4, 4}, Numbers::kReal);
    const std::map<std::string, std::vector<std::string>> bad{
        {"threads", {"0", "-1", "two", "1.5", ""}}, {"parallel", {"images", ""}}, {"blas.library", {"mkl"}}};
    for (const auto& [name, values] : bad)
        for (const std::string& value : values)
            EXPECT_THROW(Trainer(onednn(), problem, {{name, value}}), BackendError) << name << "=" << value;
    Trainer trainer = make()(problem, {});
    trainer.labels[2] = -1;
    EXPECT_THROW(trainer.step(), BackendError);
    EXPECT_TRUE(std::isnan(trainer.step(TT_FORWARD)));  // labels are not looked at
}

// An embedding's weight is rows of numbers; over images oneDNN wants channels, rows and columns.
TEST_P(OneDnn, RefusesATiedWeightOverImages) {
    const std::vector<InputSpec> inputs{{"tokens", TT_I64, {4}, TT_INPUT},
                                        {"images", TT_F32, {2, 6, 5}, TT_INPUT},
                                        {"labels", TT_I64, {}, TT_TARGET}};
    const Problem problem(
        {node_of("embed", "embedding", {"tokens"}, {{"vocabulary", 7.0}, {"units", 36.0}}),
         node_of("mean", "mean_over_time", {"embed"}), node_of("own", "dense", {"mean"}, {{"units", 7.0}}),
         node_of("conv", "conv2d", {"images"}, {{"channels", 3.0}, {"kernel", 3.0}}),
         node_of("flat", "flatten", {"conv"}),
         node_of("scores", "tied_dense", {"flat"}, {{"units", 7.0}, {"tied", std::string("embed")}}),
         node_of("both", "add", {"own", "scores"}), loss_of("both")},
        inputs, 4, Numbers::kReal);
    try {
        make()(problem, {});
        FAIL() << "built";
    } catch (const BackendError& error) {
        EXPECT_EQ(
            std::string(error.what()),
            "layer 'scores' has the weight of an embedding and reads images: the backend has none such");
    }
}

// ---- what it says about itself

TEST(OneDnnFacts, NameTheImplementations) {
    const Problem problem(lenet5(), 64, {1, 28, 28}, Numbers::kReal);
    Trainer trainer(onednn(), problem, {{"threads", "1"}});
    const auto facts = facts_of(trainer);
    EXPECT_TRUE(facts.at("onednn.version").starts_with("3."));
    EXPECT_FALSE(facts.at("onednn.isa").empty());
    EXPECT_NE(facts.at("layout").find("(chosen)"), std::string::npos);
    for (const char* node : {"conv1", "conv2", "fc1", "fc2"})
        for (const char* direction : {" forward", " backward_weights"})
            EXPECT_EQ(facts.at(std::string(node) + direction).find("ref"), std::string::npos) << node;
    EXPECT_TRUE(facts.contains("conv2 backward_data"));
    EXPECT_FALSE(facts.contains("conv1 backward_data"));  // nobody needs it
    const auto named = std::count_if(facts.begin(), facts.end(),
                                     [](const auto& fact) { return fact.first.starts_with("reorder "); });
    EXPECT_EQ(facts.at("reorders per step"), std::to_string(named));
}

// Times to three digits of several directions: two trials would hardly report the same. A pair of channels
// fills no vector, so that a product of unfolded images is tried as well.
TEST(OneDnnFacts, OperationsThatAreAlikeHaveOneTrial) {
    std::vector<NodeSpec> specs;
    for (const char* name : {"first", "second", "third", "fourth", "fifth", "last"})
        specs.push_back(node(name, "conv2d", {{"channels", 2.0}, {"kernel", 3.0}, {"padding", 1.0}}));
    specs.push_back(node("pool", "global_avg_pool2d"));
    specs.push_back(loss_of("pool"));
    const Problem problem(specs, 16, {2, 64, 64}, Numbers::kReal);  // none is too short to be tried
    Trainer trainer(onednn(), problem, {{"threads", "1"}});
    const auto facts = facts_of(trainer);
    int compared = 0;
    for (const char* direction : {" forward", " backward_data", " backward_weights"}) {
        const auto trial = facts.find("third" + (direction + std::string(" trial")));
        if (trial == facts.end()) continue;  // one form only
        ++compared;
        EXPECT_EQ(trial->second, facts.at("fourth" + (direction + std::string(" trial"))));
    }
    EXPECT_GT(compared, 0);
}

// Version 3 has no Winograd's filtering on this kind of CPU, and the setting must not claim it.
TEST(OneDnnConvolution, SaysWhichAlgorithmRuns) {
    const Problem problem(lenet5(), 4, {1, 28, 28}, Numbers::kReal);
    const auto read = [&](const std::string& asked) {
        Trainer trainer(onednn(), problem, {{"threads", "1"}, {"convolution", asked}});
        const bool runs = facts_of(trainer).at("conv2 forward").find("wino") != std::string::npos;
        const std::string effective = trainer.context().read_setting("convolution").effective;
        EXPECT_EQ(asked == "winograd" && effective == "winograd", asked == "winograd" && runs);
        return effective;
    };
    EXPECT_EQ(read("direct"), "direct");
    EXPECT_EQ(read("auto"), "auto");
    EXPECT_EQ(read("winograd"), "direct");
    EXPECT_THROW(read("im2col"), BackendError);
    const Problem flat(mlp(), 4, {1, 4, 4}, Numbers::kReal);
    Trainer trainer(onednn(), flat, {{"convolution", "winograd"}});
    EXPECT_THROW(trainer.context().read_setting("convolution"), BackendError);
}

TEST(OneDnnProfile, TellsWhereTheTimeGoes) {
    const Problem problem(lenet5(), 8, {1, 28, 28}, Numbers::kReal);
    Trainer profiled(onednn(), problem, {{"threads", "1"}}), judge(plugin_path("reference"), problem);
    std::map<std::string, std::uint64_t> times;
    for (const ProfiledTime& time : profiled.profile())
        times[time.node + " " + std::to_string(time.direction)] += time.ns;
    for (const char* work : {"conv1 1", "conv1 5", "conv2 4", "pool1 1", "pool1 4", "loss 2", "fc1 6"})
        EXPECT_TRUE(times.contains(work)) << work;
    EXPECT_FALSE(times.contains("conv1 4"));
    judge.step();
    expect_same(profiled, judge, TT_PARAMETER, 1e-5);  // it was a training step
}

// ---- settings of the process, each in a process of its own

[[noreturn]] void exit_with(bool good) {
    end_pools();
    std::exit(good ? 0 : 1);
}

TEST(OneDnnIsaDeathTest, LimitsTheInstructionSet) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            const Problem problem(lenet5(), 4, {1, 28, 28}, Numbers::kReal);
            Trainer trainer(onednn(), problem, {{"onednn.max_cpu_isa", "sse41"}});
            const auto facts = facts_of(trainer);
            exit_with(trainer.context().read_setting("onednn.max_cpu_isa").effective == "sse41" &&
                      facts.at("conv2 forward").find("avx") == std::string::npos &&
                      std::isfinite(trainer.step()));
        },
        ::testing::ExitedWithCode(0), "");
}

TEST(OneDnnMathMode, IsStrictUnlessAsked) {
    const Problem problem(mlp(), 4, {1, 4, 4}, Numbers::kReal);
    Trainer loose(onednn(), problem, {{"onednn.math_mode", "bf16"}});
    EXPECT_EQ(loose.context().read_setting("onednn.math_mode").effective, "bf16");
    Trainer strict(onednn(), problem, {});
    EXPECT_EQ(strict.context().read_setting("onednn.math_mode").effective, "strict");
    EXPECT_THROW(Trainer(onednn(), problem, {{"onednn.math_mode", "BF16"}}), BackendError);
}

TEST(OneDnnIsaDeathTest, RefusesWhatIsNotThere) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const Problem problem(mlp(), 4, {1, 4, 4}, Numbers::kReal);
    for (const char* value : {"AVX2", "avx1024", ""}) {
        try {
            Trainer(onednn(), problem, {{"onednn.max_cpu_isa", value}});
            ADD_FAILURE() << value;
        } catch (const BackendError& error) {
            EXPECT_NE(std::string(error.what()).find("avx512_core"), std::string::npos) << error.what();
        }
    }
    // A second limit in one process, which oneDNN would ignore.
    EXPECT_EXIT(
        {
            Trainer first(onednn(), problem, {{"onednn.max_cpu_isa", "sse41"}});
            try {
                Trainer(onednn(), problem, {{"onednn.max_cpu_isa", "avx"}});
            } catch (const BackendError& error) {
                exit_with(std::string(error.what()).find("once per process") != std::string::npos);
            }
            exit_with(false);
        },
        ::testing::ExitedWithCode(0), "");
    // Above the CPU, if this one is not the newest there is.
    EXPECT_EXIT(
        {
            const std::string newest = "avx512_core_amx_fp16";
            try {
                Trainer trainer(onednn(), problem, {{"onednn.max_cpu_isa", newest}});
                exit_with(trainer.context().read_setting("onednn.max_cpu_isa").effective == newest);
            } catch (const BackendError& error) {
                exit_with(std::string(error.what()).find("this CPU lacks it") != std::string::npos);
            }
        },
        ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace timetrial::testing
