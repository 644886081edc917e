// The update: torch's own fused SGD, which makes one pass over a parameter, its gradient and its velocity.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/zeros_like.h>

#include <vector>

#include "graph.h"
#include "timetrial/backend.hpp"

namespace timetrial::libtorch {

class Update {
  public:
    Update() = default;
    Update(const Sgd& sgd, const Graph& graph) : sgd_(sgd) {
        for (const Parameter& parameter : graph.parameters) {
            values_.push_back(parameter.value.detach());
            if (sgd.momentum != 0) velocities_.push_back(at::zeros_like(values_.back()));
        }
    }

    void reset() {
        for (at::Tensor& velocity : velocities_) velocity.zero_();
    }

    // With a velocity of 0 at first, "the first step" needs no case of its own.
    void all(const Graph& graph) { run(graph, 0, values_.size()); }

    void run(const Graph& graph, std::size_t begin, std::size_t end) {
        if (begin == end) return;
        std::vector<at::Tensor> gradients;
        for (std::size_t i = begin; i < end; ++i) gradients.push_back(graph.parameters[i].value.grad());
        const at::TensorList velocities(velocities_);
        at::_fused_sgd_(at::TensorList(values_).slice(begin, end - begin), gradients,
                        velocities.empty() ? velocities : velocities.slice(begin, end - begin),
                        sgd_.weight_decay, sgd_.momentum, sgd_.learning_rate, /*dampening=*/0,
                        /*nesterov=*/false, /*maximize=*/false, /*is_first_step=*/false);
    }

    // Empty without momentum: there is nothing to keep.
    const std::vector<at::Tensor>& velocities() const { return velocities_; }

  private:
    Sgd sgd_;
    std::vector<at::Tensor> values_, velocities_;
};

}  // namespace timetrial::libtorch
