// add: y = the sum of its inputs.    concat: its inputs one behind the other, along axis 1.
#pragma once

#include "terms.h"

namespace timetrial::reference {

class Add final : public Sum<Add> {
  public:
    template <class Terms>
    void define(Terms terms, std::span<Tensor* const> inputs, Tensor& y) const {
        for (Tensor* const x : inputs) terms.value({y, 0, 1}, {*x, 0, 1}, y.size());
    }
};

class Concat final : public Sum<Concat> {
  public:
    template <class Terms>
    void define(Terms terms, std::span<Tensor* const> inputs, Tensor& y) const {
        const std::size_t batch = y.extent(0), per_sample = y.size() / batch;
        std::size_t first = 0;  // of this input within a sample of y
        for (Tensor* const x : inputs) {
            const std::size_t count = x->size() / batch;
            for (std::size_t n = 0; n < batch; ++n)
                terms.value({y, n * per_sample + first, 1}, {*x, n * count, 1}, count);
            first += count;
        }
    }
};

}  // namespace timetrial::reference
