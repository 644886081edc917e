// The tape of the judge: every operation's derivative against its central difference.
#include "reference/tape.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace timetrial::reference {
namespace {

using Formula = std::function<Number(const Number&, const Number&)>;

std::vector<double> derivatives(const Formula& formula, double x, double y) {
    Tape tape;
    const Number a = tape.variable(x), b = tape.variable(y);
    const std::vector<double> all = tape.derivatives(formula(a, b));
    return {all[0], all[1]};
}

// Constants need no tape: so the formula's plain value.
double value(const Formula& formula, double x, double y) { return formula(x, y).value(); }

bool agrees(const Formula& formula, double x, double y) {
    constexpr double e = 1e-6;
    const std::vector<double> found = derivatives(formula, x, y);
    const double by_x = (value(formula, x + e, y) - value(formula, x - e, y)) / (2 * e);
    const double by_y = (value(formula, x, y + e) - value(formula, x, y - e)) / (2 * e);
    return std::abs(found[0] - by_x) < 1e-8 && std::abs(found[1] - by_y) < 1e-8;
}

TEST(Tape, EveryOperation) {
    const Formula formulas[] = {
        [](auto a, auto b) { return a + b; },
        [](auto a, auto b) { return a - b; },
        [](auto a, auto b) { return a * b; },
        [](auto a, auto b) { return a / b; },
        [](auto a, auto b) { return exp(a) * log(b); },
        [](auto a, auto b) { return tanh(a * b); },
        [](auto a, auto b) { return sqrt(a) * pow(b, -0.75); },
        [](auto a, auto b) { return a * a * a + 3.0 * b - 2.0 / a; },   // used more than once; constants
        [](auto a, auto b) { return 1.0 / (1.0 + exp(0.0 - a)) + b; },  // one that a tape of two goes through
    };
    for (std::size_t i = 0; i < std::size(formulas); ++i) EXPECT_TRUE(agrees(formulas[i], 0.7, 1.3)) << i;
}

TEST(Tape, TheCheckSaysNo) {
    const auto doubled = [](const Number& a, const Number& b) {
        return result(a.value() * b.value(), a, 2 * b.value(), b, a.value());
    };
    EXPECT_FALSE(agrees(doubled, 0.7, 1.3));
}

TEST(Tape, AConstantDependsOnNothing) {
    Tape tape;
    tape.variable(2.0);
    EXPECT_EQ(tape.derivatives(3.0), std::vector<double>{0.0});
    const double infinite = std::numeric_limits<double>::infinity();
    const Number x = tape.variable(1.0);
    EXPECT_EQ(tape.derivatives(x * infinite)[0], 0.0);  // not 0 * infinity
}

TEST(Tape, IsUsedAgain) {
    Tape tape;
    for (const double x : {1.0, 2.0}) {
        tape.clear();
        const Number a = tape.variable(x);
        EXPECT_EQ(tape.derivatives(a * a)[0], 2 * x);
    }
}

}  // namespace
}  // namespace timetrial::reference
