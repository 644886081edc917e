#include "metrics/bandwidth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

namespace timetrial {
namespace {

TEST(Bandwidth, HasAnAnswerForAnyNumberOfThreads) {
    for (const int threads : {1, 2, 5}) {
        const Bandwidth bandwidth = measure_bandwidth(threads, 0.02, 1 << 20);
        EXPECT_EQ(bandwidth.threads, threads);
        EXPECT_GT(bandwidth.bytes_per_s, 1e6);
    }
}

TEST(Bandwidth, SaysHowMuchItReallyWentOver) {
    EXPECT_EQ(measure_bandwidth(1, 0.01, 12 * 1024).bytes, 12u * 1024);
    EXPECT_EQ(measure_bandwidth(1, 0.01, 12 * 1024 + 191).bytes, 12u * 1024);  // whole lines of three arrays
    EXPECT_EQ(measure_bandwidth(2, 0.01, 24 * 1024).bytes, 24u * 1024);
}

// What lies in the nearest cache comes faster than what does not: the arrays are really gone over.
TEST(Bandwidth, OfACacheIsMoreThanOfWhatDoesNotFitIntoIt) {
    double near = 0, far = 0;
    for (int turn = 0; turn < 3; ++turn) {
        near = std::max(near, measure_bandwidth(1, 0.1, 12 * 1024).bytes_per_s);
        far = std::max(far, measure_bandwidth(1, 0.1, 256 << 20).bytes_per_s);
    }
    EXPECT_GT(near, far);
}

TEST(Bandwidth, RefusesNonsense) {
    EXPECT_THROW(measure_bandwidth(0, 0.1, 1 << 20), std::invalid_argument);
    EXPECT_THROW(measure_bandwidth(1, 0, 1 << 20), std::invalid_argument);
    EXPECT_THROW(measure_bandwidth(1, 61, 1 << 20), std::invalid_argument);
    EXPECT_THROW(measure_bandwidth(1 << 20, 0.1, 1 << 20), std::invalid_argument);
    EXPECT_THROW(measure_bandwidth(4, 0.1, 4 * 4095), std::invalid_argument);
}

}  // namespace
}  // namespace timetrial
