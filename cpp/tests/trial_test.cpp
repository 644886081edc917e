// Which way a timed trial takes.
#include "layers/trial.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace timetrial::layers {

namespace {

using Run = std::function<void()>;

// Takes so long; its first calls take longer, as if somebody had its processor.
Run waits(int usual_ms, std::vector<int> disturbed_ms = {}) {
    return [=, calls = std::size_t{0}]() mutable {
        const int length = calls < disturbed_ms.size() ? disturbed_ms[calls] : usual_ms;
        ++calls;
        std::this_thread::sleep_for(std::chrono::milliseconds(length));
    };
}

TrialResult among(const std::vector<Run>& ways) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < ways.size(); ++i) names.push_back(std::to_string(i));
    return fastest_of(names, false, [&](std::size_t i) { return ways[i]; });
}

}  // namespace

TEST(Trial, TakesTheFastest) { EXPECT_EQ(among({waits(9), waits(3), waits(6)}).chosen, 1U); }

TEST(Trial, IsNotMisledByWhoeverTookTheProcessorForAWhile) {
    // Of the first four runs behind the one to warm up no two agree.
    EXPECT_EQ(among({waits(2, {60, 40, 50, 45, 56}), waits(20)}).chosen, 0U);
}

TEST(Trial, HasNothingToChooseFromOne) { EXPECT_EQ(among({waits(1)}).report, ""); }

}  // namespace timetrial::layers
