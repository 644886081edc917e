// dense: y[n][u] = b[u] + sum over f of w[u][f] * x[n][f]
#pragma once

#include "layer.h"

namespace timetrial::reference {

class Dense final : public Function {
  public:
    void forward(const Tensor& x, Tensor& y) override {
        const std::size_t batch = x.extent(0), features = x.extent(1), units = y.extent(1);
        const double* w = parameters[0]->value.data();
        for (std::size_t n = 0; n < batch; ++n) {
            for (std::size_t u = 0; u < units; ++u) {
                double sum = has_bias() ? parameters[1]->value[u] : 0.0;
                for (std::size_t f = 0; f < features; ++f)
                    sum += w[u * features + f] * x.value[n * features + f];
                y.value[n * units + u] = sum;
            }
        }
    }

    // dy/dx = w, dy/dw = x, dy/db = 1.
    void backward(Tensor& x, const Tensor& y) override {
        const std::size_t batch = x.extent(0), features = x.extent(1), units = y.extent(1);
        const double* w = parameters[0]->value.data();
        double* gw = parameters[0]->gradient.data();
        for (std::size_t n = 0; n < batch; ++n) {
            for (std::size_t u = 0; u < units; ++u) {
                const double gy = y.gradient[n * units + u];
                for (std::size_t f = 0; f < features; ++f) {
                    x.gradient[n * features + f] += w[u * features + f] * gy;
                    gw[u * features + f] += x.value[n * features + f] * gy;
                }
                if (has_bias()) parameters[1]->gradient[u] += gy;
            }
        }
    }

  private:
    bool has_bias() const { return parameters.size() > 1; }
};

}  // namespace timetrial::reference
