// dense: y[n][u] = b[u] + sum over f of w[u][f] * x[n][f]; of a sequence (N, T, F) every step is such an n.
#pragma once

#include "terms.h"

namespace timetrial::reference {

class Dense final : public Sum<Dense> {
  public:
    template <class Terms>
    void define(Terms terms, std::span<Tensor* const> inputs, Tensor& y) const {
        Tensor& x = *inputs[0];
        const std::size_t features = weight().extent(1), units = weight().extent(0);
        for (std::size_t n = 0; n < x.size() / features; ++n) {
            if (has_bias()) terms.value({y, n * units, 1}, {bias(), 0, 1}, units);
            for (std::size_t u = 0; u < units; ++u)
                terms.product({y, n * units + u, 0}, {weight(), u * features, 1}, {x, n * features, 1},
                              features);
        }
    }
};

}  // namespace timetrial::reference
