// oneDNN's recurrent primitives, one for each cell: how they are described, and where our gates and biases
// are in theirs.
#pragma once

#include <array>
#include <cstddef>

#include "onednn/tensor.h"

namespace timetrial::onednn {

// Of what a recurrent primitive reads and writes; `state`: of h and c at both ends.
struct RecurrentFormats {
    Desc source, state, weights, recurrent, bias, states;
};

// One of the primitive's biases: of our gate, the sum of our bias and recurrent bias, or one of the two.
struct BiasPlace {
    std::size_t gate;
    bool has_first = true, has_second = true;
};

inline constexpr auto along = dnnl::rnn_direction::unidirectional_left2right;

// A cell has: `order`, our gate at each of the primitive's places; `biases`, the same of its biases;
// `has_cell_state`; the two primitives and how they are described.
struct LstmCell {
    using Forward = dnnl::lstm_forward;
    using Backward = dnnl::lstm_backward;
    static constexpr std::array<std::size_t, 4> order{0, 1, 2, 3};
    static constexpr std::array biases{BiasPlace{0}, BiasPlace{1}, BiasPlace{2}, BiasPlace{3}};
    static constexpr bool has_cell_state = true;

    static Described<Forward> forward(const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
                                      dnnl::prop_kind purpose, const RecurrentFormats& f) {
        return describe<Forward>(engine, attributes, purpose, along, f.source, f.state, f.state, f.weights,
                                 f.recurrent, f.bias, f.states, f.state, f.state);
    }
    static Described<Backward> backward(const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
                                        const Described<Forward>& hint, const RecurrentFormats& f) {
        return describe_backward<Backward>(engine, attributes, hint, dnnl::prop_kind::backward, along,
                                           f.source, f.state, f.state, f.weights, f.recurrent, f.bias,
                                           f.states, f.state, f.state, f.source, f.state, f.state, f.weights,
                                           f.recurrent, f.bias, f.states, f.state, f.state);
    }
};

// Those with one state; `algorithm`: what stands behind the purpose.
template <class ForwardOf, class BackwardOf, dnnl::algorithm... algorithm>
struct OneState {
    using Forward = ForwardOf;
    using Backward = BackwardOf;
    static constexpr bool has_cell_state = false;

    static Described<Forward> forward(const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
                                      dnnl::prop_kind purpose, const RecurrentFormats& f) {
        return describe<Forward>(engine, attributes, purpose, algorithm..., along, f.source, f.state,
                                 f.weights, f.recurrent, f.bias, f.states, f.state);
    }
    static Described<Backward> backward(const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
                                        const Described<Forward>& hint, const RecurrentFormats& f) {
        return describe_backward<Backward>(engine, attributes, hint, dnnl::prop_kind::backward, algorithm...,
                                           along, f.source, f.state, f.weights, f.recurrent, f.bias, f.states,
                                           f.state, f.source, f.state, f.weights, f.recurrent, f.bias,
                                           f.states, f.state);
    }
};

struct RnnCell
    : OneState<dnnl::vanilla_rnn_forward, dnnl::vanilla_rnn_backward, dnnl::algorithm::eltwise_tanh> {
    static constexpr std::array<std::size_t, 1> order{0};
    static constexpr std::array biases{BiasPlace{0}};
};

// Ours are r, z, n; its own u, r, o, of which u is z.
struct GruCellResetBefore : OneState<dnnl::gru_forward, dnnl::gru_backward> {
    static constexpr std::array<std::size_t, 3> order{1, 0, 2};
    static constexpr std::array biases{BiasPlace{1}, BiasPlace{0}, BiasPlace{2}};
};

// "Linear before reset": the reset behind the product, whose bias is a fourth one.
struct GruCell : OneState<dnnl::lbr_gru_forward, dnnl::lbr_gru_backward> {
    static constexpr std::array<std::size_t, 3> order{1, 0, 2};
    static constexpr std::array biases{BiasPlace{1}, BiasPlace{0}, BiasPlace{2, true, false},
                                       BiasPlace{2, false, true}};
};

}  // namespace timetrial::onednn
