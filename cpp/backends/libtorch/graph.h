// The network as ATen operations in topological order, and its parameters.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/where.h>

#include <string>
#include <vector>

#include "catalog.h"
#include "timetrial/kinds.hpp"

namespace timetrial::libtorch {

// A tensor around memory that someone else owns.
inline at::Tensor view_of(const void* data, const Shape& shape, at::ScalarType type) {
    return at::from_blob(const_cast<void*>(data), shape, at::TensorOptions(type));
}

struct Parameter {
    std::string name;
    at::Tensor value;  // a leaf: autograd leaves the gradient in value.grad()
    const float* initial;
};

// Of a layer: not trained, but changed by training steps. What is kept is `factor` times what it is, rounded.
// So what it was given is remembered, and shown again bit for bit where nothing has moved it since.
struct State {
    std::string name;
    at::Tensor value, given;
    const float* initial;
    double factor;

    void write(const at::Tensor& from) {
        given.copy_(from);
        value.copy_(at::mul(given, factor));
    }
    at::Tensor read() const {
        return at::where(at::eq(value, at::mul(given, factor)), given, at::div(value, factor));
    }
};

struct Node {
    std::string name;
    Shape shape;  // of the output, N first
    at::ScalarType type = at::kFloat;
    Operation operation;  // empty for an input of the network and for the loss
    std::vector<std::size_t> inputs;
    std::vector<std::size_t> frees;  // those of its inputs that no later node reads
    std::vector<std::size_t> parameters;
};

// A loss of the node `of`.
struct Head {
    std::size_t node;  // the loss's own
    Loss loss;
    LossSpec spec;
};

struct Graph {
    std::vector<Node> nodes;
    std::vector<Parameter> parameters;
    std::vector<State> states;
    at::MemoryFormat format = at::MemoryFormat::Contiguous;  // of images and of the weights over them
    std::size_t prediction = 0;
    std::vector<std::size_t> inputs;  // of the network, that a layer reads
    std::vector<Head> heads;          // what is minimized is the sum of their losses

    // The outputs of the nodes. Without `keep` each is let go when its last reader is done: what the
    // backward pass needs, autograd holds.
    std::vector<at::Tensor> forward(const tt_batch& batch, Mode mode, bool keep = false) const {
        std::vector<at::Tensor> outputs = read_inputs(batch);
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            const Node& node = nodes[i];
            if (!node.operation) continue;
            outputs[i] = node.operation(inputs_of(node, outputs), mode);
            if (keep) continue;
            for (const std::size_t input : node.frees) outputs[input].reset();
        }
        return outputs;
    }

    static Inputs inputs_of(const Node& node, const std::vector<at::Tensor>& outputs) {
        Inputs inputs;
        inputs.reserve(node.inputs.size());
        for (const std::size_t input : node.inputs) inputs.push_back(outputs[input]);
        return inputs;
    }

    // One place for each node; those of the inputs are filled.
    std::vector<at::Tensor> read_inputs(const tt_batch& batch) const {
        std::vector<at::Tensor> outputs(nodes.size());
        for (const std::size_t input : inputs) {
            const Node& node = nodes[input];
            outputs[input] = view_of(batch_tensor(batch, node.name).data, node.shape, node.type);
            if (node.shape.size() == 4) outputs[input] = outputs[input].contiguous(format);
        }
        return outputs;
    }

    // One for each loss.
    std::vector<at::Tensor> read_targets(const tt_batch& batch) const {
        std::vector<at::Tensor> targets;
        for (const Head& head : heads) {
            const TargetSpec& target = head.spec.target;
            const Target found = target.of(batch);
            targets.push_back(found.labels != nullptr
                                  ? view_of(found.labels, {target.n}, at::kLong)
                                  : view_of(found.values, {target.n, target.classes}, at::kFloat));
        }
        return targets;
    }

    at::Tensor loss_of(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& targets) const {
        at::Tensor sum;
        for (std::size_t i = 0; i < heads.size(); ++i) {
            at::Tensor loss = weighted_loss(i, outputs, targets);
            sum = i == 0 ? loss : at::add(sum, loss);
        }
        return sum;
    }

    at::Tensor weighted_loss(std::size_t number, const std::vector<at::Tensor>& outputs,
                             const std::vector<at::Tensor>& targets) const {
        const Head& head = heads[number];
        const at::Tensor loss = head.loss(outputs[head.spec.prediction], targets[number]);
        return head.spec.weight == 1 ? loss : at::mul(loss, head.spec.weight);
    }

    void reset() {
        for (Parameter& parameter : parameters) {
            parameter.value.detach().copy_(
                view_of(parameter.initial, parameter.value.sizes().vec(), at::kFloat));
            parameter.value.mutable_grad().reset();
        }
        for (State& state : states)
            state.write(view_of(state.initial, state.value.sizes().vec(), at::kFloat));
    }
};

inline Graph make_graph(const tt_network& network, at::MemoryFormat format) {
    const std::vector<Layer> layers = read_layers(network);
    Graph graph;
    graph.format = format;
    graph.nodes.resize(layers.size());
    graph.prediction = network.output;
    for (const LossSpec& spec : read_losses(layers, network))
        graph.heads.push_back({spec.node, find_kind(loss_kinds, layers.at(spec.node)).make, spec});
    std::vector<std::size_t> last_reader(layers.size(), 0);
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const Layer& layer = layers[i];
        Node& node = graph.nodes[i];
        node.name = layer.name;
        node.shape = layer.shape;
        if (layer.dtype == TT_I64) node.type = at::kLong;
        if (layer.kind == "input" && layer.is_read_by_a_layer) graph.inputs.push_back(i);
        if (layer.kind == "input" || layer.is_loss()) continue;
        node.inputs = layer.inputs;
        for (const std::size_t input : node.inputs) last_reader[input] = i;
        std::vector<at::Tensor> values;
        if (layer.tied) values.push_back(graph.parameters[graph.nodes[*layer.tied].parameters[0]].value);
        std::size_t states = 0;
        for (const ParameterSpec& spec : layer.parameters) {
            if (spec.role == TT_STATE) {
                values.push_back(at::empty(spec.shape, at::kFloat));
                graph.states.push_back({spec.name, values.back(), at::empty(spec.shape, at::kFloat),
                                        spec.initial, state_factor(layer, states++)});
                continue;
            }
            const auto own = spec.shape.size() == 4 ? format : at::MemoryFormat::Contiguous;
            values.push_back(at::empty(spec.shape, at::kFloat, own).set_requires_grad(true));
            node.parameters.push_back(graph.parameters.size());
            graph.parameters.push_back({spec.name, values.back(), spec.initial});
        }
        node.operation = find_kind(operation_kinds, layer).make(layer.attributes, values);
    }
    for (const Head& head : graph.heads) last_reader[head.spec.prediction] = 0;  // read behind them all
    for (std::size_t i = 0; i < layers.size(); ++i)
        if (last_reader[i] != 0) graph.nodes[last_reader[i]].frees.push_back(i);
    graph.reset();
    return graph;
}

}  // namespace timetrial::libtorch
