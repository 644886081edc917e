// The network as the engine runs it: live nodes, their buffers, and which gradients anyone needs.
#pragma once

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "layers/catalog.h"
#include "timetrial/optimizer.hpp"

namespace timetrial::layers {

template <typename T>
struct Node {
    std::string name;
    std::vector<int64_t> external_shape;  // N x C x H x W, N x F, ..., as the outside knows it
    Edge<T> output;
    Buffer<T> value;
    Buffer<T> gradient;               // empty where another node's serves
    std::unique_ptr<Layer<T>> layer;  // null: an input of the network
    bool is_mask = false;             // of the network's inputs: nobody reads it in inference
    bool is_whole = false;            // of them too: whole numbers
    std::vector<std::size_t> inputs;
    std::vector<Input<T>> reads;  // their outputs
    bool in_place = false;        // writes over its first input, and that one's gradient over its output's
    bool overwritten = false;     // by such a node: the value is no longer the node's own
    bool by_channel = false;      // threads share its channels where it learns, not the images
    Buffer<T> nudge;              // empty, or what is added to the output (Engine::write_tensor)
};

// In double precision the engine judges: every activation stays as it was computed, and takes nudges.
template <typename T>
inline constexpr bool is_judge = std::is_same_v<T, double>;

// A loss where it stands: of the node `of`. Its gradient is that of the node where nobody else reads that,
// and otherwise a part of it.
template <typename T>
struct Head {
    std::string name;
    std::unique_ptr<Loss<T>> loss;
    std::size_t of = 0;
    TargetSpec target;
    T weight = 1;
    Edge<T> prediction;  // of the node, with this loss's own gradient
    Buffer<T> gradient;  // of its own, if it is a part
    bool add = false;    // another part is there already
};

template <typename T>
struct Graph {
    std::vector<Node<T>> nodes;  // the inputs first; all lead to a loss
    std::size_t n_inputs = 0;
    std::size_t output = 0;      // the prediction
    std::vector<Head<T>> heads;  // what is minimized is the sum of their losses
    std::vector<Parameter<T>*> parameters;
    std::vector<Parameter<T>*> states;  // of layers
    std::unique_ptr<Room<T>> room;      // of the layers, which keep its address
};

inline Shape read_shape(const std::vector<int64_t>& shape) {
    if (shape.size() == 1) return {shape[0], 1, 1, 1, true};
    if (shape.size() == 2) return {shape[0], shape[1], 1, 1, true};
    if (shape.size() == 3) return {shape[0], shape[1] * shape[2], 1, 1, true, shape[1]};
    if (shape.size() == 4) return {shape[0], shape[1], shape[2], shape[3], false};
    throw Unsupported("the backend takes tensors of up to rank 4 (N x C x H x W) only");
}

// An activation that is its input's only consumer needs no memory of its own: half the traffic, half the
// room. So does a sum over one of its inputs, which becomes the first; that one must have a gradient, since
// the sum's is the same.
template <typename T>
void mark_in_place(Graph<T>& graph, const std::vector<bool>& learns) {
    std::vector<int> consumers(graph.nodes.size());
    for (const Node<T>& node : graph.nodes)
        for (const std::size_t input : node.inputs) ++consumers[input];
    for (const Head<T>& head : graph.heads) ++consumers[head.of];
    for (std::size_t i = graph.n_inputs; i < graph.nodes.size(); ++i) {
        Node<T>& node = graph.nodes[i];
        if (!node.layer->may_write_over_input()) continue;
        const auto over = std::find_if(node.inputs.begin(), node.inputs.end(), [&](std::size_t input) {
            return input >= graph.n_inputs && consumers[input] == 1 && learns[input] == learns[i] &&
                   !graph.nodes[input].layer->needs_its_output();
        });
        if (over == node.inputs.end()) continue;
        graph.nodes[*over].overwritten = true;
        node.in_place = true;
        std::iter_swap(node.inputs.begin(), over);
    }
}

// Where threads share the channels. What treats each value alone goes along with a layer of images that has
// to, so that nobody waits between them, and a row stays in the cache from one to the other.
template <typename T>
void mark_by_channel(Graph<T>& graph) {
    for (std::size_t i = graph.n_inputs; i < graph.nodes.size(); ++i) {
        Node<T>& node = graph.nodes[i];
        const auto is_by_channel = [&](std::size_t input) { return graph.nodes[input].by_channel; };
        const auto is_given = [&](std::size_t input) { return input < graph.n_inputs; };
        node.by_channel = node.layer->is_by_channel() ||
                          (node.layer->is_elementwise() && !node.output.shape.flat &&
                           node.inputs.size() <= Channels<T>::most_inputs &&
                           std::any_of(node.inputs.begin(), node.inputs.end(), is_by_channel) &&
                           std::none_of(node.inputs.begin(), node.inputs.end(), is_given));
    }
}

// The node whose memory a node uses.
template <typename T>
std::size_t home_of(const Graph<T>& graph, std::size_t i) {
    while (graph.nodes[i].in_place) i = graph.nodes[i].inputs[0];
    return i;
}

// A gradient is needed from the way back of the first that reads its node until the node's own. Then images'
// memory serves the next of the same shape. Nobody waits for that: of one shape each thread has the same part
// as long as all share alike, and where they go over to sharing otherwise, all meet (regions.h).
template <typename T>
void allot_gradients(Graph<T>& graph, const std::vector<bool>& learns) {
    std::vector<Edge<T>> free;
    const auto allot = [&](std::size_t node) {
        const std::size_t i = home_of(graph, node);
        Edge<T>& output = graph.nodes[i].output;
        if (!learns[i] || output.gradient != nullptr) return;
        const auto fits = [&](const Edge<T>& one) { return one.shape == output.shape; };
        const auto found = std::find_if(free.begin(), free.end(), fits);
        if (found == free.end()) {
            graph.nodes[i].gradient = Buffer<T>(output.shape.size());
            output.gradient = graph.nodes[i].gradient.data();
        } else {
            output.gradient = found->gradient;
            free.erase(found);
        }
    };
    std::vector<bool> kept(graph.nodes.size());
    for (const Head<T>& head : graph.heads) allot(head.of);
    for (std::size_t i = graph.nodes.size(); i-- > graph.n_inputs;) {
        Node<T>& node = graph.nodes[i];
        for (const std::size_t input : node.inputs) allot(input);
        const std::size_t home = home_of(graph, i);
        node.output.gradient = graph.nodes[home].output.gradient;
        if (node.layer->keeps_output_gradient()) kept[home] = true;
        if (home == i && learns[i] && !kept[i] && !node.output.shape.flat) free.push_back(node.output);
    }
}

// Where each loss leaves its gradient. `written`: nodes whose gradient has a first part.
template <typename T>
void add_heads(Graph<T>& graph, std::vector<bool>& written) {
    std::vector<int> readers(graph.nodes.size());
    for (const Node<T>& node : graph.nodes)
        for (const std::size_t input : node.inputs) ++readers[input];
    for (const Head<T>& head : graph.heads) ++readers[head.of];
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
Graph<T> make_graph(const tt_network& network, int threads, const Optimizer& optimizer,
                    Algorithm convolution) {
    const std::vector<timetrial::Layer> layers = read_layers(network);
    Graph<T> graph;
    graph.room = std::make_unique<Room<T>>(threads);
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
            parameter->gradient = Buffer<T>(parameter->size());
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
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        Node<T>& node = graph.nodes[i];
        if (!node.in_place) node.value = Buffer<T>(node.output.shape.size());
        node.output.value = graph.nodes[home_of(graph, i)].value.data();
    }
    allot_gradients(graph, learns);
    std::vector<bool> written(graph.nodes.size());
    add_heads(graph, written);
    for (std::size_t i = graph.nodes.size(); i-- > graph.n_inputs;) {
        Node<T>& node = graph.nodes[i];
        for (const std::size_t input : node.inputs) {
            node.reads.push_back({&graph.nodes[input].output, written[input]});
            written[input] = true;
        }
        node.layer->equip(convolution, *graph.room);
        node.layer->prepare(node.reads, node.output, threads);
    }
    return graph;
}

}  // namespace timetrial::layers
