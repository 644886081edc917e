// upsample2d: y[n][c][i][j] = x[n][c][i / scale_h][j / scale_w], rounded down.
#pragma once

#include "terms.h"

namespace timetrial::reference {

class Upsample2d final : public Sum<Upsample2d> {
  public:
    explicit Upsample2d(const Attributes& attributes)
        : scale_h_(static_cast<std::size_t>(attributes.integer("scale_h"))),
          scale_w_(static_cast<std::size_t>(attributes.integer("scale_w"))) {}

    template <class Terms>
    void define(Terms terms, std::span<Tensor* const> inputs, Tensor& y) const {
        Tensor& x = *inputs[0];
        const std::size_t width = x.extent(3), rows = y.size() / y.extent(3);  // of all planes
        for (std::size_t row = 0; row < rows; ++row)
            for (std::size_t copy = 0; copy < scale_w_; ++copy)
                terms.value({y, row * y.extent(3) + copy, scale_w_}, {x, row / scale_h_ * width, 1}, width);
    }

  private:
    const std::size_t scale_h_, scale_w_;
};

}  // namespace timetrial::reference
