// Ways through sequences of unequal lengths: all give what the reference gives, and each computes as many
// steps as it says.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include "support/onednn.h"
#include "support/pools.h"
#include "support/sequences.h"
#include "timetrial/sequence_steps.h"

namespace timetrial::testing {
namespace {

const auto* const kEndsPools = ::testing::AddGlobalTestEnvironment(new EndsPools);

constexpr std::int64_t kSteps = 12;

struct Backend {
    std::string plugin;
    std::map<std::string, std::string> settings;
    std::vector<std::string> ways;
};

void PrintTo(const Backend& backend, std::ostream* out) { *out << backend.plugin; }

std::vector<Backend> backends() {
    const std::vector<std::string> all{"padded", "trimmed", "packed"};
    return {{variants_of("eigen").front(), {{"threads", "2"}}, all},
            {variants_of("cblas").front(), {{"threads", "1"}, {"blas.library", test_blas()}}, all},
            {"onednn", {{"threads", "1"}}, {"padded", "rounded"}}};
}

std::int64_t steps_of(const std::string& way, const std::vector<std::int64_t>& lengths) {
    const auto samples = static_cast<std::int64_t>(lengths.size());
    if (way == "padded") return samples * kSteps;
    const std::int64_t longest = *std::max_element(lengths.begin(), lengths.end());
    if (way == "trimmed") return samples * longest;
    // Eighths of 12, in whole steps.
    static constexpr std::array<std::int64_t, 8> rounded{2, 3, 5, 6, 8, 9, 11, 12};
    if (way == "rounded") return samples * *std::lower_bound(rounded.begin(), rounded.end(), longest);
    return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
}

class Lengths : public ::testing::TestWithParam<Backend> {
  protected:
    Trainer make(const Problem& problem, const std::string& way) const {
        std::map<std::string, std::string> settings = GetParam().settings;
        settings["lengths"] = way;
        const std::string& plugin = GetParam().plugin;
        return Trainer(plugin == "onednn" ? onednn() : plugin_path(plugin), problem, settings);
    }

    static std::string fact(Trainer& trainer, const std::string& name) {
        for (const Fact& one : trainer.context().facts())
            if (one.name == name) return one.value;
        return "";
    }

    void expect_same_as_the_reference(const std::vector<NodeSpec>& specs, std::vector<InputSpec> inputs,
                                      const std::vector<std::int64_t>& lengths) const {
        for (const std::string& way : GetParam().ways) {
            SCOPED_TRACE(way);
            Problem problem(specs, inputs, static_cast<std::int64_t>(lengths.size()), Numbers::kReal);
            problem.wholes["lengths"] = lengths;
            Trainer ours = make(problem, way), judge(plugin_path("reference"), problem);
            EXPECT_NEAR(ours.step(TT_GRADIENT), judge.step(TT_GRADIENT), 5e-6);
            expect_same(ours, judge, TT_ACTIVATION, 5e-6);
            expect_same(ours, judge, TT_ROLE_GRADIENT, 5e-6);
            EXPECT_EQ(fact(ours, TT_SEQUENCE_STEPS_FACT), std::to_string(steps_of(way, lengths)));
            for (int step = 0; step < 2; ++step) EXPECT_NEAR(ours.step(), judge.step(), 5e-5);
            EXPECT_LE(relative_l2(ours.evaluate(), judge.evaluate()), 5e-5);
        }
    }
};

INSTANTIATE_TEST_SUITE_P(Backends, Lengths, ::testing::ValuesIn(backends()),
                         [](const auto& test) { return test.param.plugin.substr(0, 5); });

// The longest is shorter than there is room for, as long, and all are equal; one step, and one sample.
const std::vector<std::vector<std::int64_t>> kLengths = {{2, 5, 1, 5, 3}, {12, 1, 4}, {4, 4, 4}, {1, 1}, {6}};

TEST_P(Lengths, EveryWayIsRight) {
    for (const auto& lengths : kLengths)
        expect_same_as_the_reference(text_classifier(9, 7), tokens_and_labels(kSteps), lengths);
    // Of the network's own input, which gets no gradient.
    expect_same_as_the_reference({node_of("first", "lstm", {"series", "lengths"}, {{"units", 8.0}}),
                                  node("last", "dense", {{"units", 3.0}}), loss_of("last")},
                                 series_and_labels({kSteps, 3}), kLengths.front());
}

TEST_P(Lengths, OfEveryCell) {
    const auto& lengths = kLengths.front();
    for (const AttributeSpecs& gru : kinds_of_gru())
        expect_same_as_the_reference(text_classifier(9, 6, gru, {"lengths"}, "gru"),
                                     tokens_and_labels(kSteps), lengths);
    expect_same_as_the_reference(text_classifier(9, 6, {{"biases", 2.0}}, {"lengths"}, "rnn"),
                                 tokens_and_labels(kSteps), lengths);
}

// What is behind an end is computed behind a sample's first step in reverse too, which is counted once.
TEST_P(Lengths, InEveryDirection) {
    for (const char* direction : {"reverse", "bidirectional"})
        for (const char* kind : {"lstm", "gru"})
            expect_same_as_the_reference(
                text_classifier(9, 6, {{"direction", std::string(direction)}}, {"lengths"}, kind),
                tokens_and_labels(kSteps), kLengths.front());
}

TEST_P(Lengths, ALongBatchLeavesNothingToAShortOne) {
    for (const char* const kind : {"lstm", "gru"})
        for (const std::string& way : GetParam().ways) {
            Problem problem(
                text_classifier(9, 6, {{"direction", std::string("bidirectional")}}, {"lengths"}, kind),
                tokens_and_labels(kSteps), 3, Numbers::kReal);
            Trainer ours = make(problem, way), judge(plugin_path("reference"), problem);
            for (const std::vector<std::int64_t>& lengths :
                 {kLengths[1], {2, 1, 2}, {5, 4, 1}, {12, 12, 12}}) {
                std::copy(lengths.begin(), lengths.end(), problem.wholes["lengths"].begin());
                EXPECT_NEAR(ours.step(TT_GRADIENT), judge.step(TT_GRADIENT), 5e-6) << way;
                expect_same(ours, judge, TT_ACTIVATION, 5e-6);
                expect_same(ours, judge, TT_ROLE_GRADIENT, 5e-6);
            }
        }
}

TEST_P(Lengths, WhoReadsNoneComputesAll) {
    std::vector<InputSpec> inputs = tokens_and_labels(kSteps);
    inputs.erase(inputs.begin() + 1);
    const Problem problem(text_classifier(9, 7, {}, {}), inputs, 3, Numbers::kReal);
    for (const std::string& way : GetParam().ways) {
        Trainer ours = make(problem, way), judge(plugin_path("reference"), problem);
        EXPECT_NEAR(ours.step(TT_GRADIENT), judge.step(TT_GRADIENT), 5e-6);
        EXPECT_EQ(fact(ours, TT_SEQUENCE_STEPS_FACT), std::to_string(3 * kSteps));
        EXPECT_NE(fact(ours, "first forward").find("all 12 steps"), std::string::npos);
    }
}

TEST_P(Lengths, BesideThemOneThatReadsNoneDoesNotCount) {
    std::vector<NodeSpec> specs = text_classifier(9, 7);
    specs[1].inputs = {"embed"};
    expect_same_as_the_reference(specs, tokens_and_labels(kSteps), kLengths.front());
}

TEST_P(Lengths, AWayIsReadBackAndSaid) {
    const Problem problem(text_classifier(9, 7), tokens_and_labels(kSteps), 3, Numbers::kReal);
    for (const std::string& way : GetParam().ways) {
        Trainer ours = make(problem, way);
        EXPECT_EQ(ours.context().read_setting("lengths").effective, way);
        EXPECT_EQ(fact(ours, TT_SEQUENCE_STEPS_FACT), "") << "nothing is computed yet";
        const std::string said = fact(ours, "first forward");
        const std::string words = way == "packed"    ? "the steps that count"
                                  : way == "trimmed" ? "as many steps as the longest of its batch has"
                                  : way == "rounded" ? "longest of its batch has, rounded up to eighths of 12"
                                                     : "all 12 steps of every sample";
        EXPECT_TRUE(said.ends_with(words)) << said;
    }
}

TEST_P(Lengths, WhatCannotBeIsRefusedInWords) {
    Problem problem(text_classifier(9, 7), tokens_and_labels(kSteps), 3, Numbers::kReal);
    const auto refusal = [](const auto& call) -> std::string {
        try {
            call();
        } catch (const std::exception& error) {
            return error.what();
        }
        return "no error";
    };
    const char* const other = GetParam().plugin == "onednn" ? "packed" : "rounded";
    for (const char* const word : {other, "Packed", ""})
        EXPECT_NE(
            refusal([&] { make(problem, word); }).find("lengths = '" + std::string(word) + "': it has "),
            std::string::npos);
    for (const std::string& way : GetParam().ways)
        for (const std::int64_t bad : {std::int64_t{0}, kSteps + 3, std::int64_t{-1}}) {
            problem.wholes["lengths"] = {4, bad, 2};
            const std::string said = refusal([&] { make(problem, way).step(); });
            EXPECT_NE(said.find("length " + std::to_string(bad) + " of sample 1 is outside 1 to 12"),
                      std::string::npos)
                << way << ": " << said;
        }
}

}  // namespace
}  // namespace timetrial::testing
