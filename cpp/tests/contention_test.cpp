#include "metrics/contention.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace timetrial {
namespace {

TEST(Contention, ReadsEachSizeInBothWays) {
    const auto found = read_evenly({4096, 1 << 20}, 0.05);
    ASSERT_EQ(found.size(), 4u);
    for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].bytes, i < 2 ? 4096u : 1u << 20);
        EXPECT_EQ(found[i].is_chase, i % 2 == 0);
        EXPECT_EQ(found[i].ns_per_line.size(), found[0].ns_per_line.size());
        for (const double ns : found[i].ns_per_line) EXPECT_GT(ns, 0);
    }
}

// However short the time, there is an answer.
TEST(Contention, HasOneWindowAtLeast) { EXPECT_EQ(read_evenly({4096}, 1e-6).front().ns_per_line.size(), 1u); }

TEST(Contention, RefusesNonsense) {
    EXPECT_THROW(read_evenly({}, 1), std::invalid_argument);
    EXPECT_THROW(read_evenly({4095}, 1), std::invalid_argument);
    EXPECT_THROW(read_evenly({4096}, 0), std::invalid_argument);
    EXPECT_THROW(read_evenly({4096}, 61), std::invalid_argument);
}

}  // namespace
}  // namespace timetrial
