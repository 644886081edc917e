// Kind -> layer. A new layer is one file and one line here; the plug-in's lists are made of these tables.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "activations.h"
#include "batch_norm.h"
#include "cells.h"
#include "conv2d.h"
#include "dense.h"
#include "dropout.h"
#include "embedding.h"
#include "joins.h"
#include "local_response_norm.h"
#include "losses.h"
#include "mean_over_time.h"
#include "pooling.h"
#include "recurrent.h"
#include "timetrial/kinds.hpp"
#include "upsample.h"

namespace timetrial::reference {

template <class Base, class Made>
std::unique_ptr<Base> plain(const Attributes&) {
    return std::make_unique<Made>();
}

template <class Made>
std::unique_ptr<Function> shaped(const Attributes& attributes) {
    return std::make_unique<Made>(attributes);
}

inline std::unique_ptr<Function> leaky_relu(const Attributes& attributes) {
    return std::make_unique<Elementwise<LeakyRelu>>(LeakyRelu{attributes.number("slope")});
}

template <Begins begins>
std::unique_ptr<Function> gru(const Attributes& attributes) {
    if (attributes.integer("reset_after") != 0)
        return std::make_unique<Recurrent<GruCell, begins>>(attributes);
    return std::make_unique<Recurrent<GruCellResetBefore, begins>>(attributes);
}

using FunctionKind = Kind<std::unique_ptr<Function> (*)(const Attributes&)>;
using LossKind = Kind<std::unique_ptr<Loss> (*)(const Attributes&)>;

inline constexpr std::array functions = {
    FunctionKind{"dense", plain<Function, Dense>},
    FunctionKind{"tied_dense", plain<Function, Dense>},
    FunctionKind{"conv2d", shaped<Conv2d>},
    FunctionKind{"conv_transpose2d", shaped<ConvTranspose2d>},
    FunctionKind{"upsample2d", shaped<Upsample2d>},
    FunctionKind{"max_pool2d", shaped<MaxPool2d>},
    FunctionKind{"avg_pool2d", shaped<AvgPool2d>},
    FunctionKind{"global_avg_pool2d", plain<Function, GlobalAvgPool2d>},
    FunctionKind{"batch_norm", shaped<BatchNorm>},
    FunctionKind{"local_response_norm", shaped<LocalResponseNorm>},
    FunctionKind{"leaky_relu", leaky_relu},
    FunctionKind{"relu6", plain<Function, Elementwise<Relu6>>},
    FunctionKind{"relu", plain<Function, Elementwise<Relu>>},
    FunctionKind{"tanh", plain<Function, Elementwise<Tanh>>},
    FunctionKind{"sigmoid", plain<Function, Elementwise<Sigmoid>>},
    FunctionKind{"flatten", plain<Function, Flatten>},
    FunctionKind{"map_to_sequence", plain<Function, MapToSequence>},
    FunctionKind{"dropout", plain<Function, Dropout>},
    FunctionKind{"embedding", plain<Function, Embedding>},
    FunctionKind{"lstm", shaped<Recurrent<LstmCell>>},
    FunctionKind{"stateful_lstm", shaped<Recurrent<LstmCell, Begins::kAtState>>},
    FunctionKind{"gru", gru<Begins::kAtZero>},
    FunctionKind{"continued_gru", gru<Begins::kAtInput>},
    FunctionKind{"rnn", shaped<Recurrent<RnnCell>>},
    FunctionKind{"mean_over_time", plain<Function, MeanOverTime>},
    FunctionKind{"add", plain<Function, Add>},
    FunctionKind{"concat", plain<Function, Concat>},
};

inline constexpr std::array losses = {
    LossKind{"softmax_cross_entropy", plain<Loss, MeanLoss<SoftmaxCrossEntropy>>},
    LossKind{"sequence_cross_entropy", plain<Loss, MeanLoss<SoftmaxCrossEntropy>>},
    LossKind{"squared_error", plain<Loss, MeanLoss<SquaredError>>},
    LossKind{"mean_squared_error", plain<Loss, MeanLoss<MeanSquaredError>>},
};

// A sum of losses is no function: read_losses() says what it adds.
inline constexpr std::array sums = {Kind<std::nullptr_t>{"loss_sum", nullptr}};

// For the plug-in's description.
inline constexpr auto kinds = kind_words(functions, losses, sums);

}  // namespace timetrial::reference
