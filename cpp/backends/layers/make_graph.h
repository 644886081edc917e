// From the network as the outside describes it to the nodes that the engine runs.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "layers/catalog.h"
#include "layers/memory.h"
#include "timetrial/optimizer.hpp"

namespace timetrial::layers {

inline Shape read_shape(const std::vector<int64_t>& shape) {
    if (shape.size() == 1) return {shape[0], 1, 1, 1, true};
    if (shape.size() == 2) return {shape[0], shape[1], 1, 1, true};
    if (shape.size() == 3) return {shape[0], shape[1] * shape[2], 1, 1, true, shape[1]};
    if (shape.size() == 4) return {shape[0], shape[1], shape[2], shape[3], false};
    throw Unsupported("the backend takes tensors of up to rank 4 (N x C x H x W) only");
}

// Where each loss leaves its gradient. `written`: nodes whose gradient has a first part.
template <typename T>
void add_heads(Graph<T>& graph, std::vector<bool>& written) {
    const std::vector<int> readers = readers_of(graph);
    for (Head<T>& head : graph.heads) {
        head.prediction = graph.nodes[head.of].output;
        head.add = written[head.of];
        written[head.of] = true;
        if (readers[head.of] == 1 && head.prediction.gradient != nullptr) continue;
        head.gradient = Buffer<T>(head.prediction.shape.size());
        head.prediction.gradient = head.gradient.data();
    }
}

template <typename T, typename Product>
Graph<T> make_graph(const tt_network& network, int threads, const Optimizer& optimizer, Algorithm convolution,
                    bool recomputes) {
    const std::vector<timetrial::Layer> layers = read_layers(network);
    Graph<T> graph;
    graph.rooms = std::make_unique<Rooms<T>>(threads);
    std::vector<std::size_t> place(layers.size());
    std::vector<bool> learns;  // the node or something before it has parameters
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const timetrial::Layer& from = layers[i];
        // Losses, and what they alone read.
        if (from.is_loss() || (from.kind == "input" && !from.is_read_by_a_layer)) continue;
        place[i] = graph.nodes.size();
        Node<T>& node = graph.nodes.emplace_back();
        node.name = from.name;
        node.external_shape = from.shape;
        node.output.shape = read_shape(from.shape);
        if (from.kind == "input") {
            node.is_mask = from.role == TT_MASK;
            node.is_whole = from.dtype == TT_I64;
            ++graph.n_inputs;
            learns.push_back(false);
            continue;
        }
        bool is_behind_parameters = !from.parameters.empty() || from.tied.has_value();
        for (const std::size_t input : from.inputs) {
            node.inputs.push_back(place[input]);
            is_behind_parameters = is_behind_parameters || learns[place[input]];
        }
        learns.push_back(is_behind_parameters);
        node.layer = find_kind(layer_kinds<T, Product>, from).make(from);
        for (const ParameterSpec& spec : from.parameters) {
            if (!spec.initial)
                throw std::invalid_argument("parameter '" + spec.name + "' has no initial values");
            auto parameter = std::make_unique<Parameter<T>>();
            parameter->name = spec.name;
            parameter->shape = spec.shape;
            parameter->initial = spec.initial;
            parameter->value = Buffer<T>(parameter->size());
            if (spec.role == TT_STATE) {
                graph.states.push_back(parameter.get());
                node.layer->states.push_back(std::move(parameter));
                continue;
            }
            for (const std::string& state : optimizer.states_of(spec.name))
                parameter->states.emplace_back(state, Buffer<T>(parameter->size()));
            graph.parameters.push_back(parameter.get());
            node.layer->parameters.push_back(std::move(parameter));
        }
        if (from.tied) {
            node.layer->tied = graph.nodes[place[*from.tied]].layer->parameters[0].get();
            node.layer->tied->is_tied = true;
        }
    }
    graph.output = place[network.output];
    for (const LossSpec& spec : read_losses(layers, network)) {
        const timetrial::Layer& loss = layers[spec.node];
        Head<T>& head = graph.heads.emplace_back();
        head.name = loss.name;
        head.loss = find_kind(loss_kinds<T>, loss).make(loss.attributes);
        head.of = place[spec.prediction];
        head.target = spec.target;
        head.weight = static_cast<T>(spec.weight);
    }
    if constexpr (!is_judge<T>) mark_in_place(graph, learns);
    mark_by_channel(graph);
    if (recomputes && !is_judge<T>) mark_recomputed(graph);
    allot_values(graph);
    allot_gradients(graph, learns);
    std::vector<bool> written(graph.nodes.size());
    add_heads(graph, written);
    for (std::size_t i = graph.nodes.size(); i-- > graph.n_inputs;) {
        Node<T>& node = graph.nodes[i];
        for (const std::size_t input : node.inputs) {
            node.reads.push_back({&graph.nodes[input].output, written[input]});
            written[input] = true;
        }
        node.layer->equip(convolution, *graph.rooms);
        node.layer->prepare(node.reads, node.output, threads);
        for (const auto& parameter : node.layer->parameters)
            if (!parameter->passing) parameter->gradient = Buffer<T>(parameter->size());
    }
    return graph;
}

}  // namespace timetrial::layers
