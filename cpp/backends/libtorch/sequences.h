// Layers along time. Sequences are padded: unless the setting `lengths` says otherwise, ATen's recurrent
// functions compute every step, an LSTM's with oneDNN's kernel, as PyTorch's do. What does not count is left
// out behind them. Their own reverse knows no lengths of padded samples: each is turned round within its own
// length, goes forward, and its states are turned back.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gru.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/rnn_tanh.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <array>
#include <cstddef>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "lengths.h"
#include "operation.h"
#include "timetrial/directions.hpp"

namespace timetrial::libtorch {

// f32 (N, T, 1): 1 at the steps that count.
inline at::Tensor counted(const at::Tensor& x, const at::Tensor& lengths) {
    return at::lt(at::arange(x.size(1), at::kLong).unsqueeze(0), lengths.unsqueeze(1))
        .to(x.scalar_type())
        .unsqueeze(2);
}

inline Operation embedding(const Attributes&, const Parameters& parameters) {
    return [weight = parameters.at(0)](const Inputs& x, Mode) { return at::embedding(weight, x[0]); };
}

// ATen has two biases or none: of one, the other stays 0.
inline std::vector<at::Tensor> with_both_biases(std::vector<at::Tensor> parameters) {
    if (parameters.size() == 3) parameters.push_back(at::zeros(parameters[2].sizes(), at::kFloat));
    return parameters;
}

// (N, T, F) with the steps of each sample that count in reverse; the others stay where they are.
inline at::Tensor reversed(const at::Tensor& x, const Inputs& inputs) {
    if (inputs.size() == 1) return x.flip(1);
    const at::Tensor steps = at::arange(x.size(1), at::kLong).unsqueeze(0), lengths = inputs[1].unsqueeze(1);
    const at::Tensor place = at::where(at::lt(steps, lengths), lengths.sub(1).sub(steps), steps);
    return x.gather(1, place.unsqueeze(2).expand_as(x));
}

// What a direction of a recurrent layer gives of its states, behind every step and behind those that were
// computed; in the order in which it went.
inline at::Tensor shown(const Inputs& x, const Cut& cut, const at::Tensor& all, const at::Tensor& last,
                        bool gives_all) {
    if (gives_all && x.size() == 1) return all;
    if (gives_all) return at::mul(cut.all(all), counted(x[0], x[1]));
    if (x.size() == 1 || cut.is_packed()) return cut.last(last).squeeze(0);
    const at::Tensor place = x[1].sub(1).reshape({-1, 1, 1}).expand({-1, 1, all.size(2)});
    return all.gather(1, place).squeeze(1);
}

// `function`: (what is gone over, states at the start, weights and biases, whether there are biases, whether
// something is learned) to the states.
template <class States>
Operation recurrent(const Attributes& attributes, const Parameters& parameters, States function) {
    const auto count = along_time().counts.emplace_back(std::make_shared<int64_t>(0));
    const std::vector<TimeDirection> directions = time_directions(attributes);
    const auto each = static_cast<std::ptrdiff_t>(parameters.size() / directions.size());
    std::vector<std::vector<at::Tensor>> weights;
    for (auto first = parameters.begin(); first != parameters.end(); first += each)
        weights.push_back(with_both_biases({first, first + each}));
    return [=, units = attributes.integer("units"), gives_all = attributes.word("output") == "all"](
               const Inputs& x, Mode mode) {
        const at::Tensor start = at::zeros({1, x[0].size(0), units}, x[0].options());
        std::vector<at::Tensor> parts;
        for (std::size_t i = 0; i < directions.size(); ++i) {
            const bool is_reverse = directions[i] == TimeDirection::kReverse;
            int64_t same = 0;  // steps are counted once
            const Cut cut(is_reverse ? reversed(x[0], x) : x[0], x.size() > 1 ? x[1] : at::Tensor(),
                          i == 0 ? *count : same);
            const std::vector<at::Tensor>& given = weights[i];
            const auto [all, last] = function(cut, start, given, given.size() > 2, mode == Mode::kTraining);
            const at::Tensor found = shown(x, cut, all, last, gives_all);
            parts.push_back(is_reverse && gives_all ? reversed(found, x) : found);
        }
        return parts.size() == 1 ? parts[0] : at::cat(parts, -1);
    };
}

inline Operation lstm(const Attributes& attributes, const Parameters& parameters) {
    return recurrent(attributes, parameters,
                     [](const Cut& x, const at::Tensor& start, const std::vector<at::Tensor>& given,
                        bool has_biases, bool learns) {
                         const std::array<at::Tensor, 2> states{start, start};
                         const auto [all, last, cell] =
                             x.is_packed()
                                 ? at::lstm(x.data, x.batch_sizes, states, given, has_biases, 1, 0.0, learns,
                                            false)
                                 : at::lstm(x.data, states, given, has_biases, 1, 0.0, learns, false, true);
                         return std::tuple(all, last);
                     });
}

// Its last two tensors are the states; what they were is kept for the way back, which they leave behind.
inline Operation stateful_lstm(const Attributes& attributes, const Parameters& parameters) {
    const std::vector<at::Tensor> weights = with_both_biases({parameters.begin(), parameters.end() - 2});
    return [=, hidden = parameters.end()[-2], cell = parameters.end()[-1],
            gives_all = attributes.word("output") == "all"](const Inputs& x, Mode mode) {
        const bool learns = mode == Mode::kTraining;
        const auto start = [learns](const at::Tensor& state) {
            return (learns ? state.clone() : at::zeros_like(state)).unsqueeze(0);
        };
        const std::array<at::Tensor, 2> states{start(hidden), start(cell)};
        const auto [all, last, last_cell] =
            at::lstm(x[0], states, weights, weights.size() > 2, 1, 0.0, learns, false, true);
        if (learns) {
            hidden.copy_(last.detach().squeeze(0));
            cell.copy_(last_cell.detach().squeeze(0));
        }
        return gives_all ? all : last.squeeze(0);
    };
}

inline Unsupported no_reset_in_front() {
    return Unsupported("ATen's gru has its reset behind the product: it has reset_after = true only");
}

inline Operation gru(const Attributes& attributes, const Parameters& parameters) {
    if (attributes.integer("reset_after") == 0) throw no_reset_in_front();
    return recurrent(attributes, parameters,
                     [](const Cut& x, const at::Tensor& start, const std::vector<at::Tensor>& given,
                        bool has_biases, bool learns) {
                         if (x.is_packed())
                             return at::gru(x.data, x.batch_sizes, start, given, has_biases, 1, 0.0, learns,
                                            false);
                         return at::gru(x.data, start, given, has_biases, 1, 0.0, learns, false, true);
                     });
}

// Of a sequence and h in front of its first step.
inline Operation continued_gru(const Attributes& attributes, const Parameters& parameters) {
    if (attributes.integer("reset_after") == 0) throw no_reset_in_front();
    return [weights = with_both_biases(parameters), gives_all = attributes.word("output") == "all"](
               const Inputs& x, Mode mode) {
        const auto [all, last] = at::gru(x[0], x[1].unsqueeze(0), weights, weights.size() > 2, 1, 0.0,
                                         mode == Mode::kTraining, false, true);
        return gives_all ? all : last.squeeze(0);
    };
}

inline Operation rnn(const Attributes& attributes, const Parameters& parameters) {
    return recurrent(attributes, parameters,
                     [](const Cut& x, const at::Tensor& start, const std::vector<at::Tensor>& given,
                        bool has_biases, bool learns) {
                         if (x.is_packed())
                             return at::rnn_tanh(x.data, x.batch_sizes, start, given, has_biases, 1, 0.0,
                                                 learns, false);
                         return at::rnn_tanh(x.data, start, given, has_biases, 1, 0.0, learns, false, true);
                     });
}

inline Operation mean_over_time(const Attributes&, const Parameters&) {
    return [](const Inputs& x, Mode) {
        if (x.size() == 1) return at::mean(x[0], 1);
        const at::Tensor count = x[1].unsqueeze(1).to(x[0].scalar_type());
        return at::mul(x[0], counted(x[0], x[1])).sum(1).div(count);
    };
}

}  // namespace timetrial::libtorch
