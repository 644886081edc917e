// mean_over_time: y[n][f] = the mean of x[n][t][f] over the steps t that count.
#pragma once

#include "steps.h"
#include "terms.h"

namespace timetrial::reference {

class MeanOverTime final : public Sum<MeanOverTime> {
  public:
    template <class Terms>
    void define(Terms terms, std::span<Tensor* const> inputs, Tensor& y) const {
        Tensor& x = *inputs[0];
        const std::size_t batch = x.extent(0), steps = x.extent(1), features = x.extent(2);
        for (std::size_t n = 0; n < batch; ++n) {
            const std::size_t count = steps_of(inputs, n);
            for (std::size_t t = 0; t < count; ++t)
                terms.value({y, n * features, 1}, {x, (n * steps + t) * features, 1}, features,
                            1.0 / static_cast<double>(count));
        }
    }
};

}  // namespace timetrial::reference
