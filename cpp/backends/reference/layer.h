// What a layer is: a function y = f(x) that can also pass gradients back.
//
// Backpropagation is the chain rule, applied from the loss towards the input. Write gy for dL/dy, the
// gradient of the loss with respect to a layer's output. A layer then owes two things:
//   dL/dx = gy * dy/dx, for the layer before it, and
//   dL/dw = gy * dy/dw, for its own parameters.
// Both are *added*: where a value is used twice (by two layers, or by one weight at many positions), the
// gradients of all its uses add up.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "timetrial/backend.hpp"

namespace timetrial::reference {

using Values = std::vector<double>;

// Values of a node's output, row-major, and the gradient of the loss with respect to them.
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
    std::string velocity_name;
    const float* initial;  // where reset() starts from
    Values velocity;

    explicit Parameter(const ParameterSpec& spec)
        : Tensor(spec.shape),
          name(spec.name),
          velocity_name(spec.name + ".velocity"),
          initial(spec.initial),
          velocity(size()) {
        if (!initial) throw std::invalid_argument("parameter '" + name + "' has no initial values");
    }
};

class Function {
  public:
    virtual ~Function() = default;
    // y.value from x.value.
    virtual void forward(const Tensor& x, Tensor& y) = 0;
    // x.gradient and the parameters' gradients, both added to, from y.gradient.
    virtual void backward(Tensor& x, const Tensor& y) = 0;

    std::vector<std::unique_ptr<Parameter>> parameters;  // weight, then bias if there is one
};

}  // namespace timetrial::reference
