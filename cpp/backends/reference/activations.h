// Layers without parameters that treat each value alone: a formula each.
#pragma once

#include <cmath>

#include "tape.h"
#include "terms.h"

namespace timetrial::reference {

// x, or, where it is above 0 and 0 came out of it, a number just below: at 0 itself there are conventions.
inline double not_above_0(double x) { return x <= 0 ? x : -1e-30; }

struct Relu {
    double at_zero = 0;  // relu'(0): 0 is canonical in timetrial
    // In this form NaN stays NaN.
    template <class Real>
    Real of(const Real& x) const {
        if (value_of(x) == 0) return Real(at_zero) * x;
        return value_of(x) < 0 ? Real(0.0) : x;
    }
    // The value nearest to x that comes out as y.
    static double behind(double y, double x) { return y > 0 ? y : not_above_0(x); }
};

// Both with the derivative of the other side at their edges.
struct LeakyRelu {
    double slope;
    template <class Real>
    Real of(const Real& x) const {
        return value_of(x) > 0 ? x : Real(slope) * x;
    }
    double behind(double y, double x) const { return y > 0 ? y : not_above_0(x); }
};

struct Relu6 {
    double at_zero = 0;
    template <class Real>
    Real of(const Real& x) const {
        if (value_of(x) == 0) return Real(at_zero) * x;
        if (value_of(x) <= 0) return Real(0.0);
        return value_of(x) >= 6 ? Real(6.0) : x;
    }
    static double behind(double y, double x) {
        if (y <= 0) return not_above_0(x);
        return y >= 6 ? std::fmax(x, 6.0) : y;
    }
};

struct Tanh {
    template <class Real>
    static Real of(const Real& x) {
        using std::tanh;
        return tanh(x);
    }
};

struct Sigmoid {
    template <class Real>
    static Real of(const Real& x) {
        using std::exp;
        return Real(1.0) / (Real(1.0) + exp(Real(0.0) - x));
    }
};

template <class Formula>
class Elementwise final : public Function {
  public:
    explicit Elementwise(Formula formula = {}) : formula_(formula) {}

    void forward(std::span<Tensor* const> x, Tensor& y, Mode) override {
        for (std::size_t i = 0; i < y.size(); ++i) y.value[i] = formula_.of(x[0]->value[i]);
    }
    void take_ties(const Ties& ties) override {
        if constexpr (requires { formula_.at_zero; }) formula_.at_zero = ties.slope;
    }
    void decide(std::span<Tensor* const> x, const Values& shown) override {
        if constexpr (requires { formula_.behind(0.0, 0.0); })
            for (std::size_t i = 0; i < shown.size(); ++i)
                x[0]->value[i] = formula_.behind(shown[i], x[0]->value[i]);
    }
    void backward(std::span<Tensor* const> x, Tensor& y) override {
        for (std::size_t i = 0; i < y.size(); ++i) {
            tape_.clear();
            const Number result = formula_.of(tape_.variable(x[0]->value[i]));
            x[0]->gradient[i] += y.gradient[i] * tape_.derivatives(result)[0];
        }
    }

  private:
    Formula formula_;
    Tape tape_;
};

// flatten changes the shape only: (N, C, H, W) and (N, C * H * W) have their values in the same order.
class Flatten final : public Sum<Flatten> {
  public:
    template <class Terms>
    void define(Terms terms, std::span<Tensor* const> inputs, Tensor& y) const {
        terms.value({y, 0, 1}, {*inputs[0], 0, 1}, y.size());
    }
};

// Rows of all maps, (N, C, H, W), as steps (N, H, C * W).
class MapToSequence final : public Sum<MapToSequence> {
  public:
    template <class Terms>
    void define(Terms terms, std::span<Tensor* const> inputs, Tensor& y) const {
        Tensor& x = *inputs[0];
        const std::size_t channels = x.extent(1), rows = x.extent(2), width = x.extent(3);
        for (std::size_t n = 0; n < x.extent(0); ++n)
            for (std::size_t c = 0; c < channels; ++c)
                for (std::size_t t = 0; t < rows; ++t)
                    terms.value({y, ((n * rows + t) * channels + c) * width, 1},
                                {x, ((n * channels + c) * rows + t) * width, 1}, width);
    }
};

}  // namespace timetrial::reference
