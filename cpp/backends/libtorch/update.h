// The update, by torch's own operations: the fused ones that make one pass over a parameter where torch has
// them (SGD, Adam, AdamW), otherwise the in-place operations that torch.optim calls one after the other.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <string>
#include <vector>

#include "graph.h"
#include "timetrial/optimizer.hpp"

namespace timetrial::libtorch {

class Update {
  public:
    Update() = default;
    Update(Optimizer optimizer, const Graph& graph) : is_(std::move(optimizer)) {
        for (const Parameter& parameter : graph.parameters) {
            values_.push_back(parameter.value.detach());
            steps_.push_back(at::zeros_like(values_.back().sum()));
            std::vector<std::string> names = is_.states_of(parameter.name);
            if (is_.rule.kind == RuleKind::kSgd && is_.momentum == 0) names.clear();  // nothing to keep
            for (std::size_t i = 0; i < names.size(); ++i)
                states_[i].push_back(at::zeros_like(values_.back()));
            names_.push_back(std::move(names));
        }
    }

    void reset() {
        taken_ = 0;
        for (auto& all : states_)
            for (at::Tensor& state : all) state.zero_();
    }

    void all(const Graph& graph) {
        begin(graph);
        run(graph, 0, values_.size());
    }

    // What all parameters have in common, when all gradients are there.
    void begin(const Graph& graph) {
        double norm = 0;
        if (is_.clip_norm > 0) {
            for (const Parameter& p : graph.parameters)
                norm = std::hypot(norm, p.value.grad().norm().item<double>());
        }
        now_ = is_.at(taken_, norm);
        rate_ = is_.rate_of(taken_++);
        if (now_.scale != 1)
            for (const Parameter& p : graph.parameters) p.value.grad().mul_(now_.scale);
    }

    void run(const Graph& graph, std::size_t begin, std::size_t end) {
        if (begin == end) return;
        std::vector<at::Tensor> gradients;
        for (std::size_t i = begin; i < end; ++i) gradients.push_back(graph.parameters[i].value.grad());
        const auto slice = [&](const std::vector<at::Tensor>& all) {
            const at::TensorList list(all);
            return all.empty() ? list : list.slice(begin, end - begin);
        };
        const at::TensorList values = slice(values_), first = slice(states_[0]), second = slice(states_[1]);
        const bool is_decoupled_sgd = is_.rule.kind == RuleKind::kSgd && is_.decoupled;
        switch (is_.rule.kind) {
            case RuleKind::kSgd:
                if (is_decoupled_sgd)
                    for (const at::Tensor& value : values) value.mul_(now_.keep);
                // With a velocity of 0 at first, "the first step" needs no case of its own.
                at::_fused_sgd_(values, gradients, first, is_decoupled_sgd ? 0 : is_.weight_decay,
                                is_.momentum, rate_, /*dampening=*/0, is_.nesterov, /*maximize=*/false,
                                /*is_first_step=*/false);
                return;
            case RuleKind::kAdam:
            case RuleKind::kAdamW: {
                const auto t = static_cast<double>(taken_);
                for (std::size_t i = begin; i < end; ++i) steps_[i].fill_(t);
                // Torch adds its epsilon to the corrected root, our rule to the root as it is.
                const double epsilon = is_.epsilon / std::sqrt(1 - std::pow(is_.beta2, t));
                const auto fused = is_.rule.kind == RuleKind::kAdam ? static_cast<Fused>(at::_fused_adam_)
                                                                    : static_cast<Fused>(at::_fused_adamw_);
                fused(values, gradients, first, second, {}, slice(steps_), rate_, is_.beta1, is_.beta2,
                      is_.weight_decay, epsilon, /*amsgrad=*/false, /*maximize=*/false, {}, {});
                return;
            }
            default:
                for (std::size_t i = begin; i < end; ++i) divide(i, gradients[i - begin]);
        }
    }

    // Of a parameter; none where there is nothing to keep.
    const std::vector<std::string>& names_of(std::size_t parameter) const { return names_.at(parameter); }
    const at::Tensor& state(std::size_t parameter, std::size_t which) const {
        return states_[which].at(parameter);
    }

  private:
    using Fused = void (*)(at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                           at::TensorList, double, double, double, double, double, bool, bool,
                           const ::std::optional<at::Tensor>&, const ::std::optional<at::Tensor>&);

    // RMSprop, Adagrad and Adadelta, as torch.optim computes one tensor.
    void divide(std::size_t i, const at::Tensor& raw) {
        const at::Tensor& value = values_[i];
        const at::Tensor& square = states_[0][i];
        const at::Tensor gradient = is_.weight_decay != 0 ? raw.add(value, is_.weight_decay) : raw;
        if (is_.rule.kind == RuleKind::kAdagrad) {
            square.addcmul_(gradient, gradient);
        } else {
            square.mul_(is_.rho).addcmul_(gradient, gradient, 1 - is_.rho);
        }
        if (is_.rule.kind != RuleKind::kAdadelta) {
            value.addcdiv_(gradient, square.sqrt().add_(is_.epsilon), -rate_);
            return;
        }
        const at::Tensor& update = states_[1][i];
        const at::Tensor move =
            update.add(is_.epsilon).sqrt_().div_(square.add(is_.epsilon).sqrt_()).mul_(gradient);
        update.mul_(is_.rho).addcmul_(move, move, 1 - is_.rho);
        value.add_(move, -rate_);
    }

    Optimizer is_;
    UpdateStep now_;
    double rate_ = 0;
    uint64_t taken_ = 0;  // steps since reset()
    std::vector<at::Tensor> values_, states_[2], steps_;
    std::vector<std::vector<std::string>> names_;  // of the states, by parameter
};

}  // namespace timetrial::libtorch
