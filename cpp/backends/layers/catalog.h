// Kind -> layer. A new layer is one file and one line here; the plug-ins' lists are made of these tables.
#pragma once

#include <array>
#include <memory>

#include "layers/activation.h"
#include "layers/convolution.h"
#include "layers/dense.h"
#include "layers/dropout.h"
#include "layers/join.h"
#include "layers/loss.h"
#include "layers/pooling.h"
#include "timetrial/kinds.hpp"

namespace timetrial::layers {

inline Window read_window(const Attributes& a) {
    return {a.integer("kernel_h"), a.integer("kernel_w"),     a.integer("stride_h"),
            a.integer("stride_w"), a.integer("padding_h", 0), a.integer("padding_w", 0)};
}

template <typename T>
using MakeLayer = std::unique_ptr<Layer<T>> (*)(const Attributes&);

template <typename T, typename Made>
std::unique_ptr<Layer<T>> plain(const Attributes&) {
    return std::make_unique<Made>();
}
template <typename T, typename Made>
std::unique_ptr<Layer<T>> windowed(const Attributes& attributes) {
    return std::make_unique<Made>(read_window(attributes));
}

template <typename T, typename Product>
inline constexpr std::array layer_kinds = {
    Kind<MakeLayer<T>>{"dense", plain<T, Dense<T, Product>>},
    Kind<MakeLayer<T>>{"conv2d", windowed<T, Convolution<T, Product>>},
    Kind<MakeLayer<T>>{"max_pool2d", windowed<T, MaxPool<T>>},
    Kind<MakeLayer<T>>{"avg_pool2d", windowed<T, AveragePool<T>>},
    Kind<MakeLayer<T>>{"relu", plain<T, Activation<T, Relu>>},
    Kind<MakeLayer<T>>{"tanh", plain<T, Activation<T, Tanh>>},
    Kind<MakeLayer<T>>{"sigmoid", plain<T, Activation<T, Sigmoid>>},
    Kind<MakeLayer<T>>{"flatten", plain<T, Flatten<T>>},
    Kind<MakeLayer<T>>{"dropout", plain<T, Dropout<T>>},
    Kind<MakeLayer<T>>{"add", plain<T, Add<T>>},
    Kind<MakeLayer<T>>{"concat", plain<T, Concat<T>>},
};

// What a plug-in with this product lists in its description.
template <typename Product>
inline constexpr auto kinds = kind_words(layer_kinds<float, Product>, loss_kinds<float>, loss_sums);

}  // namespace timetrial::layers
