// Kind -> layer. A new layer is one file and one line here.
#pragma once

#include <memory>
#include <string>

#include "onednn/activation.h"
#include "onednn/convolution.h"
#include "onednn/dense.h"
#include "onednn/pooling.h"

namespace timetrial::onednn {

inline PoolWindow read_window(const Attributes& a) {
    const dnnl::memory::dims padding{a.integer("padding_h", 0), a.integer("padding_w", 0)};
    return {{a.integer("stride_h"), a.integer("stride_w")},
            {a.integer("kernel_h"), a.integer("kernel_w")},
            padding,
            padding};
}

inline std::unique_ptr<Layer> make_layer(const std::string& kind, const Attributes& attributes) {
    using dnnl::algorithm;
    if (kind == "dense") return std::make_unique<Dense>();
    if (kind == "conv2d") return std::make_unique<Convolution>(read_window(attributes));
    if (kind == "max_pool2d")
        return std::make_unique<Pooling>(algorithm::pooling_max, read_window(attributes));
    if (kind == "avg_pool2d")
        return std::make_unique<Pooling>(algorithm::pooling_avg_include_padding, read_window(attributes));
    if (kind == "relu")
        return std::make_unique<Activation>(algorithm::eltwise_relu, algorithm::eltwise_relu_use_dst_for_bwd);
    if (kind == "tanh")
        return std::make_unique<Activation>(algorithm::eltwise_tanh, algorithm::eltwise_tanh_use_dst_for_bwd);
    if (kind == "sigmoid")
        return std::make_unique<Activation>(algorithm::eltwise_logistic,
                                            algorithm::eltwise_logistic_use_dst_for_bwd);
    if (kind == "flatten") return std::make_unique<Flatten>();
    throw Unsupported("the backend has no layer '" + kind + "'");
}

}  // namespace timetrial::onednn
