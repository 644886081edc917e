// The backends over the layers engine, eigen and cblas, against reference: bit for bit on small integers,
// within rounding on real numbers. Every variant that this CPU runs, with one thread, several, and more
// threads than images (instances named Full: every combination of these; the others: each of them once); the
// threads of the library instead; and double precision, which judges large networks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>

#include "support/against_reference.h"
#include "support/joined.h"
#include "support/normalized.h"
#include "support/passing.h"
#include "support/pools.h"
#include "support/recomputed.h"
#include "support/sequences.h"

namespace timetrial::testing {
namespace {

const auto* const kEndsPools = ::testing::AddGlobalTestEnvironment(new EndsPools);

// One way to run the engine: which products, with what settings, in which precision.
struct Variant {
    std::string plugin;
    std::map<std::string, std::string> settings;
    tt_dtype dtype = TT_F32;
};

void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.plugin; }  // for ctest's list

Variant variant(const std::string& plugin, const std::string& threads) {
    Variant made{plugin, {{"threads", threads}}};
    if (plugin.starts_with("cblas")) made.settings["blas.library"] = test_blas();
    return made;
}

const std::vector<std::string> kThreads = {"2", "1", "5"};

// Every instruction set, product and number of threads once, and what there is besides f32 and threads over
// images. Best variants come first.
std::vector<Variant> few() {
    std::vector<Variant> chosen;
    std::size_t turn = 0;
    for (const char* backend : {"eigen", "cblas"})
        for (const std::string& plugin : variants_of(backend))
            chosen.push_back(variant(plugin, kThreads[turn++ % kThreads.size()]));
    Variant other = variant(variants_of("cblas").front(), "2");
    other.dtype = TT_F64;
    chosen.push_back(other);
    other.dtype = TT_F32;
    other.settings["parallel"] = "product";
    chosen.push_back(other);
    return chosen;
}

// The other combinations.
std::vector<Variant> full() {
    std::vector<Variant> rest;
    const std::vector<Variant> chosen = few();
    for (const char* backend : {"eigen", "cblas"})
        for (const std::string& plugin : variants_of(backend))
            for (const std::string& threads : kThreads)
                if (std::ranges::none_of(chosen, [&](const Variant& one) {
                        return one.plugin == plugin && one.settings == variant(plugin, threads).settings;
                    }))
                    rest.push_back(variant(plugin, threads));
    return rest;
}

std::string name_of(const ::testing::TestParamInfo<Variant>& test) {
    const Variant& variant = test.param;
    std::string name = variant.plugin + "_threads" + variant.settings.at("threads");
    if (variant.settings.contains("parallel")) name += "_" + variant.settings.at("parallel");
    if (variant.dtype == TT_F64) name += "_f64";
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

class Layers : public ::testing::TestWithParam<Variant> {
  protected:
    Trainer make(const Problem& problem, const SgdSpec& sgd = {}) const {
        return Trainer(plugin_path(GetParam().plugin), problem, GetParam().settings, sgd, GetParam().dtype);
    }

    MakeTrainer maker() const {
        return [this](const Problem& problem, const SgdSpec& sgd) { return make(problem, sgd); };
    }
    void expect_step(const std::vector<NodeSpec>& specs, const Shape& input, std::int64_t batch,
                     Numbers numbers, double tolerance) const {
        testing::expect_step(maker(), specs, input, batch, numbers, tolerance);
    }
    void expect_exact(const NodeSpec& middle, const Shape& input, std::int64_t batch = 4) const {
        testing::expect_exact(maker(), middle, input, batch);
    }
};

INSTANTIATE_TEST_SUITE_P(Variants, Layers, ::testing::ValuesIn(few()), name_of);
INSTANTIATE_TEST_SUITE_P(Full, Layers, ::testing::ValuesIn(full()), name_of);

using Pair = std::vector<double>;

// ---- normalization, sequences

TEST_P(Layers, Normalizes) {
    for (const double channels : {5.0, 16.0}) expect_normalized(maker(), channels, GetParam().dtype);
    expect_exact_statistics(maker(), 6.0);
}
TEST_P(Layers, RecomputesWhatItNormalizes) {
    if (GetParam().dtype == TT_F64) return expect_kept(maker());  // a judge
    expect_recomputed(maker(), 24.0, 5.0);
    expect_recomputed(maker(), 6.0, 16.0);
    expect_one_value_a_block(maker());
    expect_kept([this](const Problem& problem, const SgdSpec& sgd) {
        std::map<std::string, std::string> settings = GetParam().settings;
        settings["recompute"] = "off";
        return Trainer(plugin_path(GetParam().plugin), problem, settings, sgd);
    });
}
TEST_P(Layers, KeepsNoGradientsThatItUsesAtOnce) {
    if (GetParam().dtype == TT_F64) return;  // judges are asked for gradients
    expect_memory_of_no_gradients(maker());
    expect_memory_given_back(maker());
    expect_room_for_a_share(maker());
    expect_gradients_between_steps(maker());
}
TEST_P(Layers, RefusesToRecomputeNothing) {
    const Problem problem(mlp(), 6, {1, 28, 28}, Numbers::kReal);
    std::map<std::string, std::string> settings = GetParam().settings;
    settings["recompute"] = "on";
    Trainer trainer(plugin_path(GetParam().plugin), problem, settings, {}, GetParam().dtype);
    EXPECT_THROW(trainer.context().read_setting("recompute"), BackendError);
    settings["recompute"] = "maybe";
    EXPECT_THROW(Trainer(plugin_path(GetParam().plugin), problem, settings), BackendError);
}
TEST_P(Layers, GoesAlongTime) { expect_sequences(maker(), GetParam().dtype); }
TEST_P(Layers, ReadsMapsRowByRow) {
    expect_maps_as_sequences(maker(), GetParam().dtype == TT_F64 ? 1e-11 : 1e-5);
}
TEST_P(Layers, CarriesStates) { expect_carried_states(maker(), GetParam().dtype); }
TEST_P(Layers, EachKindIsRight) { expect_each_kind(maker()); }

// ---- exact

TEST_P(Layers, DenseIsExact) {
    expect_step(
        {node("first", "dense", {{"units", 9.0}}), node("second", "dense", {{"units", 8.0}, {"bias", false}}),
         loss_of("second", "squared_error")},
        {7}, 4, Numbers::kIntegers, 0);
}

TEST_P(Layers, WideDenseIsExact) {  // more units than one block of the weight gradient
    expect_step({node("only", "dense", {{"units", 512.0}}), loss_of("only", "squared_error")}, {33}, 8,
                Numbers::kIntegers, 0);
}

TEST_P(Layers, Conv2dIsExact) {
    expect_exact(node("middle", "conv2d", {{"channels", 4.0}, {"kernel", Pair{3, 2}}}), {3, 6, 5});
    expect_exact(node("middle", "conv2d", {{"channels", 8.0}, {"kernel", 5.0}, {"bias", false}}), {1, 8, 20},
                 8);
}

TEST_P(Layers, Conv2dStrideAndPaddingIsExact) {
    expect_exact(node("middle", "conv2d",
                      {{"channels", 4.0}, {"kernel", 3.0}, {"stride", Pair{2, 3}}, {"padding", Pair{1, 2}}}),
                 {2, 7, 8});
    expect_exact(node("middle", "conv2d", {{"channels", 4.0}, {"kernel", 3.0}, {"padding", "same"}}),
                 {2, 8, 4});
    expect_exact(
        node("middle", "conv2d", {{"channels", 2.0}, {"kernel", Pair{1, 4}}, {"padding", Pair{0, 3}}}),
        {2, 4, 1});
}

TEST_P(Layers, Convolutions) { expect_convolutions(maker()); }

// Weight gradients of more than 256 KB lie in one room, layer after layer; one of a pair is pointwise.
TEST_P(Layers, SumsLargeWeightGradientsAtOnce) {
    const std::vector<NodeSpec> specs{
        node("first", "conv2d", {{"channels", 80.0}, {"kernel", 1.0}}),
        node("wide", "conv2d", {{"channels", 96.0}, {"kernel", 3.0}, {"padding", "same"}}),
        node("relu", "relu"),
        node("point", "conv2d", {{"channels", 900.0}, {"kernel", 1.0}}),
        node("thin", "conv2d", {{"channels", 80.0}, {"kernel", 1.0}, {"bias", false}}),
        node("pool", "global_avg_pool2d"),
        loss_of("pool")};
    const SgdSpec sgd{0.01, 0.9, 0.01};
    const Problem problem(specs, 7, {3, 5, 6}, Numbers::kReal);
    Trainer ours = make(problem, sgd), parts = make(problem, sgd),
            judge(plugin_path("reference"), problem, {}, sgd);
    for (const tt_task task : {TT_GRADIENT, TT_TRAIN, TT_TRAIN, TT_GRADIENT}) {
        const double expected = judge.step(task);
        EXPECT_LE(std::abs(ours.step(task) - expected), 1e-5 * expected);
        if (task == TT_GRADIENT) expect_same(ours, judge, TT_ROLE_GRADIENT, 2e-5);
    }
    expect_same(ours, judge, TT_PARAMETER, 1e-5);
    expect_same(ours, judge, TT_OPTIMIZER, 2e-5);  // of the gradients that training steps do not keep
    ours.context().reset();
    expect_same_in_parts(ours, parts);
}

// Integers make many ties: the first maximum must win everywhere.
TEST_P(Layers, MaxPoolIsExact) {
    expect_exact(node("middle", "max_pool2d", {{"kernel", 2.0}}), {2, 8, 8});
    expect_exact(node("middle", "max_pool2d", {{"kernel", 2.0}}), {2, 9, 9});  // a row and a column dropped
    expect_exact(node("middle", "max_pool2d", {{"kernel", Pair{3, 2}}, {"stride", Pair{1, 2}}}), {1, 6, 8});
    expect_exact(node("middle", "max_pool2d", {{"kernel", 3.0}, {"stride", 2.0}, {"padding", 1.0}}),
                 {2, 8, 8});
}

TEST_P(Layers, AveragePoolIsExact) {
    expect_exact(node("middle", "avg_pool2d", {{"kernel", 2.0}}), {2, 8, 8});
    expect_exact(
        node("middle", "avg_pool2d", {{"kernel", Pair{2, 4}}, {"stride", 2.0}, {"padding", Pair{1, 2}}}),
        {2, 6, 6});
}

TEST_P(Layers, ReluIsExact) { expect_exact(node("middle", "relu"), {2, 4, 4}); }

TEST_P(Layers, JoinsAreExact) { expect_exact_joins(maker()); }
TEST_P(Layers, FansOutAndJoins) { expect_joined(maker()); }

// A batch smaller than the number of threads leaves some of them nothing to do.
TEST_P(Layers, OneImage) {
    expect_exact(node("middle", "conv2d", {{"channels", 4.0}, {"kernel", 3.0}}), {2, 6, 6}, 1);
}

// ---- real numbers: relative L2 <= 1e-6 * max(1, sqrt(K) / 10), K the longest sum

TEST_P(Layers, ActivationsAndLosses) {
    for (const char* kind : {"tanh", "sigmoid", "relu"}) {
        for (const char* loss : {"softmax_cross_entropy", "squared_error"}) {
            expect_step({node("first", "dense", {{"units", 30.0}}), node("middle", kind),
                         node("last", "dense", {{"units", 10.0}}), loss_of("last", loss)},
                        {20}, 13, Numbers::kReal, 1e-6);
        }
    }
}

TEST_P(Layers, RealConvolutions) {
    const double sum = 64 * 10 * 10;  // of the weight gradient
    expect_step(
        {node("conv1", "conv2d", {{"channels", 6.0}, {"kernel", 5.0}, {"padding", 2.0}}),
         node("pool1", "avg_pool2d", {{"kernel", 3.0}, {"stride", 2.0}, {"padding", 1.0}}),
         node("tanh1", "tanh"),
         node("conv2", "conv2d", {{"channels", 7.0}, {"kernel", 3.0}, {"stride", 2.0}, {"padding", 1.0}}),
         node("flat", "flatten"), node("fc", "dense", {{"units", 10.0}}), loss_of("fc")},
        {3, 20, 20}, 16, Numbers::kReal, 1e-6 * std::sqrt(sum) / 10);
}

class LayersNetworks : public Layers {};

INSTANTIATE_TEST_SUITE_P(Variants, LayersNetworks, ::testing::ValuesIn(few()), name_of);
INSTANTIATE_TEST_SUITE_P(Full, LayersNetworks, ::testing::ValuesIn(full()), name_of);

TEST_P(LayersNetworks, LeNet5) { expect_training(maker(), lenet5(), {0.02, 0.9, 0.0}); }
TEST_P(LayersNetworks, Mlp) { expect_training(maker(), mlp(), {0.02, 0.9, 0.001}); }

// ---- what a plug-in promises besides arithmetic

TEST_P(Layers, TwoRunsAreEqualBitForBit) {
    const Problem problem(lenet5(), 7, {1, 28, 28}, Numbers::kReal);
    Trainer first = make(problem), second = make(problem);
    for (int step = 0; step < 5; ++step) EXPECT_EQ(first.step(), second.step());
    EXPECT_EQ(first.read(TT_PARAMETER), second.read(TT_PARAMETER));
    first.context().reset();
    Trainer third = make(problem);
    EXPECT_EQ(first.step(), third.step());
    EXPECT_EQ(first.read(TT_PARAMETER), third.read(TT_PARAMETER));
}

TEST_P(Layers, PartsMakeTheSameStep) {
    const Problem problem(lenet5(), 6, {1, 28, 28}, Numbers::kReal);
    Trainer fused = make(problem, {0.02, 0.9, 0.01}), parts = make(problem, {0.02, 0.9, 0.01});
    expect_same_in_parts(fused, parts);
}

// A network that has gone wrong must look wrong: no layer may turn NaN into a number.
TEST_P(Layers, NanReachesTheLoss) {
    Problem problem(lenet5(), 4, {1, 28, 28}, Numbers::kReal);
    for (const char* name : {"conv1.bias", "fc1.bias"}) {
        Problem broken(problem);
        std::fill(broken.weights[name].begin(), broken.weights[name].end(), NAN);
        EXPECT_TRUE(std::isnan(make(broken).step())) << name;
    }
}

TEST_P(Layers, ReadsItsSettingsBack) {
    const Problem problem(mlp(), 4, {1, 4, 4}, Numbers::kReal);
    Trainer trainer = make(problem);
    for (const auto& [name, asked] : GetParam().settings) {
        if (name == "blas.library") continue;
        EXPECT_EQ(trainer.context().read_setting(name).effective, asked) << name;
    }
}

TEST_P(Layers, RefusesBadInput) {
    const Problem problem(mlp(), 4, {1, 4, 4}, Numbers::kReal);
    auto settings = GetParam().settings;
    for (const char* threads : {"0", "-1", "two", "1.5", ""}) {
        settings["threads"] = threads;
        EXPECT_THROW(Trainer(plugin_path(GetParam().plugin), problem, settings), BackendError) << threads;
    }
    settings["threads"] = "1";
    settings["parallel"] = "sideways";
    EXPECT_THROW(Trainer(plugin_path(GetParam().plugin), problem, settings), BackendError);
    Trainer trainer = make(problem);
    trainer.labels[2] = -1;
    EXPECT_THROW(trainer.step(), BackendError);
    EXPECT_TRUE(std::isnan(trainer.step(TT_FORWARD)));  // labels are not looked at
}

// In double precision nothing is left of f32's rounding: this is what makes it a judge.
TEST(LayersInDouble, AgreeWithReferenceToTheLastDigits) {
    const Problem problem(lenet5(), 6, {1, 28, 28}, Numbers::kReal);
    const std::string plugin = plugin_path(variants_of("cblas").front());
    Trainer ours(plugin, problem, {{"threads", "2"}, {"blas.library", test_blas()}}, {0.02, 0.9, 0.001},
                 TT_F64);
    Trainer judge(plugin_path("reference"), problem, {}, {0.02, 0.9, 0.001});
    for (int step = 0; step < 5; ++step) EXPECT_NEAR(ours.step(), judge.step(), 1e-13);
    EXPECT_NEAR(ours.step(TT_GRADIENT), judge.step(TT_GRADIENT), 1e-13);
    for (const tt_role role : {TT_PARAMETER, TT_OPTIMIZER, TT_ROLE_GRADIENT}) {
        const auto expected = judge.read(role);
        for (const auto& [name, values] : ours.read(role))
            EXPECT_LE(relative_l2(values, expected.at(name)), 1e-11) << name;
    }
}

// Every activation is there. What is written takes the place of what the node computes in the next step, as
// in reference: images and channels by threads, flat values, sums. What the node made of the values in front
// of it is read behind that step, and the step after it sees nothing any more.
TEST(LayersInDouble, TakeWhatIsShown) {
    NodeSpec sum = node("sum", "add");
    sum.inputs = {"relu", "narrow"};
    const Problem problem(
        {node("conv", "conv2d", {{"channels", 5.0}, {"kernel", 3.0}, {"padding", 1.0}, {"bias", false}}),
         node("norm", "batch_norm"), node("relu", "relu6"),
         node("narrow", "conv2d", {{"channels", 5.0}, {"kernel", 1.0}}), sum, node("last", "relu"),
         node("pool", "max_pool2d", {{"kernel", 2.0}}), node("flat", "flatten"),
         node("fc", "dense", {{"units", 6.0}, {"bias", false}}), node("norm2", "batch_norm"),
         node("relu2", "relu"), node("classes", "dense", {{"units", 3.0}}), loss_of("classes")},
        4, {2, 6, 6}, Numbers::kReal);
    const std::string plugin = plugin_path(variants_of("cblas").front());
    Trainer ours(plugin, problem, {{"threads", "3"}, {"blas.library", test_blas()}}, {}, TT_F64);
    Trainer judge(plugin_path("reference"), problem);
    judge.step(TT_GRADIENT);
    const auto plain = judge.read(TT_ROLE_GRADIENT);
    const auto made = judge.read(TT_ACTIVATION);
    // Whose values `reference` moves to where a rectifier decides as is shown.
    const std::map<std::string, std::string> decided{{"relu", "norm"}, {"last", "sum"}, {"relu2", "norm2"}};
    for (const auto& [name, values] : made) {
        std::vector<double> shown = values;
        for (std::size_t i = 0; i < shown.size(); ++i) shown[i] *= 1 + 0.1 * std::sin(static_cast<double>(i));
        SCOPED_TRACE(name);
        for (Trainer* one : {&ours, &judge}) one->write(TT_ACTIVATION, name, shown);
        EXPECT_NEAR(ours.step(TT_GRADIENT), judge.step(TT_GRADIENT), 1e-12) << name;
        EXPECT_EQ(ours.read(TT_ACTIVATION).size(), made.size());
        EXPECT_LT(relative_l2(judge.read(TT_ACTIVATION).at(name), values), 1e-12) << name;
        const auto of_judge = judge.read(TT_ACTIVATION);
        for (const auto& [other, found] : ours.read(TT_ACTIVATION))
            if (!decided.contains(name) || other != decided.at(name)) {
                EXPECT_LE(relative_l2(found, of_judge.at(other)), 1e-11) << other;
            }
        expect_same(ours, judge, TT_ROLE_GRADIENT, 1e-10);
        EXPECT_GT(relative_l2(judge.read(TT_ROLE_GRADIENT).at("conv.weight"), plain.at("conv.weight")), 1e-6)
            << name;
        judge.step(TT_GRADIENT);
        EXPECT_EQ(judge.read(TT_ACTIVATION), made) << name;
        EXPECT_EQ(judge.read(TT_ROLE_GRADIENT), plain) << name;
    }
}

// A rectifier decides as what came out of it says, also where nobody shows what went in.
TEST(LayersInDouble, DecideAsIsShown) {
    const Problem problem({node("fc", "dense", {{"units", 6.0}, {"bias", false}}), node("relu", "relu"),
                           node("classes", "dense", {{"units", 3.0}}), loss_of("classes")},
                          4, {8}, Numbers::kReal);
    Trainer ours(plugin_path(variants_of("cblas").front()), problem, {{"blas.library", test_blas()}}, {},
                 TT_F64);
    Trainer judge(plugin_path("reference"), problem);
    for (Trainer* one : {&ours, &judge}) {
        one->step(TT_GRADIENT);
        std::vector<double> shown = one->read(TT_ACTIVATION).at("relu");
        for (std::size_t i = 0; i < shown.size(); ++i) shown[i] = shown[i] > 0 ? 0.0 : 1e-30;
        one->write(TT_ACTIVATION, "relu", shown);
        one->step(TT_GRADIENT);
    }
    expect_same(ours, judge, TT_ROLE_GRADIENT, 1e-12);
}

// Every layer and direction of a step is in its profile, once, and the first layer has no data gradient.
TEST_P(Layers, ProfileHasEveryLayer) {
    const Problem problem(lenet5(), 6, {1, 28, 28}, Numbers::kReal);
    Trainer profiled = make(problem), plain = make(problem);
    std::map<std::pair<std::string, tt_direction>, int> seen;
    for (const ProfiledTime& time : profiled.profile()) {
        ++seen[{time.node, time.direction}];
        EXPECT_GT(time.ns, 0u);
    }
    for (const char* layer : {"conv1", "conv2", "fc1", "fc2"}) {
        for (const tt_direction direction :
             {TT_DIRECTION_FORWARD, TT_DIRECTION_BACKWARD_WEIGHTS, TT_DIRECTION_UPDATE})
            EXPECT_EQ((seen[{layer, direction}]), 1) << layer << " " << direction;
        EXPECT_EQ((seen[{layer, TT_DIRECTION_BACKWARD_DATA}]), std::string(layer) == "conv1" ? 0 : 1)
            << layer;
    }
    EXPECT_EQ((seen[{"loss", TT_DIRECTION_LOSS}]), 1);
    plain.step();
    EXPECT_EQ(profiled.read(TT_PARAMETER), plain.read(TT_PARAMETER));  // a profiled step is a step
}

// The comparison itself must say no.
TEST(RelativeL2, SaysNo) {
    EXPECT_EQ(relative_l2({1, 2}, {1, 2}), 0);
    EXPECT_EQ(relative_l2({0, 0}, {0, 0}), 0);
    EXPECT_GT(relative_l2({1, 2.001}, {1, 2}), 1e-4);
    EXPECT_TRUE(std::isinf(relative_l2({1}, {1, 2})));
    EXPECT_TRUE(std::isinf(relative_l2({1, NAN}, {1, 2})));
    EXPECT_TRUE(std::isinf(relative_l2({1e-9, 0}, {0, 0})));
}

}  // namespace
}  // namespace timetrial::testing
