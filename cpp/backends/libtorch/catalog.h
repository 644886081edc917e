// Kind -> ATen operation. A new layer is one line here (and its name in `kinds`).
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/flatten.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tanh.h>

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "timetrial/backend.hpp"

namespace timetrial::libtorch {

inline constexpr const char* kinds[] = {
    "input",         "dense", "conv2d",  "max_pool2d", "avg_pool2d",
    "relu",          "tanh",  "sigmoid", "flatten",    "softmax_cross_entropy",
    "squared_error", nullptr};

using Operation = std::function<at::Tensor(const at::Tensor& input)>;
// The mean over the batch, of the prediction (N x classes) and the labels (N).
using Loss = std::function<at::Tensor(const at::Tensor& prediction, const at::Tensor& labels)>;

// height, width
inline std::array<int64_t, 2> read_pair(const Attributes& attributes, const std::string& name,
                                        int64_t otherwise) {
    return {attributes.integer(name + "_h", otherwise), attributes.integer(name + "_w", otherwise)};
}

// `parameters`: weight, and bias if the layer has one. ATen's operations are the ones that torch.nn calls,
// so rows here and rows of PyTorch run the same kernels.
inline Operation make_operation(const Layer& layer, const std::vector<at::Tensor>& parameters) {
    const Attributes& attributes = layer.attributes;
    if (layer.kind == "dense" || layer.kind == "conv2d") {
        const at::Tensor weight = parameters.at(0);
        const std::optional<at::Tensor> bias =
            parameters.size() > 1 ? std::make_optional(parameters[1]) : std::nullopt;
        if (layer.kind == "dense") return [=](const at::Tensor& x) { return at::linear(x, weight, bias); };
        const auto stride = read_pair(attributes, "stride", 1), padding = read_pair(attributes, "padding", 0);
        return [=](const at::Tensor& x) { return at::conv2d(x, weight, bias, stride, padding); };
    }
    if (layer.kind == "max_pool2d" || layer.kind == "avg_pool2d") {
        const auto kernel = read_pair(attributes, "kernel", 1);
        const auto stride = read_pair(attributes, "stride", 1), padding = read_pair(attributes, "padding", 0);
        if (layer.kind == "max_pool2d")
            return [=](const at::Tensor& x) { return at::max_pool2d(x, kernel, stride, padding); };
        return [=](const at::Tensor& x) { return at::avg_pool2d(x, kernel, stride, padding); };
    }
    if (layer.kind == "relu") return [](const at::Tensor& x) { return at::relu(x); };
    if (layer.kind == "tanh") return [](const at::Tensor& x) { return at::tanh(x); };
    if (layer.kind == "sigmoid") return [](const at::Tensor& x) { return at::sigmoid(x); };
    if (layer.kind == "flatten") return [](const at::Tensor& x) { return at::flatten(x, 1); };
    throw Unsupported("the backend has no layer '" + layer.kind + "' (layer '" + layer.name + "')");
}

inline Loss make_loss(const Layer& layer) {
    if (layer.kind == "softmax_cross_entropy")
        return
            [](const at::Tensor& x, const at::Tensor& labels) { return at::cross_entropy_loss(x, labels); };
    if (layer.kind == "squared_error")
        return [](const at::Tensor& x, const at::Tensor& labels) {
            return at::mse_loss(x, at::one_hot(labels, x.size(1)).to(x.scalar_type()));
        };
    throw Unsupported("the backend has no loss '" + layer.kind + "' (layer '" + layer.name + "')");
}

}  // namespace timetrial::libtorch
