// What `reference` disturbs a backward pass by.
#include "reference/disturb.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <set>

namespace timetrial::reference {

// Values of one draw are small, on either side of 0, and none of those of another a place later.
TEST(Disturbance, DrawsHaveNothingInCommon) {
    constexpr int count = 1000;
    std::set<double> seen;
    double sum = 0;
    for (std::uint64_t draw = 1; draw <= 4; ++draw) {
        Disturbance disturbance(draw);
        for (int i = 0; i < count; ++i) {
            const double one = disturbance.next();
            EXPECT_LE(std::abs(one), kDisturbance);
            seen.insert(one);
            sum += one;
        }
    }
    EXPECT_EQ(seen.size(), 4U * count);
    EXPECT_LT(std::abs(sum), 5 * kDisturbance * std::sqrt(4.0 * count / 3));
}

}  // namespace timetrial::reference
