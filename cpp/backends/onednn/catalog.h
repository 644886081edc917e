// Kind -> layer. A new layer is one file and one line here; the plug-in's list is made of this table.
#pragma once

#include <array>
#include <memory>

#include "layers/loss.h"
#include "onednn/activation.h"
#include "onednn/batch_norm.h"
#include "onednn/convolution.h"
#include "onednn/dense.h"
#include "onednn/dropout.h"
#include "onednn/join.h"
#include "onednn/local_response_norm.h"
#include "onednn/pooling.h"
#include "onednn/recurrent.h"
#include "onednn/resampling.h"
#include "timetrial/kinds.hpp"

namespace timetrial::onednn {

inline PoolWindow read_window(const Attributes& a) {
    const dnnl::memory::dims padding{a.integer("padding_h", 0), a.integer("padding_w", 0)};
    return {{a.integer("stride_h"), a.integer("stride_w")},
            {a.integer("kernel_h"), a.integer("kernel_w")},
            padding,
            padding};
}

using MakeLayer = std::unique_ptr<Layer> (*)(const Attributes&);

template <class Made>
std::unique_ptr<Layer> plain(const Attributes&) {
    return std::make_unique<Made>();
}
template <dnnl::algorithm algorithm>
std::unique_ptr<Layer> pooling(const Attributes& attributes) {
    return std::make_unique<Pooling>(algorithm, read_window(attributes));
}
template <dnnl::algorithm forward, dnnl::algorithm backward>
std::unique_ptr<Layer> activation(const Attributes&) {
    return std::make_unique<Activation>(Eltwise{forward}, backward);
}
template <class Made>
std::unique_ptr<Layer> shaped(const Attributes& attributes) {
    return std::make_unique<Made>(attributes);
}
template <bool continues>
std::unique_ptr<Layer> gru(const Attributes& attributes) {
    if (attributes.integer("reset_after") != 0)
        return std::make_unique<Recurrent<GruCell, continues>>(attributes);
    return std::make_unique<Recurrent<GruCellResetBefore, continues>>(attributes);
}
inline std::unique_ptr<Layer> leaky_relu(const Attributes& attributes) {
    const auto slope = static_cast<float>(attributes.number("slope"));
    return std::make_unique<Activation>(Eltwise{dnnl::algorithm::eltwise_relu, slope},
                                        dnnl::algorithm::eltwise_relu_use_dst_for_bwd);
}
inline std::unique_ptr<Layer> relu6(const Attributes&) {
    return std::make_unique<Activation>(Eltwise{dnnl::algorithm::eltwise_clip_v2, 0, 6},
                                        dnnl::algorithm::eltwise_clip_v2_use_dst_for_bwd);
}
inline std::unique_ptr<Layer> convolution(const Attributes& a) {
    PoolWindow window = read_window(a);
    window.padding_end = {a.integer("padding_end_h"), a.integer("padding_end_w")};
    return std::make_unique<Convolution>(
        ConvolutionWindow{window, {a.integer("dilation_h"), a.integer("dilation_w")}, a.integer("groups")});
}
inline std::unique_ptr<Layer> conv_transpose(const Attributes& attributes) {
    return std::make_unique<ConvTranspose>(ConvolutionWindow{read_window(attributes), {1, 1}});
}

inline constexpr std::array layer_kinds = {
    Kind<MakeLayer>{"dense", plain<Dense>},
    Kind<MakeLayer>{"tied_dense", plain<Dense>},
    Kind<MakeLayer>{"conv2d", convolution},
    Kind<MakeLayer>{"conv_transpose2d", conv_transpose},
    Kind<MakeLayer>{"upsample2d", plain<Upsample>},
    Kind<MakeLayer>{"max_pool2d", pooling<dnnl::algorithm::pooling_max>},
    Kind<MakeLayer>{"avg_pool2d", pooling<dnnl::algorithm::pooling_avg_include_padding>},
    Kind<MakeLayer>{"global_avg_pool2d", plain<GlobalPooling>},
    Kind<MakeLayer>{"batch_norm", shaped<BatchNorm>},
    Kind<MakeLayer>{"local_response_norm", shaped<LocalResponseNorm>},
    Kind<MakeLayer>{"leaky_relu", leaky_relu},
    Kind<MakeLayer>{"relu6", relu6},
    Kind<MakeLayer>{"relu",
                    activation<dnnl::algorithm::eltwise_relu, dnnl::algorithm::eltwise_relu_use_dst_for_bwd>},
    Kind<MakeLayer>{"tanh",
                    activation<dnnl::algorithm::eltwise_tanh, dnnl::algorithm::eltwise_tanh_use_dst_for_bwd>},
    Kind<MakeLayer>{
        "sigmoid",
        activation<dnnl::algorithm::eltwise_logistic, dnnl::algorithm::eltwise_logistic_use_dst_for_bwd>},
    Kind<MakeLayer>{"flatten", plain<Flatten>},
    Kind<MakeLayer>{"map_to_sequence", plain<MapToSequence>},
    Kind<MakeLayer>{"dropout", plain<Dropout>},
    Kind<MakeLayer>{"embedding", plain<Embedding>},
    Kind<MakeLayer>{"lstm", shaped<Recurrent<LstmCell>>},
    Kind<MakeLayer>{"stateful_lstm", shaped<Recurrent<LstmCell>>},
    Kind<MakeLayer>{"gru", gru<false>},
    Kind<MakeLayer>{"continued_gru", gru<true>},
    Kind<MakeLayer>{"rnn", shaped<Recurrent<RnnCell>>},
    Kind<MakeLayer>{"mean_over_time", plain<MeanOverTime>},
    Kind<MakeLayer>{"add", plain<Add>},
    Kind<MakeLayer>{"concat", plain<Concat>},
};

// For the plug-in's description. The losses are those of the layers engine: a loss has nothing for oneDNN to
// do.
inline constexpr auto kinds = kind_words(layer_kinds, layers::loss_kinds<float>, layers::loss_sums);

}  // namespace timetrial::onednn
