// The network as the engine runs it: live nodes, their buffers, and which gradients anyone needs.
#pragma once

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "layers/catalog.h"

namespace timetrial::layers {

template <typename T>
struct Node {
    std::string name;
    std::string kind;
    std::vector<int64_t> external_shape;  // N x C x H x W or N x F, as the outside knows it
    Edge<T> output;
    Buffer<T> value;
    Buffer<T> gradient;
    std::unique_ptr<Layer<T>> layer;  // null: the images
    std::size_t input = 0;
    bool in_place = false;      // writes over its input, and its gradient over that of its output
    bool overwritten = false;   // by such a node: the value is no longer the node's own
    bool add_to_input = false;  // an earlier visited consumer has already written the input's gradient
};

template <typename T>
struct Graph {
    std::vector<Node<T>> nodes;  // nodes[0] is the images; the last is the prediction's, or an ancestor
    std::size_t prediction = 0;
    std::unique_ptr<Loss<T>> loss;
    std::string loss_name;
    std::vector<Parameter<T>*> parameters;
};

// Layers whose backward pass looks at their output, and only at that: they may write over their input, but
// not be written over.
inline bool is_activation(const std::string& kind) {
    return kind == "relu" || kind == "tanh" || kind == "sigmoid";
}

inline Shape read_shape(const std::vector<int64_t>& shape) {
    if (shape.size() == 2) return {shape[0], shape[1], 1, 1, true};
    if (shape.size() == 4) return {shape[0], shape[1], shape[2], shape[3], false};
    throw Unsupported("the backend takes tensors of rank 2 (N x F) and 4 (N x C x H x W) only");
}

// An activation that is its input's only consumer needs no memory of its own: half the traffic, half the
// room.
template <typename T>
void mark_in_place(Graph<T>& graph) {
    std::vector<int> consumers(graph.nodes.size());
    for (std::size_t i = 1; i < graph.nodes.size(); ++i) ++consumers[graph.nodes[i].input];
    for (std::size_t i = 1; i < graph.nodes.size(); ++i) {
        Node<T>& node = graph.nodes[i];
        Node<T>& input = graph.nodes[node.input];
        node.in_place = is_activation(node.kind) && !is_activation(input.kind) && node.input != 0 &&
                        consumers[node.input] == 1 && node.input != graph.prediction;
        if (node.in_place) input.overwritten = true;
    }
}

template <typename T, typename Product>
Graph<T> make_graph(const tt_network& network, int threads) {
    const std::vector<timetrial::Layer> layers = read_layers(network);
    std::vector<bool> live(layers.size());  // ancestors of the prediction: nothing else is computed
    live[network.output] = true;
    for (std::size_t i = layers.size(); i-- > 0;) {
        for (const std::size_t input : layers[i].inputs) live[input] = live[input] || live[i];
    }
    Graph<T> graph;
    const timetrial::Layer& loss = layers[network.loss];
    graph.loss = find_kind(loss_kinds<T>, loss).make(loss.attributes);
    graph.loss_name = layers[network.loss].name;
    std::vector<std::size_t> place(layers.size());
    std::vector<bool> learns;  // the node or something before it has parameters
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const timetrial::Layer& from = layers[i];
        if (!live[i]) continue;
        place[i] = graph.nodes.size();
        Node<T>& node = graph.nodes.emplace_back();
        node.name = from.name;
        node.kind = from.kind;
        node.external_shape = from.shape;
        node.output.shape = read_shape(from.shape);
        if (from.kind == "input") {
            if (place[i] != 0) throw Unsupported("the backend takes one input beside the labels");
            learns.push_back(false);
            continue;
        }
        if (from.inputs.size() != 1)
            throw Unsupported("the backend has no layer '" + from.kind + "' of several inputs");
        node.input = place[from.inputs[0]];
        node.layer = find_kind(layer_kinds<T, Product>, from).make(from.attributes);
        for (const ParameterSpec& spec : from.parameters) {
            if (!spec.initial)
                throw std::invalid_argument("parameter '" + spec.name + "' has no initial values");
            auto parameter = std::make_unique<Parameter<T>>();
            parameter->name = spec.name;
            parameter->velocity_name = spec.name + ".velocity";
            parameter->shape = spec.shape;
            parameter->initial = spec.initial;
            for (Buffer<T>* buffer : {&parameter->value, &parameter->gradient, &parameter->velocity}) {
                *buffer = Buffer<T>(parameter->size());
            }
            graph.parameters.push_back(parameter.get());
            node.layer->parameters.push_back(std::move(parameter));
        }
        learns.push_back(learns[node.input] || !from.parameters.empty());
    }
    graph.prediction = place[network.output];
    mark_in_place(graph);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        Node<T>& node = graph.nodes[i];
        if (node.in_place) {
            node.output.value = graph.nodes[node.input].output.value;
            node.output.gradient = graph.nodes[node.input].output.gradient;
            continue;
        }
        node.value = Buffer<T>(node.output.shape.size());
        node.output.value = node.value.data();
        if (learns[i] || i == graph.prediction) {
            node.gradient = Buffer<T>(node.output.shape.size());
            node.output.gradient = node.gradient.data();
        }
    }
    std::vector<bool> written(graph.nodes.size());
    for (std::size_t i = graph.nodes.size(); i-- > 1;) {
        Node<T>& node = graph.nodes[i];
        node.add_to_input = written[node.input];
        written[node.input] = true;
        node.layer->prepare(graph.nodes[node.input].output, node.output, threads);
    }
    return graph;
}

}  // namespace timetrial::layers
