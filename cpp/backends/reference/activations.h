// Layers without parameters that treat each value alone. Each derivative is written in terms of the output
// y, which is there anyway.
#pragma once

#include <cmath>

#include "layer.h"

namespace timetrial::reference {

struct Relu {
    static double value(double x) { return x < 0 ? 0.0 : x; }         // in this form NaN stays NaN
    static double derivative(double y) { return y > 0 ? 1.0 : 0.0; }  // relu'(0) = 0: canonical in timetrial
};

struct Tanh {
    static double value(double x) { return std::tanh(x); }
    static double derivative(double y) { return 1 - y * y; }
};

struct Sigmoid {
    static double value(double x) { return 1 / (1 + std::exp(-x)); }
    static double derivative(double y) { return y * (1 - y); }
};

// flatten changes the shape only: (N, C, H, W) and (N, C * H * W) have their values in the same order.
struct Identity {
    static double value(double x) { return x; }
    static double derivative(double) { return 1; }
};

template <class Formula>
class Elementwise final : public Function {
  public:
    void forward(const Tensor& x, Tensor& y) override {
        for (std::size_t i = 0; i < y.size(); ++i) y.value[i] = Formula::value(x.value[i]);
    }
    void backward(Tensor& x, const Tensor& y) override {
        for (std::size_t i = 0; i < y.size(); ++i)
            x.gradient[i] += y.gradient[i] * Formula::derivative(y.value[i]);
    }
};

using Flatten = Elementwise<Identity>;

}  // namespace timetrial::reference
