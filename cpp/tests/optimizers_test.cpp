// Every update rule, in every backend, with every option: three steps beside those of the reference. And the
// reference by hand, so that it is not one formula beside itself.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/against_reference.h"
#include "support/trainer.h"

namespace timetrial::testing {
namespace {

const std::vector<double> falling{0.02, 0.005, 0.01};

struct Case {
    std::string name;
    SgdSpec spec;
};

SgdSpec rule(const std::string& name, double rate, std::map<std::string, double> more,
             std::vector<double> rates = {}) {
    return {rate, name == "sgd" ? 0.9 : 0.0, 0.1, name, std::move(more), std::move(rates)};
}

// Epsilons are large, so that it shows where they stand.
std::vector<Case> cases() {
    const std::map<std::string, double> adam{{"beta1", 0.9}, {"beta2", 0.99}, {"epsilon", 1e-2}};
    std::vector<Case> all{
        {"sgd", rule("sgd", 0.02, {})},
        {"nesterov", rule("sgd", 0.02, {{"nesterov", 1}}, falling)},
        {"decoupled", rule("sgd", 0.02, {{"decoupled", 1}}, falling)},
        {"rate_inside", rule("sgd", 0.02, {{"rate_inside", 1}}, falling)},
        {"schedule", rule("sgd", 0.02, {}, falling)},
        {"clipped", rule("sgd", 0.02, {{"clip_norm", 0.1}}, falling)},
        {"adam", rule("adam", 0.01, adam)},
        {"adam_schedule", rule("adam", 0.01, adam, falling)},
        {"adamw", rule("adamw", 0.01, adam, falling)},
        {"rmsprop", rule("rmsprop", 0.01, {{"rho", 0.9}, {"epsilon", 1e-2}}, falling)},
        {"adagrad", rule("adagrad", 0.01, {{"epsilon", 1e-2}}, falling)},
        {"adadelta", rule("adadelta", 1, {{"rho", 0.9}, {"epsilon", 1e-3}})},
    };
    Case clipped{"adamw_clipped", all[8].spec};
    clipped.spec.more["clip_norm"] = 0.05;
    all.push_back(clipped);
    return all;
}

std::vector<NodeSpec> small() {
    return {node("conv", "conv2d", {{"channels", 4.0}, {"kernel", 3.0}}), node("tanh", "tanh"),
            node("flat", "flatten"), node("fc", "dense", {{"units", 5.0}}), loss_of("fc")};
}

// The library before the plug-in, as timetrial-child does.
std::string path_of(const std::string& plugin) {
    static const bool preloaded = (preload_library(TIMETRIAL_TEST_ONEDNN), true);
    return preloaded ? plugin_path(plugin) : "";
}

class Rules : public ::testing::TestWithParam<std::string> {
  protected:
    static std::map<std::string, std::string> settings() {
        std::map<std::string, std::string> found{{"threads", "2"}};
        if (GetParam().starts_with("cblas")) found["blas.library"] = test_blas();
        return found;
    }
};

TEST_P(Rules, ThreeStepsAreThoseOfTheReference) {
    for (const auto& [name, spec] : cases()) {
        SCOPED_TRACE(name);
        const Problem problem(small(), 6, {1, 8, 8}, Numbers::kReal, 1);
        Trainer ours(path_of(GetParam()), problem, settings(), spec);
        Trainer parts(path_of(GetParam()), problem, settings(), spec);
        Trainer judge(plugin_path("reference"), problem, {}, spec);
        for (int step = 0; step < 3; ++step) {
            ours.step();
            judge.step();
            for (const tt_role role : {TT_PARAMETER, TT_OPTIMIZER}) expect_same(ours, judge, role, 2e-5);
        }
        ours.context().reset();
        // onednn chooses the form of its tensors by a trial of its own: two of them may sum in another order.
        if (GetParam() != "onednn") expect_same_in_parts(ours, parts);
    }
}

std::vector<std::string> plugins() {
    std::vector<std::string> all;
    for (const char* backend : {"eigen", "cblas", "onednn"})
        for (const std::string& one :
             backend == std::string("onednn") ? std::vector<std::string>{"onednn"} : variants_of(backend))
            all.push_back(one);
    return all;
}

std::string words(const ::testing::TestParamInfo<std::string>& info) {
    std::string word = info.param;
    std::replace(word.begin(), word.end(), '-', '_');
    return word;
}

INSTANTIATE_TEST_SUITE_P(Backends, Rules, ::testing::ValuesIn(plugins()), words);

// One weight w = 2, x = 3, y = 1: prediction 6, dL/dw = 2 (6 - 1) 3 = 30 at first.
TEST(ReferenceRules, AdamByHand) {
    Problem problem({node("fc", "dense", {{"units", 1.0}, {"bias", false}}), loss_of("fc", "squared_error")},
                    1, {1}, Numbers::kReal);
    problem.weights["fc.weight"] = {2};
    problem.images = {3};
    problem.labels = {0};
    const SgdSpec spec{0.1, 0, 0, "adam", {{"beta1", 0.5}, {"beta2", 0.75}, {"epsilon", 1.0}}, {0.1, 0.2}};
    Trainer trainer(plugin_path("reference"), problem, {}, spec);
    double w = 2, m = 0, v = 0;
    for (int t = 1; t <= 3; ++t) {
        trainer.step();
        const double g = 2 * (3 * w - 1) * 3, rate = t == 1 ? 0.1 : 0.2;
        m = 0.5 * m + 0.5 * g;
        v = 0.75 * v + 0.25 * g * g;
        w -= rate * std::sqrt(1 - std::pow(0.75, t)) / (1 - std::pow(0.5, t)) * m / (std::sqrt(v) + 1);
        EXPECT_NEAR(trainer.read(TT_PARAMETER)["fc.weight"][0], w, 1e-12);
        EXPECT_NEAR(trainer.read(TT_OPTIMIZER)["fc.weight.first_moment"][0], m, 1e-12);
        EXPECT_NEAR(trainer.read(TT_OPTIMIZER)["fc.weight.second_moment"][0], v, 1e-9);
    }
    trainer.context().reset();
    EXPECT_EQ(trainer.read(TT_OPTIMIZER)["fc.weight.second_moment"][0], 0.0);
}

}  // namespace
}  // namespace timetrial::testing
