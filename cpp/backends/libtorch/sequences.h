// Layers along time. Sequences are padded: ATen's LSTM then computes every step with oneDNN's kernel, as
// PyTorch's does, and what does not count is left out behind it.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/zeros.h>

#include <array>
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

inline Operation lstm(const Attributes& attributes, const Parameters& parameters) {
    const int64_t units = attributes.integer("units");
    const bool gives_all = attributes.word("output") == "all";
    std::vector<at::Tensor> given = parameters;
    // ATen has two biases or none; of one, the other stays 0.
    if (given.size() == 3) given.push_back(at::zeros({4 * units}, at::kFloat));
    return [=](const Inputs& x, Mode mode) {
        const at::Tensor start = at::zeros({1, x[0].size(0), units}, x[0].options());
        const std::array<at::Tensor, 2> states{start, start};
        const auto [all, last, cell] =
            at::lstm(x[0], states, given, given.size() > 2, 1, 0.0, mode == Mode::kTraining, false, true);
        if (x.size() == 1) return gives_all ? all : last.squeeze(0);
        if (gives_all) return at::mul(all, counted(x[0], x[1]));
        const at::Tensor place = x[1].sub(1).reshape({-1, 1, 1}).expand({-1, 1, units});
        return all.gather(1, place).squeeze(1);
    };
}

inline Operation mean_over_time(const Attributes&, const Parameters&) {
    return [](const Inputs& x, Mode) {
        if (x.size() == 1) return at::mean(x[0], 1);
        const at::Tensor count = x[1].unsqueeze(1).to(x[0].scalar_type());
        return at::mul(x[0], counted(x[0], x[1])).sum(1).div(count);
    };
}

}  // namespace timetrial::libtorch
