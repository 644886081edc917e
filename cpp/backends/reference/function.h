// What a layer is: a function y = f(x). What it computes is written once, as its definition; the gradients
// follow from that, in one of two ways:
//   - a layer that is a sum of products (dense, convolution, pooling): terms.h reads the same terms backward;
//   - a layer that is a formula (activations, losses): tape.h notes what was computed, and goes back along
//   it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "tensor.h"

namespace timetrial::reference {

// A layer may compute something else where nothing is learned (batch normalization does).
enum class Mode { kTraining, kInference };

// Who gets the gradient of a maximum that several values reach.
enum class Ties {
    kFirst,  // the first of them in row-major order: canonical in timetrial
    kAll,    // each of them the whole of it, as Theano's pooling does; no derivative, which would share it
};

class Function {
  public:
    virtual ~Function() = default;
    // y.value from the values of x.
    virtual void forward(std::span<Tensor* const> x, Tensor& y, Mode mode) = 0;
    // Adds to the gradients of x and of the parameters what y.gradient makes of them: the chain rule.
    virtual void backward(std::span<Tensor* const> x, Tensor& y) = 0;
    // Who judges a contender of another convention at ties asks for that.
    virtual void take_ties(Ties) {}
    // The states behind a training step; its forward and backward passes see those before it.
    virtual void keep_states(std::span<Tensor* const>) {}

    std::vector<std::unique_ptr<Parameter>> parameters;  // weight, then bias if there is one
    std::vector<std::unique_ptr<Parameter>> states;      // not trained, but changed by training steps
    Parameter* tied = nullptr;  // another layer's weight that is its own too; its parameters are without it

  protected:
    Parameter& weight() const { return tied ? *tied : *parameters[0]; }
    bool has_bias() const { return parameters.size() > (tied ? 0 : 1); }
    Parameter& bias() const { return *parameters.back(); }
};

}  // namespace timetrial::reference
