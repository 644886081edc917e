// dropout: y = m * x while it learns, with the mask m that the batch brings; y = x in inference.
#pragma once

#include "function.h"

namespace timetrial::reference {

// The mask is drawn, not computed, so nothing has a gradient there.
class Dropout final : public Function {
  public:
    void forward(std::span<Tensor* const> x, Tensor& y, Mode mode) override {
        y.value = x[0]->value;
        if (mode == Mode::kInference) return;
        for (std::size_t i = 0; i < y.size(); ++i) y.value[i] *= x[1]->value[i];
    }
    void backward(std::span<Tensor* const> x, Tensor& y) override {
        for (std::size_t i = 0; i < y.size(); ++i) x[0]->gradient[i] += x[1]->value[i] * y.gradient[i];
    }
};

}  // namespace timetrial::reference
