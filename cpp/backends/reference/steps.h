// Which steps of a sequence (N, T, F) count.
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>

#include "tensor.h"

namespace timetrial::reference {

// Of sample n. A layer's second input, where it has one, are the lengths.
inline std::size_t steps_of(std::span<Tensor* const> inputs, std::size_t n) {
    const std::size_t steps = inputs[0]->extent(1);
    if (inputs.size() < 2) return steps;
    const double length = inputs[1]->value[n];
    if (!(length >= 1 && length <= static_cast<double>(steps)))
        throw std::invalid_argument("length " + std::to_string(static_cast<int64_t>(length)) + " of sample " +
                                    std::to_string(n) + " is outside 1 to " + std::to_string(steps));
    return static_cast<std::size_t>(length);
}

}  // namespace timetrial::reference
