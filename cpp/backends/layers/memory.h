// Which nodes share memory: values that another writes over, values that are recomputed instead of kept, and
// gradients.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "layers/convolved.h"
#include "layers/graph.h"
#include "layers/recompute.h"

namespace timetrial::layers {

// How many read each node's output.
template <typename T>
std::vector<int> readers_of(const Graph<T>& graph) {
    std::vector<int> readers(graph.nodes.size());
    for (const Node<T>& node : graph.nodes)
        for (const std::size_t input : node.inputs) ++readers[input];
    for (const Head<T>& head : graph.heads) ++readers[head.of];
    return readers;
}

// An activation that is its input's only consumer needs no memory of its own: half the traffic, half the
// room. So does a sum over one of its inputs, which becomes the first; that one must have a gradient, since
// the sum's is the same.
template <typename T>
void mark_in_place(Graph<T>& graph, const std::vector<bool>& learns) {
    const std::vector<int> consumers = readers_of(graph);
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

// A normalization's output costs one pass over its input, which its way back needs anyhow. So where a
// convolution is all that reads it, perhaps behind an activation in place, it is not kept: it is computed for
// the reader, and once more where that one's way back begins, which looks at it. These nodes stand next to
// each other, so that no two such values are needed at a time, and one buffer serves all. Threads meet in
// front of each: it is computed by channels, and read by images.
template <typename T>
void mark_recomputed(Graph<T>& graph) {
    const std::vector<int> consumers = readers_of(graph);
    for (std::size_t i = graph.n_inputs; i < graph.nodes.size(); ++i) {
        const Node<T>& first = graph.nodes[i];
        if (!first.layer->may_be_recomputed() || first.output.shape.flat) continue;
        const auto reads = [&](std::size_t reader, std::size_t node) {
            return reader < graph.nodes.size() && graph.nodes[reader].inputs == std::vector{node};
        };
        // Two activations in place are never behind each other: the first one's way back looks at its output.
        const std::size_t last = reads(i + 1, i) && graph.nodes[i + 1].in_place ? i + 1 : i;
        if (!reads(last + 1, last) || consumers[last] != 1) continue;
        Node<T>& reader = graph.nodes[last + 1];
        if (dynamic_cast<const Convolved<T>*>(reader.layer.get()) == nullptr) continue;
        for (std::size_t one = i; one <= last; ++one) {
            graph.nodes[one].recomputed = graph.nodes[one].overwritten = true;
            reader.recomputes.push_back(one);
        }
    }
}

template <typename T>
Recomputed recomputed_of(const Graph<T>& graph) {
    Recomputed all;
    for (const Node<T>& node : graph.nodes) {
        if (!node.recomputed || node.in_place) continue;
        ++all.values;
        all.bytes += node.output.shape.size() * int64_t{sizeof(T)};
    }
    return all;
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

template <typename T>
void allot_values(Graph<T>& graph) {
    int64_t most = 0;
    for (const Node<T>& node : graph.nodes)
        if (node.recomputed) most = std::max(most, node.output.shape.size());
    graph.recomputed = Buffer<T>(most);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        Node<T>& node = graph.nodes[i];
        if (!node.in_place && !node.recomputed) node.value = Buffer<T>(node.output.shape.size());
        node.output.value =
            node.recomputed ? graph.recomputed.data() : graph.nodes[home_of(graph, i)].value.data();
    }
}

// A gradient is needed from the way back of the first that reads its node until the node's own. Then images'
// memory serves the next of the same shape. Nobody waits for that: of one shape each thread has the same part
// as long as all share alike, and where they go over to sharing otherwise, all meet (regions.h). A layer
// whose way back treats each value alone may leave its input's gradient where its output's was.
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
    const std::vector<int> readers = readers_of(graph);
    std::vector<bool> kept(graph.nodes.size());
    for (const Head<T>& head : graph.heads) allot(head.of);
    for (std::size_t i = graph.nodes.size(); i-- > graph.n_inputs;) {
        Node<T>& node = graph.nodes[i];
        const std::size_t home = home_of(graph, i);
        node.output.gradient = graph.nodes[home].output.gradient;
        if (node.layer->keeps_output_gradient()) kept[home] = true;
        if (node.layer->may_write_over_gradient() && !kept[home] && readers[node.inputs[0]] == 1 &&
            learns[node.inputs[0]]) {
            graph.nodes[home_of(graph, node.inputs[0])].output.gradient = node.output.gradient;
            continue;
        }
        for (const std::size_t input : node.inputs) allot(input);
        if (home == i && learns[i] && !kept[i] && !node.output.shape.flat) free.push_back(node.output);
    }
}

}  // namespace timetrial::layers
