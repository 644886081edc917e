// Kind -> ATen operation. A new layer is one entry here; the plug-in's list is made of these tables.
#pragma once

#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/add.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/avg_pool3d.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/flatten.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/upsample_nearest2d.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "operation.h"
#include "sequences.h"
#include "timetrial/kinds.hpp"

namespace timetrial::libtorch {

// The mean over the batch, of the prediction (N x F) and the target: labels (N), or as many numbers. Of one
// for each step (N x T x F): labels (N T), over those that are not -1.
using Loss = at::Tensor (*)(const at::Tensor& prediction, const at::Tensor& target);

// height, width
inline std::array<int64_t, 2> read_pair(const Attributes& attributes, const std::string& name,
                                        int64_t otherwise) {
    return {attributes.integer(name + "_h", otherwise), attributes.integer(name + "_w", otherwise)};
}

inline std::optional<at::Tensor> bias_of(const Parameters& parameters) {
    return parameters.size() > 1 ? std::make_optional(parameters[1]) : std::nullopt;
}

inline Operation dense(const Attributes&, const Parameters& parameters) {
    return [weight = parameters.at(0), bias = bias_of(parameters)](const Inputs& x, Mode) {
        return at::linear(x[0], weight, bias);
    };
}

// at::conv2d pads both sides alike: what one side has more is padded before.
inline Operation conv2d(const Attributes& attributes, const Parameters& parameters) {
    const auto stride = read_pair(attributes, "stride", 1), dilation = read_pair(attributes, "dilation", 1);
    const auto begin = read_pair(attributes, "padding", 0), end = read_pair(attributes, "padding_end", 0);
    const int64_t groups = attributes.integer("groups", 1);
    const auto more = [](int64_t side, int64_t other) { return std::max<int64_t>(side - other, 0); };
    const std::array<int64_t, 2> both{std::min(begin[0], end[0]), std::min(begin[1], end[1])};
    const std::array<int64_t, 4> rest{more(begin[1], end[1]), more(end[1], begin[1]), more(begin[0], end[0]),
                                      more(end[0], begin[0])};
    return [=, weight = parameters.at(0), bias = bias_of(parameters)](const Inputs& x, Mode) {
        const at::Tensor padded = begin == end ? x[0] : at::constant_pad_nd(x[0], rest);
        return at::conv2d(padded, weight, bias, stride, both, dilation, groups);
    };
}

inline Operation conv_transpose2d(const Attributes& attributes, const Parameters& parameters) {
    const auto stride = read_pair(attributes, "stride", 1), padding = read_pair(attributes, "padding", 0);
    const auto output_padding = read_pair(attributes, "output_padding", 0);
    return [=, weight = parameters.at(0), bias = bias_of(parameters)](const Inputs& x, Mode) {
        return at::conv_transpose2d(x[0], weight, bias, stride, padding, output_padding);
    };
}

inline Operation upsample2d(const Attributes& attributes, const Parameters&) {
    const auto scale = read_pair(attributes, "scale", 1);
    return [=](const Inputs& x, Mode) {
        return at::upsample_nearest2d(
            x[0], std::array<int64_t, 2>{x[0].size(2) * scale[0], x[0].size(3) * scale[1]});
    };
}

// `pool`: at::max_pool2d or at::avg_pool2d, whose other arguments are as wanted; padded zeros count.
template <class Pool>
Operation pooling(const Attributes& attributes, Pool pool) {
    const auto kernel = read_pair(attributes, "kernel", 1);
    const auto stride = read_pair(attributes, "stride", 1), padding = read_pair(attributes, "padding", 0);
    return [=](const Inputs& x, Mode) { return pool(x[0], kernel, stride, padding); };
}

inline Operation max_pool2d(const Attributes& attributes, const Parameters&) {
    return pooling(attributes, [](auto&&... of) { return at::max_pool2d(of...); });
}

inline Operation avg_pool2d(const Attributes& attributes, const Parameters&) {
    return pooling(attributes, [](auto&&... of) { return at::avg_pool2d(of...); });
}

// Torch moves the running variance by the unbiased one, which is n / (n - 1) times the biased one in every
// step. So ours is kept times that, and is what it should be wherever it is read.
inline double bessel(int64_t values, int64_t channels) {
    const auto n = static_cast<double>(values / channels);
    return n > 1 ? n / (n - 1) : 1;
}
inline double state_factor(const Layer& layer, std::size_t state) {
    return layer.kind == "batch_norm" && state == 1 ? bessel(elements(layer.shape), layer.shape[1]) : 1;
}

inline Operation batch_norm(const Attributes& attributes, const Parameters& p) {
    const double epsilon = attributes.number("epsilon"), momentum = attributes.number("momentum");
    return [=, weight = p.at(0), bias = p.at(1), mean = p.at(2), variance = p.at(3)](const Inputs& x,
                                                                                     Mode mode) {
        const bool learns = mode == Mode::kTraining;
        const at::Tensor kept = learns ? variance : at::mul(variance, 1 / bessel(x[0].numel(), x[0].size(1)));
        return at::batch_norm(x[0], weight, bias, mean, kept, learns, momentum, epsilon, false);
    };
}

// As torch.nn.functional composes it: the mean of squares over the window of channels by pooling.
inline Operation local_response_norm(const Attributes& attributes, const Parameters&) {
    const int64_t size = attributes.integer("size");
    const double alpha = attributes.number("alpha") *
                         (attributes.integer("alpha_over_size") != 0 ? 1.0 : static_cast<double>(size));
    const double beta = attributes.number("beta"), k = attributes.number("k");
    return [=](const Inputs& x, Mode) {
        const std::array<int64_t, 6> beside{0, 0, 0, 0, size / 2, size / 2};
        const at::Tensor padded = at::constant_pad_nd(at::mul(x[0], x[0]).unsqueeze(1), beside);
        const at::Tensor mean = at::avg_pool3d(padded, {size, 1, 1}, 1).squeeze(1);
        return x[0].div(mean.mul(alpha).add(k).pow(beta));
    };
}

inline Operation leaky_relu(const Attributes& attributes, const Parameters&) {
    return
        [slope = attributes.number("slope")](const Inputs& x, Mode) { return at::leaky_relu(x[0], slope); };
}

inline at::Tensor relu6(const at::Tensor& x) { return at::hardtanh(x, 0, 6); }

inline at::Tensor global_avg_pool2d(const at::Tensor& x) {
    return at::flatten(at::adaptive_avg_pool2d(x, {1, 1}), 1);
}

template <at::Tensor (*function)(const at::Tensor&)>
Operation plain(const Attributes&, const Parameters&) {
    return [](const Inputs& x, Mode) { return function(x[0]); };
}

// Of x and the mask that the batch brings.
inline Operation dropout(const Attributes&, const Parameters&) {
    return [](const Inputs& x, Mode mode) { return mode == Mode::kTraining ? at::mul(x[0], x[1]) : x[0]; };
}

inline Operation add(const Attributes&, const Parameters&) {
    return [](const Inputs& x, Mode) {
        at::Tensor sum = at::add(x[0], x[1]);
        for (std::size_t i = 2; i < x.size(); ++i) sum = at::add(sum, x[i]);
        return sum;
    };
}

inline Operation concat(const Attributes&, const Parameters&) {
    return [](const Inputs& x, Mode) { return at::cat(x, 1); };
}

inline at::Tensor flatten(const at::Tensor& x) { return at::flatten(x, 1); }

inline at::Tensor map_to_sequence(const at::Tensor& x) { return at::flatten(x.permute({0, 2, 1, 3}), 2); }

inline at::Tensor cross_entropy(const at::Tensor& x, const at::Tensor& labels) {
    return at::cross_entropy_loss(x, labels);
}

inline at::Tensor sequence_cross_entropy(const at::Tensor& x, const at::Tensor& labels) {
    return at::cross_entropy_loss(at::flatten(x, 0, 1), labels, {}, at::Reduction::Mean, -1);
}

inline at::Tensor squared_error(const at::Tensor& x, const at::Tensor& labels) {
    return at::mse_loss(x, at::one_hot(labels, x.size(1)).to(x.scalar_type()));
}

inline at::Tensor mean_squared_error(const at::Tensor& x, const at::Tensor& values) {
    return at::mse_loss(x, values.reshape(x.sizes()));
}

inline constexpr std::array operation_kinds = {
    Kind<MakeOperation>{"dense", dense},
    Kind<MakeOperation>{"tied_dense", dense},
    Kind<MakeOperation>{"conv2d", conv2d},
    Kind<MakeOperation>{"conv_transpose2d", conv_transpose2d},
    Kind<MakeOperation>{"upsample2d", upsample2d},
    Kind<MakeOperation>{"max_pool2d", max_pool2d},
    Kind<MakeOperation>{"avg_pool2d", avg_pool2d},
    Kind<MakeOperation>{"global_avg_pool2d", plain<global_avg_pool2d>},
    Kind<MakeOperation>{"batch_norm", batch_norm},
    Kind<MakeOperation>{"local_response_norm", local_response_norm},
    Kind<MakeOperation>{"leaky_relu", leaky_relu},
    Kind<MakeOperation>{"relu6", plain<relu6>},
    Kind<MakeOperation>{"relu", plain<at::relu>},
    Kind<MakeOperation>{"tanh", plain<at::tanh>},
    Kind<MakeOperation>{"sigmoid", plain<at::sigmoid>},
    Kind<MakeOperation>{"flatten", plain<flatten>},
    Kind<MakeOperation>{"map_to_sequence", plain<map_to_sequence>},
    Kind<MakeOperation>{"dropout", dropout},
    Kind<MakeOperation>{"embedding", embedding},
    Kind<MakeOperation>{"lstm", lstm},
    Kind<MakeOperation>{"stateful_lstm", stateful_lstm},
    Kind<MakeOperation>{"gru", gru},
    Kind<MakeOperation>{"continued_gru", continued_gru},
    Kind<MakeOperation>{"rnn", rnn},
    Kind<MakeOperation>{"mean_over_time", mean_over_time},
    Kind<MakeOperation>{"add", add},
    Kind<MakeOperation>{"concat", concat},
};

inline constexpr std::array loss_kinds = {
    Kind<Loss>{"softmax_cross_entropy", cross_entropy},
    Kind<Loss>{"sequence_cross_entropy", sequence_cross_entropy},
    Kind<Loss>{"squared_error", squared_error},
    Kind<Loss>{"mean_squared_error", mean_squared_error},
};

// A sum of losses is no function: read_losses() says what it adds.
inline constexpr std::array loss_sums = {Kind<std::nullptr_t>{"loss_sum", nullptr}};

inline constexpr auto kinds = kind_words(operation_kinds, loss_kinds, loss_sums);

}  // namespace timetrial::libtorch
