// The network as the backend runs it: its nodes, and the programs of a step. Built once for a layout.
#pragma once

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "layers/loss.h"
#include "onednn/catalog.h"
#include "onednn/recomputed.h"
#include "onednn/update.h"

namespace timetrial::onednn {

// A loss where it stands: of the node `of`, whose value it reads in plain form.
struct Head {
    std::string name;
    std::unique_ptr<layers::Loss<float>> loss;
    std::size_t of = 0;
    TargetSpec target;
    float weight = 1;
    Tensor prediction, gradient;  // plain, N x F
};

struct Graph {
    std::vector<Node> nodes;  // from the inputs to the predictions; losses stand behind them
    // Nodes whose memory is an input's in the batch: that input, and a flatten of it; node and input.
    std::vector<std::pair<std::size_t, std::size_t>> over_inputs;
    std::vector<Head> heads;  // what is minimized is the sum of their losses; the first is of the prediction
    std::vector<Parameter*> parameters;
    std::vector<Parameter*> states;  // of layers
    std::vector<Operation> forward;
    std::vector<Operation> backward;  // with the update of each layer as soon as its gradients are there
    // Of the update under way: the updates of the layers read them here.
    std::shared_ptr<layers::UpdateNumbers<float>> numbers = std::make_shared<layers::UpdateNumbers<float>>();
    SharedMemory shared;
    Facts facts;
    layers::Recomputed recomputed;
    StepTally tally;

    // The inputs of a step are where the batch says. `data(node)` is that place, for the node of an input.
    template <class DataOf>
    void read_inputs_at(DataOf data) {
        for (const auto& [node, input] : over_inputs)
            nodes[node].value.made().memory.set_data_handle(data(nodes[input]));
    }

    const std::string& name_of(const Operation& operation) const {
        return operation.node < nodes.size() ? nodes[operation.node].name
                                             : heads[operation.node - nodes.size()].name;
    }
};

inline void add_parameters(const timetrial::Layer& from, const Optimizer& optimizer, Layer& to) {
    for (const ParameterSpec& spec : from.parameters) {
        if (!spec.initial) throw std::invalid_argument("parameter '" + spec.name + "' has no initial values");
        auto parameter = std::make_unique<Parameter>();
        parameter->name = spec.name;
        parameter->shape = spec.shape;
        parameter->initial = spec.initial;
        if (spec.role == TT_STATE) {
            to.states.push_back(std::move(parameter));
            continue;
        }
        for (const std::string& state : optimizer.states_of(spec.name))
            parameter->states.emplace_back(state, Tensor());
        to.parameters.push_back(std::move(parameter));
    }
}

// The nodes with their layers, and the losses; nothing of oneDNN yet.
inline std::vector<Node> make_nodes(const std::vector<timetrial::Layer>& layers, const Optimizer& optimizer,
                                    const tt_network& network, std::vector<Head>& heads) {
    std::vector<Node> nodes;
    std::vector<std::size_t> place(layers.size());
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const timetrial::Layer& from = layers[i];
        // Losses, and what they alone read.
        if (from.is_loss() || (from.kind == "input" && !from.is_read_by_a_layer)) continue;
        if (from.shape.size() > 4)
            throw Unsupported("the backend takes tensors of up to rank 4 (N x C x H x W) only");
        place[i] = nodes.size();
        Node& node = nodes.emplace_back();
        node.index = place[i];
        node.name = from.name;
        node.shape = from.shape;
        if (from.kind == "input") continue;
        const bool is_dense = from.kind == "dense" || from.kind == "tied_dense";
        const bool is_each_step = is_dense && from.shape.size() == 3;
        node.layer = is_each_step ? std::unique_ptr<Layer>(std::make_unique<DenseSteps>())
                                  : find_kind(layer_kinds, from).make(from.attributes);
        node.learns = !from.parameters.empty() || from.tied.has_value();
        add_parameters(from, optimizer, *node.layer);
        if (from.tied) {
            node.layer->tied = nodes[place[*from.tied]].layer->parameters[0].get();
            node.layer->tied->is_tied = true;
        }
        for (const std::size_t input : from.inputs) {
            node.inputs.push_back(place[input]);
            node.learns = node.learns || nodes[place[input]].learns;
            ++nodes[place[input]].readers;
        }
    }
    for (const LossSpec& spec : read_losses(layers, network)) {
        const timetrial::Layer& loss = layers[spec.node];
        Head& head = heads.emplace_back();
        head.name = loss.name;
        head.loss = find_kind(timetrial::layers::loss_kinds<float>, loss).make(loss.attributes);
        head.of = place[spec.prediction];
        head.target = spec.target;
        head.weight = static_cast<float>(spec.weight);
        ++nodes[head.of].readers;
    }
    for (const Node& node : nodes) {
        const auto* activation = dynamic_cast<const Activation*>(node.layer.get());
        if (!activation) continue;
        Node& input = nodes[node.inputs[0]];
        const bool may_apply_it =
            dynamic_cast<const Weighted*>(input.layer.get()) != nullptr ||
            (activation->is_relu() && dynamic_cast<const BatchNorm*>(input.layer.get()));
        if (input.readers == 1 && may_apply_it) input.fused = activation->function();
    }
    for (const Node& node : nodes) {
        if (!dynamic_cast<const Pooling*>(node.layer.get())) continue;
        Node& input = nodes[node.inputs[0]];
        const bool is_activation = dynamic_cast<const Activation*>(input.layer.get()) != nullptr;
        Node& made = is_activation ? nodes[input.inputs[0]] : input;
        made.is_pooled = input.readers == 1 && made.readers == 1;
    }
    return nodes;
}

inline Inputs inputs_of(std::vector<Node>& nodes, const Node& node) {
    Inputs inputs;
    for (const std::size_t input : node.inputs) inputs.push_back(&nodes[input]);
    return inputs;
}

inline void build_backward(Builder& builder, std::vector<Node>& nodes) {
    for (std::size_t i = nodes.size(); i-- > 0;) {
        Node& node = nodes[i];
        if (!node.learns) continue;  // an input, or nothing before it has parameters
        const Inputs inputs = inputs_of(nodes, node);
        const auto* pooling = dynamic_cast<const Pooling*>(node.layer.get());
        auto* before = dynamic_cast<Activation*>(inputs[0]->layer.get());
        if (pooling && pooling->takes_maximum() && before && before->is_relu() && inputs[0]->readers == 1 &&
            !nodes[inputs[0]->inputs[0]].masks_gradient)
            before->build_backward_behind_pooling(builder, *inputs[0], node);
        const std::size_t first = builder.backward.size();
        for (const std::size_t again : node.recomputes)
            nodes[again].layer->build_again(builder, inputs_of(nodes, nodes[again]), nodes[again]);
        if (!node.recomputes.empty()) {
            Node& last = nodes[node.recomputes.back()];
            last.again = {last.value.made(), first, builder.backward.size()};
            last.again.value.lease = nullptr;  // its memory is others' nevertheless
        }
        node.layer->build_backward(builder, inputs, node);
        node.gradient = Value();  // read for the last time
        if (node.is_recomputed) forget(nodes, {i});
        if (node.layer->parameters.empty()) continue;
        Update update(builder.numbers);
        for (const auto& parameter : node.layer->parameters) {
            parameter->gradient.lease = nullptr;  // who asks next comes behind the update
            if (parameter->parts.empty()) update.add(*parameter, parameter->gradient);
        }
        builder.backward.push_back({i, TT_DIRECTION_UPDATE, update});
    }
}

// The loss `number` reads its prediction, and hands back a part of that one's gradient.
inline void add_head(Builder& builder, std::vector<Node>& nodes, Head& head, std::size_t number) {
    Node& node = nodes[head.of];
    const Desc flat = plain(dims_of(node.value.desc()));
    const Purpose purpose{nodes.size() + number, head.name, TT_DIRECTION_FORWARD};
    head.prediction = builder.in(builder.forward, purpose, node.value, flat, "prediction");
    if (!builder.learns()) return;
    head.gradient = allocate(builder.engine(), flat);
    if (node.readers == 1) {
        node.gradient = Value(head.gradient);
        return;
    }
    Value part(head.gradient);
    hand_back(builder, purpose, node,
              builder.in(builder.backward, purpose, part, node.value.desc(), "gradient"));
}

inline Graph make_graph(const dnnl::engine& engine, const dnnl::stream& stream, Layout layout,
                        Algorithm convolution, Way way, layers::Recompute recompute, const tt_build& build,
                        const Optimizer& optimizer, Decisions& decisions) {
    const std::vector<timetrial::Layer> layers = read_layers(*build.network);
    const bool learns = (build.tasks & (TT_TRAIN | TT_GRADIENT)) != 0;
    Graph graph;
    graph.nodes = make_nodes(layers, optimizer, *build.network, graph.heads);
    if (learns) graph.recomputed = mark_recomputed(graph.nodes, recompute);
    Builder builder(engine, stream, layout, convolution, way, learns, decisions);
    builder.numbers = graph.numbers;
    std::vector<Node>& nodes = graph.nodes;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (!nodes[i].layer) {  // an input; the handle is each step's own batch
            const Desc own = plain(nodes[i].shape);
            nodes[i].value = Value(Tensor{own, dnnl::memory(own, engine, DNNL_MEMORY_NONE)});
            graph.over_inputs.emplace_back(i, i);
            continue;
        }
        nodes[i].layer->build_forward(builder, inputs_of(nodes, nodes[i]), nodes[i]);
        forget(nodes, nodes[i].recomputes);
        if (dynamic_cast<const Flatten*>(nodes[i].layer.get())) {
            const auto source = std::ranges::find(graph.over_inputs, nodes[i].inputs[0],
                                                  &std::pair<std::size_t, std::size_t>::first);
            if (source != graph.over_inputs.end()) graph.over_inputs.emplace_back(i, source->second);
        }
        for (const auto& parameter : nodes[i].layer->parameters) graph.parameters.push_back(parameter.get());
        for (const auto& state : nodes[i].layer->states) graph.states.push_back(state.get());
    }
    for (std::size_t i = 0; i < graph.heads.size(); ++i) add_head(builder, nodes, graph.heads[i], i);
    if (learns) build_backward(builder, nodes);
    graph.shared = builder.finish();
    graph.forward = std::move(builder.forward);
    graph.backward = std::move(builder.backward);
    graph.facts = std::move(builder.facts);
    graph.tally = std::move(builder.tally);
    return graph;
}

}  // namespace timetrial::onednn
