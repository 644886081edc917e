// Kind -> layer. A new layer is one file and one line here.
#pragma once

#include <memory>
#include <string>

#include "layers/activation.h"
#include "layers/convolution.h"
#include "layers/dense.h"
#include "layers/loss.h"
#include "layers/pooling.h"
#include "timetrial/backend.hpp"

namespace timetrial::layers {

// What the plug-ins over this engine list in their description.
inline constexpr const char* kinds[] = {
    "input",         "dense", "conv2d",  "max_pool2d", "avg_pool2d",
    "relu",          "tanh",  "sigmoid", "flatten",    "softmax_cross_entropy",
    "squared_error", nullptr};

inline Window read_window(const Attributes& a) {
    return {a.integer("kernel_h"), a.integer("kernel_w"),     a.integer("stride_h"),
            a.integer("stride_w"), a.integer("padding_h", 0), a.integer("padding_w", 0)};
}

template <typename T, typename Product>
std::unique_ptr<Layer<T>> make_layer(const std::string& kind, const Attributes& attributes) {
    if (kind == "dense") return std::make_unique<Dense<T, Product>>();
    if (kind == "conv2d") return std::make_unique<Convolution<T, Product>>(read_window(attributes));
    if (kind == "max_pool2d") return std::make_unique<MaxPool<T>>(read_window(attributes));
    if (kind == "avg_pool2d") return std::make_unique<AveragePool<T>>(read_window(attributes));
    if (kind == "relu") return std::make_unique<Activation<T, Relu>>();
    if (kind == "tanh") return std::make_unique<Activation<T, Tanh>>();
    if (kind == "sigmoid") return std::make_unique<Activation<T, Sigmoid>>();
    if (kind == "flatten") return std::make_unique<Flatten<T>>();
    throw Unsupported("the backend has no layer '" + kind + "'");
}

}  // namespace timetrial::layers
