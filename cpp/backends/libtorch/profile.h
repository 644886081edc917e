// One training step, node by node: each node's output is cut off the graph behind it, so that its backward
// pass can be run, and timed, by itself. Autograd computes the gradients of a node's input and parameters in
// one go, hence one direction `backward`.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "graph.h"
#include "timetrial/backend.hpp"
#include "update.h"

namespace timetrial::libtorch {

// Gradients must be clear.
inline std::vector<LayerTime> profile_step(const Graph& graph, Update& update, const tt_batch& batch,
                                           const std::vector<at::Tensor>& targets) {
    LayerTimer timer;
    const auto record = [&](std::size_t node, tt_direction direction, auto&& call) {
        timer.time(graph.nodes[node].name.c_str(), direction, call);
    };
    std::vector<at::Tensor> outputs(graph.nodes.size());        // each with the graph of its own node
    std::vector<at::Tensor> leaves = graph.read_inputs(batch);  // the same values, without
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const Node& node = graph.nodes[i];
        if (!node.operation) continue;
        record(i, TT_DIRECTION_FORWARD,
               [&] { outputs[i] = node.operation(Graph::inputs_of(node, leaves), Mode::kTraining); });
        leaves[i] = outputs[i].detach().set_requires_grad(outputs[i].requires_grad());
    }
    for (std::size_t i = 0; i < graph.heads.size(); ++i)
        record(graph.heads[i].node, TT_DIRECTION_LOSS, [&] {
            const at::Tensor loss = graph.weighted_loss(i, leaves, targets);
            if (loss.requires_grad()) loss.backward();
        });
    for (std::size_t i = graph.nodes.size(); i-- > 0;) {
        const at::Tensor gradient = leaves[i].defined() ? leaves[i].grad() : at::Tensor();
        if (!gradient.defined()) continue;  // an input, the loss, or nothing to learn before it
        record(i, TT_DIRECTION_BACKWARD, [&] { outputs[i].backward(gradient); });
    }
    update.begin(graph);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const std::vector<std::size_t>& mine = graph.nodes[i].parameters;
        if (!mine.empty())
            record(i, TT_DIRECTION_UPDATE, [&] { update.run(graph, mine.front(), mine.back() + 1); });
    }
    return timer.times;
}

}  // namespace timetrial::libtorch
