// The update rules in double, one element after the other, as their papers write them.
#pragma once

#include <cmath>

#include "tensor.h"
#include "timetrial/optimizer.hpp"

namespace timetrial::reference {

// `now`: the rate of this step (with Adam's bias corrections), and the factors of gradient and weight.
inline void descend(Parameter& p, const Optimizer& is, const UpdateStep& now) {
    for (std::size_t i = 0; i < p.size(); ++i) {
        double& w = p.value[i];
        const double decay = is.decoupled || !p.decays ? 0 : is.weight_decay;
        const double g = now.scale * p.gradient[i] + decay * w;
        const auto state = [&](std::size_t which) -> double& { return p.states[which].second[i]; };
        double move = 0;
        switch (is.rule.kind) {
            case RuleKind::kSgd: {
                const double fresh = is.rate_inside ? now.rate * g : g;
                state(0) = is.momentum * state(0) + fresh;
                const double way = is.nesterov ? fresh + is.momentum * state(0) : state(0);
                move = is.rate_inside ? way : now.rate * way;
                break;
            }
            case RuleKind::kAdam:
            case RuleKind::kAdamW:
                state(0) = is.beta1 * state(0) + (1 - is.beta1) * g;
                state(1) = is.beta2 * state(1) + (1 - is.beta2) * g * g;
                move = now.rate * state(0) / (std::sqrt(state(1)) + is.epsilon);
                break;
            case RuleKind::kRmsprop:
                state(0) = is.rho * state(0) + (1 - is.rho) * g * g;
                move = now.rate * g / (std::sqrt(state(0)) + is.epsilon);
                break;
            case RuleKind::kAdagrad:
                state(0) += g * g;
                move = now.rate * g / (std::sqrt(state(0)) + is.epsilon);
                break;
            case RuleKind::kAdadelta: {
                state(0) = is.rho * state(0) + (1 - is.rho) * g * g;
                const double step = std::sqrt(state(1) + is.epsilon) / std::sqrt(state(0) + is.epsilon) * g;
                state(1) = is.rho * state(1) + (1 - is.rho) * step * step;
                move = now.rate * step;
                break;
            }
        }
        w = (p.decays ? now.keep : 1) * w - move;
    }
}

}  // namespace timetrial::reference
