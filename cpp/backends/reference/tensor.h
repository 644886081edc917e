// What a network is made of: values, and the gradient of the loss with respect to each of them.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "timetrial/backend.hpp"

namespace timetrial::reference {

using Values = std::vector<double>;

// Row-major. Gradients are *added to*: where a value is used twice (by two layers, or by one weight at many
// positions), the gradients of all its uses add up.
struct Tensor {
    Shape shape;
    Values value;
    Values gradient;

    explicit Tensor(const Shape& extents)
        : shape(extents), value(static_cast<std::size_t>(elements(extents))), gradient(value.size()) {}
    Tensor() = default;
    std::size_t size() const { return value.size(); }
    std::size_t extent(std::size_t axis) const { return static_cast<std::size_t>(shape[axis]); }
};

// A tensor that training changes.
struct Parameter : Tensor {
    std::string name;
    const float* initial;  // where reset() starts from
    bool decays;
    // Of the optimizer, by their names: what it keeps from step to step.
    std::vector<std::pair<std::string, Values>> states;

    explicit Parameter(const ParameterSpec& spec)
        : Tensor(spec.shape), name(spec.name), initial(spec.initial), decays(spec.decays) {
        if (!initial) throw std::invalid_argument("parameter '" + name + "' has no initial values");
    }
};

}  // namespace timetrial::reference
