// Differentiation of a formula: numbers that remember how they came about. Every operation notes on a tape
// which numbers it used and its derivative with respect to each; from the result back, the chain rule then
// gives the derivative with respect to all of them (reverse accumulation: Linnainmaa 1970; Griewank and
// Walther, Evaluating Derivatives, 2008, chapter 3).
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

namespace timetrial::reference {

class Tape;

// A number on a tape; without one, a constant.
class Number {
  public:
    Number(double value) : value_(value) {}  // NOLINT(google-explicit-constructor): formulas have constants
    double value() const { return value_; }

  private:
    friend class Tape;
    Number(double value, Tape* tape, std::size_t place) : value_(value), tape_(tape), place_(place) {}

    double value_;
    Tape* tape_ = nullptr;
    std::size_t place_ = 0;

    friend Number result(double value, const Number& a, double by_a, const Number& b, double by_b);
};

class Tape {
  public:
    // A number that derivatives are wanted of: the first is number 0.
    Number variable(double value) {
        uses_.push_back({});
        return {value, this, uses_.size() - 1};
    }

    // Of `y` with respect to every number on the tape, by its place: variables stand where they were made.
    const std::vector<double>& derivatives(const Number& y) {
        derivatives_.assign(uses_.size(), 0.0);
        if (y.tape_ == nullptr) return derivatives_;  // a constant
        derivatives_[y.place_] = 1.0;
        for (std::size_t i = uses_.size(); i-- > 0;)
            for (const Use& use : uses_[i])
                if (use.place != constant) derivatives_[use.place] += use.derivative * derivatives_[i];
        return derivatives_;
    }

    void clear() { uses_.clear(); }

  private:
    static constexpr std::size_t constant = static_cast<std::size_t>(-1);
    struct Use {
        std::size_t place = constant;  // of what was used
        double derivative = 0;         // of what was made, with respect to it
    };
    friend Number result(double value, const Number& a, double by_a, const Number& b, double by_b);

    std::vector<std::array<Use, 2>> uses_;  // of each number on the tape
    std::vector<double> derivatives_;
};

// What an operation made of a and b, with its derivatives.
inline Number result(double value, const Number& a, double by_a, const Number& b, double by_b) {
    Tape* const tape = a.tape_ != nullptr ? a.tape_ : b.tape_;
    if (tape == nullptr) return value;
    const auto use = [](const Number& of, double derivative) {
        return of.tape_ != nullptr ? Tape::Use{of.place_, derivative} : Tape::Use{};
    };
    tape->uses_.push_back({use(a, by_a), use(b, by_b)});
    return {value, tape, tape->uses_.size() - 1};
}

inline Number result(double value, const Number& a, double by_a) { return result(value, a, by_a, 0.0, 0.0); }

// Where a formula decides: by the value alone, of a plain number too.
inline double value_of(const Number& x) { return x.value(); }
inline double value_of(double x) { return x; }

inline Number operator+(const Number& a, const Number& b) {
    return result(a.value() + b.value(), a, 1, b, 1);
}
inline Number operator-(const Number& a, const Number& b) {
    return result(a.value() - b.value(), a, 1, b, -1);
}
inline Number operator*(const Number& a, const Number& b) {
    return result(a.value() * b.value(), a, b.value(), b, a.value());
}
inline Number operator/(const Number& a, const Number& b) {
    const double quotient = a.value() / b.value();
    return result(quotient, a, 1 / b.value(), b, -quotient / b.value());
}
inline Number exp(const Number& x) {
    const double y = std::exp(x.value());
    return result(y, x, y);
}
inline Number log(const Number& x) { return result(std::log(x.value()), x, 1 / x.value()); }
inline Number sqrt(const Number& x) {
    const double y = std::sqrt(x.value());
    return result(y, x, 0.5 / y);
}
inline Number pow(const Number& x, double exponent) {
    return result(std::pow(x.value(), exponent), x, exponent * std::pow(x.value(), exponent - 1));
}
inline Number tanh(const Number& x) {
    const double y = std::tanh(x.value());
    return result(y, x, 1 - y * y);
}

}  // namespace timetrial::reference
