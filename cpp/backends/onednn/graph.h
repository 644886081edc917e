// The network as the backend runs it: its nodes, and the programs of a step. Built once for a layout.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "layers/loss.h"
#include "onednn/catalog.h"
#include "onednn/update.h"

namespace timetrial::onednn {

struct Graph {
    std::vector<Node> nodes;  // a chain from the images to the prediction; the loss counts as one more
    std::string loss_name;
    std::unique_ptr<layers::Loss<float>> loss;
    std::vector<Parameter*> parameters;
    std::vector<Operation> forward;
    std::vector<Operation> backward;  // with the update of each layer as soon as its gradients are there
    Tensor prediction;                // plain, N x classes
    Tensor prediction_gradient;
    dnnl::memory scratchpad;  // of all primitives
    Facts facts;

    // The images of a step are where the batch says, for a flatten in front too.
    void read_images_at(void* images) {
        for (const Node& node : nodes) {
            if (node.layer && !dynamic_cast<const Flatten*>(node.layer.get())) return;
            node.value.made().memory.set_data_handle(images);
        }
    }

    const std::string& name_of(const Operation& operation) const {
        return operation.node < nodes.size() ? nodes[operation.node].name : loss_name;
    }
};

// From the images to the prediction. With one input for each layer, its ancestors are a chain.
inline std::vector<const timetrial::Layer*> read_chain(const std::vector<timetrial::Layer>& layers,
                                                       std::size_t prediction) {
    std::vector<const timetrial::Layer*> chain;
    for (const timetrial::Layer* layer = &layers[prediction];; layer = &layers[layer->inputs[0]]) {
        chain.insert(chain.begin(), layer);
        if (layer->kind == "input") return chain;
        if (layer->inputs.size() != 1)
            throw Unsupported("the backend has no layer '" + layer->kind + "' of several inputs (layer '" +
                              layer->name + "')");
    }
}

inline void add_parameters(const timetrial::Layer& from, Layer& to) {
    for (const ParameterSpec& spec : from.parameters) {
        if (!spec.initial) throw std::invalid_argument("parameter '" + spec.name + "' has no initial values");
        auto parameter = std::make_unique<Parameter>();
        parameter->name = spec.name;
        parameter->velocity_name = spec.name + ".velocity";
        parameter->shape = spec.shape;
        parameter->initial = spec.initial;
        to.parameters.push_back(std::move(parameter));
    }
}

// The nodes with their layers; nothing of oneDNN yet.
inline std::vector<Node> make_nodes(const std::vector<const timetrial::Layer*>& chain) {
    std::vector<Node> nodes(chain.size());
    for (std::size_t i = 0; i < chain.size(); ++i) {
        const timetrial::Layer& from = *chain[i];
        if (from.shape.size() != 2 && from.shape.size() != 4)
            throw Unsupported("the backend takes tensors of rank 2 (N x F) and 4 (N x C x H x W) only");
        nodes[i].index = i;
        nodes[i].name = from.name;
        nodes[i].shape = from.shape;
        if (i == 0) continue;
        nodes[i].layer = find_kind(layer_kinds, from).make(from.attributes);
        add_parameters(from, *nodes[i].layer);
        const auto* activation = dynamic_cast<const Activation*>(nodes[i].layer.get());
        if (activation && dynamic_cast<const Weighted*>(nodes[i - 1].layer.get()))
            nodes[i - 1].fused = activation->function();
    }
    return nodes;
}

inline void build_backward(Builder& builder, Graph& graph, const Sgd& sgd) {
    std::vector<Node>& nodes = graph.nodes;
    std::size_t first = 1;  // that learns: nothing before it needs a gradient
    while (first < nodes.size() && nodes[first].layer->parameters.empty()) ++first;
    for (std::size_t i = nodes.size(); i-- > first;) {
        Node &input = nodes[i - 1], &output = nodes[i];
        const auto* pooling = dynamic_cast<const Pooling*>(output.layer.get());
        auto* before = dynamic_cast<Activation*>(input.layer.get());
        if (i > first && pooling && pooling->takes_maximum() && before && before->is_relu())
            before->build_backward_behind_pooling(builder, input, output);
        output.layer->build_backward(builder, input, output, i > first);
        if (output.layer->parameters.empty()) continue;
        Update update(sgd);
        for (const auto& parameter : output.layer->parameters) update.add(*parameter);
        builder.backward.push_back({i, TT_DIRECTION_UPDATE, update});
    }
}

inline Graph make_graph(const dnnl::engine& engine, const dnnl::stream& stream, Layout layout,
                        const tt_build& build, Decisions& decisions) {
    const std::vector<timetrial::Layer> layers = read_layers(*build.network);
    const bool learns = (build.tasks & (TT_TRAIN | TT_GRADIENT)) != 0;
    Graph graph;
    graph.nodes = make_nodes(read_chain(layers, build.network->output));
    graph.loss_name = layers[build.network->loss].name;
    const timetrial::Layer& loss = layers[build.network->loss];
    graph.loss = find_kind(timetrial::layers::loss_kinds<float>, loss).make(loss.attributes);
    Builder builder(engine, stream, layout, learns, decisions);
    std::vector<Node>& nodes = graph.nodes;
    // The handle is each step's own batch.
    const Desc images = plain(nodes[0].shape);
    nodes[0].value = Value(Tensor{images, dnnl::memory(images, engine, DNNL_MEMORY_NONE)});
    for (std::size_t i = 1; i < nodes.size(); ++i) {
        nodes[i].layer->build_forward(builder, nodes[i - 1], nodes[i]);
        for (const auto& parameter : nodes[i].layer->parameters) graph.parameters.push_back(parameter.get());
    }
    Node& last = nodes.back();
    const Desc flat = plain(dims_of(last.value.desc()));
    graph.prediction = builder.in(builder.forward, {nodes.size(), graph.loss_name, TT_DIRECTION_FORWARD},
                                  last.value, flat, "prediction");
    if (learns) {
        graph.prediction_gradient = allocate(engine, flat);
        last.gradient = Value(graph.prediction_gradient);
        build_backward(builder, graph, read_sgd(build.optimizer));
    }
    graph.scratchpad = builder.finish();
    graph.forward = std::move(builder.forward);
    graph.backward = std::move(builder.backward);
    graph.facts = std::move(builder.facts);
    return graph;
}

}  // namespace timetrial::onednn
