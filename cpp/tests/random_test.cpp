#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>
#include <stdexcept>
#include <vector>

#include "network/initial.h"
#include "random/draws.h"
#include "random/philox.h"

namespace timetrial {
namespace {

// The known answers that come with Random123, the code of the paper (kat_vectors, philox4x32 with 10 rounds).
TEST(Philox, GivesTheKnownAnswers) {
    EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
              (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
    EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
              (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
    EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
              (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// From the authors' page (Fowler, Noll, Vo).
TEST(Fnv, GivesTheKnownAnswers) {
    EXPECT_EQ(fnv1a_64(""), 0xcbf29ce484222325u);
    EXPECT_EQ(fnv1a_64("a"), 0xaf63dc4c8601ec8cu);
    EXPECT_EQ(fnv1a_64("foobar"), 0x85944171f73967e8u);
}

TEST(PhiloxStream, IsPhiloxOfSeedStreamAndBlock) {
    const std::uint64_t hash = fnv1a_64("fc1.weight");
    const std::uint64_t seed = 0x1234567890abcdef;
    PhiloxStream stream(seed, "fc1.weight");
    for (std::uint32_t block = 0; block < 3; ++block) {
        const auto words =
            philox4x32({block, 0, static_cast<std::uint32_t>(hash), static_cast<std::uint32_t>(hash >> 32)},
                       {0x90abcdef, 0x12345678});
        for (const std::uint32_t word : words) EXPECT_EQ(stream.next_u32(), word);
    }
}

TEST(PhiloxStream, DrawsBelowNWithoutBias) {
    PhiloxStream stream(1, "below");
    std::array<int, 3> counts{};
    constexpr int draws = 30000;
    for (int i = 0; i < draws; ++i) ++counts.at(stream.next_below(3));
    // Five standard deviations of a count: sqrt(n p (1 - p)) is 82.
    for (const int count : counts) EXPECT_NEAR(count, draws / 3, 410);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(stream.next_below(1), 0u);
    // With n just above 2^63 nearly half of all words are thrown away.
    const std::uint64_t large = (std::uint64_t{1} << 63) + 1;
    for (int i = 0; i < 100; ++i) EXPECT_LT(stream.next_below(large), large);
}

TEST(Uniform, FillsTheIntervalAndNothingElse) {
    std::vector<float> values(100000);
    uniform(7, "x", -0.25f, 0.75f, values);
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    EXPECT_GE(*low, -0.25f);
    EXPECT_LT(*low, -0.249f);
    EXPECT_LT(*high, 0.75f);
    EXPECT_GT(*high, 0.749f);
    const double mean =
        std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    EXPECT_NEAR(mean, 0.25, 0.005);
    // An interval of one f32: rounding must not reach its open end.
    uniform(7, "x", 1.0f, std::nextafter(1.0f, 2.0f), values);
    for (const float value : values) ASSERT_EQ(value, 1.0f);
}

TEST(Uniform, DependsOnSeedAndStream) {
    std::vector<float> a(16), b(16), c(16), again(16);
    uniform(1, "x", 0, 1, a);
    uniform(2, "x", 0, 1, b);
    uniform(1, "y", 0, 1, c);
    uniform(1, "x", 0, 1, again);
    EXPECT_EQ(a, again);
    EXPECT_NE(a, b);
    EXPECT_NE(a, c);
    EXPECT_NE(b, c);
}

TEST(Uniform, RefusesAnEmptyInterval) {
    std::vector<float> values(1);
    EXPECT_THROW(uniform(1, "x", 1, 1, values), std::invalid_argument);
    EXPECT_THROW(uniform(1, "x", 2, 1, values), std::invalid_argument);
    EXPECT_THROW(uniform(1, "x", 0, NAN, values), std::invalid_argument);
}

TEST(Initial, HasTheLimitsOfItsFans) {
    const auto drawn = [](const Initializer& initializer) {
        std::vector<float> values(50 * 20 * 25);
        draw_initial(1, {"conv2.weight", {50, 20, 5, 5}, initializer}, values);
        const auto [low, high] = std::minmax_element(values.begin(), values.end());
        return std::pair(*low, *high);
    };
    const auto expect_limit = [](std::pair<float, float> range, double exact) {
        const auto limit = static_cast<float>(exact);
        EXPECT_GE(range.first, -limit);
        EXPECT_LT(range.second, limit);
        EXPECT_GT(range.second - range.first, 1.99f * limit);
    };
    expect_limit(drawn({"glorot_uniform", 20 * 25, 50 * 25}), std::sqrt(6.0 / (70 * 25)));
    expect_limit(drawn({"he_uniform", 20 * 25, 0}), std::sqrt(6.0 / 500));
    EXPECT_EQ(drawn({"zeros"}), std::pair(0.0f, 0.0f));
    EXPECT_EQ(drawn({"ones"}), std::pair(1.0f, 1.0f));
    EXPECT_THROW(drawn({"glorot_uniform"}), NetworkError) << "without fans";
    EXPECT_THROW(drawn({"he_unifrom", 3, 3}), NetworkError);
}

TEST(Permutation, HasEveryNumberOnce) {
    for (const std::int64_t n : {0, 1, 2, 1437}) {
        std::vector<std::int64_t> order = permutation(3, "order", n);
        EXPECT_EQ(order.size(), static_cast<std::size_t>(n));
        std::sort(order.begin(), order.end());
        for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
    }
    EXPECT_NE(permutation(3, "order", 1437), permutation(4, "order", 1437));
    EXPECT_THROW(permutation(3, "order", -1), std::invalid_argument);
}

TEST(Permutation, GivesEveryOrderAboutAsOften) {
    std::vector<int> counts(6);
    const std::vector<std::vector<std::int64_t>> orders{{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                                        {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    constexpr int draws = 12000;
    for (std::uint64_t seed = 0; seed < draws; ++seed) {
        const auto found = std::find(orders.begin(), orders.end(), permutation(seed, "order", 3));
        ++counts.at(static_cast<std::size_t>(found - orders.begin()));
    }
    double chi_squared = 0;
    for (const int count : counts) chi_squared += std::pow(count - draws / 6, 2) / (draws / 6);
    EXPECT_LT(chi_squared, 25.7);  // five degrees of freedom: 1 in 10,000
}

}  // namespace
}  // namespace timetrial
