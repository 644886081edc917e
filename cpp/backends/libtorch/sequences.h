// Layers along time. Sequences are padded: ATen's recurrent functions then compute every step, an LSTM's with
// oneDNN's kernel, as PyTorch's do, and what does not count is left out behind them.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gru.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/rnn_tanh.h>
#include <ATen/ops/zeros.h>

#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "operation.h"

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

// What a recurrent layer gives of its states, behind every step (N, T, H) and behind all of them (1, N, H).
inline at::Tensor shown(const Inputs& x, const at::Tensor& all, const at::Tensor& last, bool gives_all) {
    if (x.size() == 1) return gives_all ? all : last.squeeze(0);
    if (gives_all) return at::mul(all, counted(x[0], x[1]));
    const at::Tensor place = x[1].sub(1).reshape({-1, 1, 1}).expand({-1, 1, all.size(2)});
    return all.gather(1, place).squeeze(1);
}

// `function`: (input, states at the start, weights and biases, whether there are biases, mode) to the states.
template <class States>
Operation recurrent(const Attributes& attributes, const Parameters& parameters, States function) {
    return [=, units = attributes.integer("units"), gives_all = attributes.word("output") == "all",
            given = with_both_biases(parameters)](const Inputs& x, Mode mode) {
        const at::Tensor start = at::zeros({1, x[0].size(0), units}, x[0].options());
        const auto [all, last] = function(x[0], start, given, given.size() > 2, mode == Mode::kTraining);
        return shown(x, all, last, gives_all);
    };
}

inline Operation lstm(const Attributes& attributes, const Parameters& parameters) {
    return recurrent(attributes, parameters,
                     [](const at::Tensor& x, const at::Tensor& start, const std::vector<at::Tensor>& given,
                        bool has_biases, bool learns) {
                         const std::array<at::Tensor, 2> states{start, start};
                         const auto [all, last, cell] =
                             at::lstm(x, states, given, has_biases, 1, 0.0, learns, false, true);
                         return std::tuple(all, last);
                     });
}

inline Operation gru(const Attributes& attributes, const Parameters& parameters) {
    if (attributes.integer("reset_after") == 0)
        throw Unsupported("ATen's gru has its reset behind the product: it has reset_after = true only");
    return recurrent(attributes, parameters,
                     [](const at::Tensor& x, const at::Tensor& start, const std::vector<at::Tensor>& given,
                        bool has_biases, bool learns) {
                         return at::gru(x, start, given, has_biases, 1, 0.0, learns, false, true);
                     });
}

inline Operation rnn(const Attributes& attributes, const Parameters& parameters) {
    return recurrent(attributes, parameters,
                     [](const at::Tensor& x, const at::Tensor& start, const std::vector<at::Tensor>& given,
                        bool has_biases, bool learns) {
                         return at::rnn_tanh(x, start, given, has_biases, 1, 0.0, learns, false, true);
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
