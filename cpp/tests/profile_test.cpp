// A profiled step is a step: it trains as one does, and it names every layer that has work.
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "support/trainer.h"

namespace timetrial::testing {
namespace {

std::vector<std::string> profiling_plugins() {
    std::vector<std::string> found{"reference"};
    for (const std::string& name : eigen_variants()) {
        if (Plugin(plugin_path(name)).description().flags & TT_PROFILES) found.push_back(name);
    }
    return found;
}

std::vector<NodeSpec> small() {
    return {node("conv1", "conv2d", {{"channels", 3.0}, {"kernel", 3.0}}),
            node("relu1", "relu"),
            node("pool1", "max_pool2d", {{"kernel", 2.0}}),
            node("flat", "flatten"),
            node("fc1", "dense", {{"units", 4.0}}),
            loss_of("fc1")};
}

TEST(Profile, TrainsAsAStepDoes) {
    for (const std::string& name : profiling_plugins()) {
        const Problem problem(small(), 4, {2, 8, 8}, Numbers::kReal);
        Trainer stepped(plugin_path(name), problem), profiled(plugin_path(name), problem);
        for (int i = 0; i < 3; ++i) {
            stepped.step();
            profiled.profile();
        }
        const auto expected = stepped.read(TT_PARAMETER), found = profiled.read(TT_PARAMETER);
        ASSERT_EQ(expected.size(), 4U) << name;
        for (const auto& [parameter, values] : expected)
            EXPECT_LT(relative_l2(found.at(parameter), values), 1e-6) << name << ' ' << parameter;
    }
}

TEST(Profile, NamesEveryLayerThatHasWork) {
    for (const std::string& name : profiling_plugins()) {
        const Problem problem(small(), 4, {2, 8, 8}, Numbers::kReal);
        Trainer trainer(plugin_path(name), problem);
        std::set<std::pair<std::string, tt_direction>> seen;
        for (const ProfiledTime& time : trainer.profile()) {
            problem.network.index_of(time.node);  // throws for a name that is no node
            EXPECT_GE(time.direction, TT_DIRECTION_FORWARD) << name;
            EXPECT_LE(time.direction, TT_DIRECTION_REORDER) << name;
            seen.insert({time.node, time.direction});
        }
        for (const char* layer : {"conv1", "fc1"}) {
            EXPECT_TRUE(seen.contains({layer, TT_DIRECTION_FORWARD})) << name << ' ' << layer;
            EXPECT_TRUE(seen.contains({layer, TT_DIRECTION_BACKWARD}) ||
                        seen.contains({layer, TT_DIRECTION_BACKWARD_WEIGHTS}))
                << name << ' ' << layer;
        }
        EXPECT_TRUE(seen.contains({"loss", TT_DIRECTION_LOSS})) << name;
    }
}

TEST(Profile, ABackendThatDoesNotTimeItsLayersSaysSo) {
    const Problem problem(small(), 4, {2, 8, 8}, Numbers::kReal);
    Trainer trainer(plugin_path("null"), problem);
    EXPECT_THROW(trainer.profile(), BackendError);
}

}  // namespace
}  // namespace timetrial::testing
