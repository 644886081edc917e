// Steps of networks whose layers keep states: running means, or where a sample goes on.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "support/against_reference.h"

namespace timetrial::testing {

// Steps against the reference, inference that moves no state, a reset, parts and a profile. Returns how often
// the profile spoke of each node in two steps.
inline std::map<std::string, std::size_t> expect_states(Trainer& ours, Trainer& judge, double rounding,
                                                        double of_gradients) {
    const auto initial = ours.read(TT_STATE);
    ours.step(TT_GRADIENT), judge.step(TT_GRADIENT);
    for (const tt_role role : {TT_ACTIVATION, TT_ROLE_GRADIENT, TT_STATE})
        expect_same(ours, judge, role, role == TT_ROLE_GRADIENT ? of_gradients : rounding);
    for (int step = 0; step < 3; ++step) {
        const double loss = ours.step();
        EXPECT_LE(std::abs(loss - judge.step()), rounding * loss) << step;
    }
    for (const tt_role role : {TT_PARAMETER, TT_STATE}) expect_same(ours, judge, role, 5 * rounding);
    const auto kept = ours.read(TT_STATE);
    EXPECT_LE(relative_l2(ours.evaluate(), judge.evaluate()), 5 * rounding);
    EXPECT_TRUE(ours.read(TT_STATE) == kept) << "inference moves no state";
    ours.context().reset();
    EXPECT_TRUE(ours.read(TT_STATE) == initial) << "reset";
    const auto parameters_of = [&] { return std::pair(ours.read(TT_PARAMETER), ours.read(TT_STATE)); };
    ours.step(TT_GRADIENT);
    for (int step = 0; step < 2; ++step) ours.step();
    const auto whole = parameters_of();
    ours.context().reset();
    ours.step(TT_GRADIENT);
    for (int step = 0; step < 2; ++step)
        for (const tt_part part : {TT_PART_FORWARD, TT_PART_LOSS, TT_PART_BACKWARD, TT_PART_UPDATE})
            ours.part(part);
    EXPECT_TRUE(parameters_of() == whole) << "in parts";
    ours.context().reset();
    ours.step(TT_GRADIENT);
    std::map<std::string, std::size_t> seen;
    for (int step = 0; step < 2; ++step)
        for (const ProfiledTime& time : ours.profile()) ++seen[time.node];
    EXPECT_TRUE(parameters_of() == whole) << "profiled";
    return seen;
}

}  // namespace timetrial::testing
