#include "metrics/peak.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace timetrial {
namespace {

TEST(Peak, CountsOperationsByTheRound) {
    EXPECT_EQ(multiply_add_sse2(10), 10u * 12 * 4 * 2);
    EXPECT_EQ(multiply_add_sse2(0), 0u);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        EXPECT_EQ(multiply_add_avx2(10), 10u * 12 * 8 * 2);
    }
    if (__builtin_cpu_supports("avx512f")) {
        EXPECT_EQ(multiply_add_avx512(10), 10u * 16 * 16 * 2);
    }
}

TEST(Peak, HasAnAnswerForAnyNumberOfThreads) {
    for (const int threads : {1, 2, 5}) {
        const Peak peak = measure_peak_flops(threads, 0.02);
        EXPECT_EQ(peak.threads, threads);
        EXPECT_GT(peak.flops_per_s, 1e6);
    }
}

TEST(Peak, RefusesNonsense) {
    EXPECT_THROW(measure_peak_flops(0, 0.1), std::invalid_argument);
    EXPECT_THROW(measure_peak_flops(1 << 20, 0.1), std::invalid_argument);
    EXPECT_THROW(measure_peak_flops(1, 0), std::invalid_argument);
}

}  // namespace
}  // namespace timetrial
