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

#include "disturb.h"
#include "tensor.h"

namespace timetrial::reference {

// A layer may compute something else where nothing is learned (batch normalization does).
enum class Mode { kTraining, kInference };

// What is a convention where values are equal, and frameworks have others than the canonical one.
struct Ties {
    // Who gets the gradient of a maximum that several values reach: the first of them in row-major order, or
    // each the whole of it, as Theano's pooling does; no derivative, which would share it.
    bool all = false;
    double slope = 0;  // of a rectifier at 0: 0, 1/2 or 1
};

class Function {
  public:
    virtual ~Function() = default;
    // y.value from the values of x.
    virtual void forward(std::span<Tensor* const> x, Tensor& y, Mode mode) = 0;
    // Adds to the gradients of x and of the parameters what y.gradient makes of them: the chain rule.
    virtual void backward(std::span<Tensor* const> x, Tensor& y) = 0;
    // Moves x, where it is not there, to where the function decides as `shown`, a value of y, says: to just
    // below 0, where it is above and 0 came out of a rectifier. Nobody may have shown x, or flush what is
    // subnormal.
    virtual void decide(std::span<Tensor* const>, const Values&) {}
    // Who judges a contender of another convention at ties asks for that.
    virtual void take_ties(const Ties&) {}
    // The states behind a training step; its forward and backward passes see those before it.
    virtual void keep_states(std::span<Tensor* const>) {}

    std::vector<std::unique_ptr<Parameter>> parameters;  // weight, then bias if there is one
    std::vector<std::unique_ptr<Parameter>> states;      // not trained, but changed by training steps
    Disturbance* disturbance = nullptr;  // by which sums of backward are off; null: by nothing
    Parameter* tied = nullptr;  // another layer's weight that is its own too; its parameters are without it

  protected:
    Parameter& weight() const { return tied ? *tied : *parameters[0]; }
    bool has_bias() const { return parameters.size() > (tied ? 0 : 1); }
    Parameter& bias() const { return *parameters.back(); }
};

}  // namespace timetrial::reference
