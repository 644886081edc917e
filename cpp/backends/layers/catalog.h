// Kind -> layer. A new layer is one file and one line here; the plug-ins' lists are made of these tables.
#pragma once

#include <array>
#include <memory>

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/chosen_convolution.h"
#include "layers/dense.h"
#include "layers/dropout.h"
#include "layers/embedding.h"
#include "layers/gru_cell.h"
#include "layers/join.h"
#include "layers/local_response_norm.h"
#include "layers/loss.h"
#include "layers/lstm_cell.h"
#include "layers/mean_over_time.h"
#include "layers/pooling.h"
#include "layers/recurrent.h"
#include "layers/rnn_cell.h"
#include "layers/thin_groups.h"
#include "layers/upsample.h"
#include "timetrial/kinds.hpp"

namespace timetrial::layers {

inline Window read_window(const Attributes& a) {
    return {a.integer("kernel_h"),      a.integer("kernel_w"),     a.integer("stride_h"),
            a.integer("stride_w"),      a.integer("padding_h", 0), a.integer("padding_w", 0),
            a.integer("dilation_h", 1), a.integer("dilation_w", 1)};
}

template <typename T>
using MakeLayer = std::unique_ptr<Layer<T>> (*)(const timetrial::Layer&);

template <typename T, typename Made>
std::unique_ptr<Layer<T>> plain(const timetrial::Layer&) {
    return std::make_unique<Made>();
}
template <typename T, typename Made>
std::unique_ptr<Layer<T>> windowed(const timetrial::Layer& from) {
    return std::make_unique<Made>(read_window(from.attributes));
}
template <typename T, typename Product>
std::unique_ptr<Layer<T>> convolution(const timetrial::Layer& from) {
    constexpr int64_t thin = 8;  // channels of a group: beyond that products are as fast
    const int64_t groups = from.attributes.integer("groups", 1), of_group = from.parameters.at(0).shape.at(1);
    if (groups > 1 && of_group <= thin)
        return std::make_unique<ThinGroups<T>>(read_window(from.attributes), groups);
    return std::make_unique<ChosenConvolution<T, Product>>(read_window(from.attributes), groups);
}
template <typename T>
std::unique_ptr<Layer<T>> upsample(const timetrial::Layer& from) {
    return std::make_unique<Upsample<T>>(from.attributes.integer("scale_h"),
                                         from.attributes.integer("scale_w"));
}
template <typename T, typename Made>
std::unique_ptr<Layer<T>> shaped(const timetrial::Layer& from) {
    return std::make_unique<Made>(from.attributes);
}
template <typename T, typename Product, Begins begins>
std::unique_ptr<Layer<T>> gru(const timetrial::Layer& from) {
    if (from.attributes.integer("reset_after") != 0)
        return std::make_unique<Recurrent<T, Product, GruCell<T>, begins>>(from.attributes);
    return std::make_unique<Recurrent<T, Product, GruCellResetBefore<T>, begins>>(from.attributes);
}
template <typename T, typename Formula>
std::unique_ptr<Layer<T>> activation(const timetrial::Layer& from) {
    return std::make_unique<Activation<T, Formula>>(Formula(from.attributes));
}

template <typename T, typename Product>
inline constexpr std::array layer_kinds = {
    Kind<MakeLayer<T>>{"dense", plain<T, Dense<T, Product>>},
    Kind<MakeLayer<T>>{"tied_dense", plain<T, Dense<T, Product>>},
    Kind<MakeLayer<T>>{"conv2d", convolution<T, Product>},
    Kind<MakeLayer<T>>{"conv_transpose2d", windowed<T, ConvTranspose<T, Product>>},
    Kind<MakeLayer<T>>{"max_pool2d", windowed<T, MaxPool<T>>},
    Kind<MakeLayer<T>>{"avg_pool2d", windowed<T, AveragePool<T>>},
    Kind<MakeLayer<T>>{"global_avg_pool2d", plain<T, GlobalAveragePool<T>>},
    Kind<MakeLayer<T>>{"batch_norm", shaped<T, BatchNorm<T>>},
    Kind<MakeLayer<T>>{"local_response_norm", shaped<T, LocalResponseNorm<T>>},
    Kind<MakeLayer<T>>{"leaky_relu", activation<T, LeakyRelu>},
    Kind<MakeLayer<T>>{"relu6", plain<T, Activation<T, Relu6>>},
    Kind<MakeLayer<T>>{"relu", plain<T, Activation<T, Relu>>},
    Kind<MakeLayer<T>>{"tanh", plain<T, Activation<T, Tanh>>},
    Kind<MakeLayer<T>>{"sigmoid", plain<T, Activation<T, Sigmoid>>},
    Kind<MakeLayer<T>>{"flatten", plain<T, Flatten<T>>},
    Kind<MakeLayer<T>>{"map_to_sequence", plain<T, Flatten<T, true>>},
    Kind<MakeLayer<T>>{"upsample2d", upsample<T>},
    Kind<MakeLayer<T>>{"dropout", plain<T, Dropout<T>>},
    Kind<MakeLayer<T>>{"embedding", shaped<T, Embedding<T>>},
    Kind<MakeLayer<T>>{"lstm", shaped<T, Recurrent<T, Product, LstmCell<T>>>},
    Kind<MakeLayer<T>>{"stateful_lstm", shaped<T, Recurrent<T, Product, LstmCell<T>, Begins::kAtState>>},
    Kind<MakeLayer<T>>{"gru", gru<T, Product, Begins::kAtZero>},
    Kind<MakeLayer<T>>{"continued_gru", gru<T, Product, Begins::kAtInput>},
    Kind<MakeLayer<T>>{"rnn", shaped<T, Recurrent<T, Product, RnnCell<T>>>},
    Kind<MakeLayer<T>>{"mean_over_time", plain<T, MeanOverTime<T>>},
    Kind<MakeLayer<T>>{"add", plain<T, Add<T>>},
    Kind<MakeLayer<T>>{"concat", plain<T, Concat<T>>},
};

// What a plug-in with this product lists in its description.
template <typename Product>
inline constexpr auto kinds = kind_words(layer_kinds<float, Product>, loss_kinds<float>, loss_sums);

}  // namespace timetrial::layers
