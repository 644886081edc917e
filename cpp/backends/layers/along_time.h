// How far a network's layers along time go through a batch of sequences of unequal lengths, by the setting
// `lengths`, and how many steps they have computed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "layers/graph.h"
#include "timetrial/lengths.hpp"
#include "timetrial/sequence_steps.h"

namespace timetrial::layers {

template <typename T>
class AlongTime {
  public:
    Way way = Way::kPacked;

    // Once, of a graph that stays where it is.
    void find(const Graph<T>& graph) {
        graph_ = &graph;
        reads_.clear();
        has_lengths_ = false;
        for (std::size_t i = graph.n_inputs; i < graph.nodes.size(); ++i) {
            const Node<T>& node = graph.nodes[i];
            if (node.layer->rows() < 0) continue;
            // Lengths, where a layer reads them, are its second input; a state is one of real numbers.
            const bool has_lengths = node.inputs.size() > 1 && graph.nodes[node.inputs[1]].is_whole;
            has_lengths_ = has_lengths_ || has_lengths;
            reads_.emplace_back(i, has_lengths ? node.inputs[1] : none);
            if (way == Way::kPadded) node.layer->cut(steps_of(node));
        }
    }

    // Before a step. `sources`: of each input of the network, in the batch.
    void open(const std::vector<void*>& sources, int64_t batch) const {
        if (way != Way::kTrimmed) return;
        for (const auto& [node, lengths] : reads_)
            if (lengths != none)
                graph_->nodes[node].layer->cut(
                    longest_of(static_cast<const int64_t*>(sources[lengths]), batch));
    }

    // Behind a forward pass.
    void count() {
        // Of several layers the one counts that computes most; of those that read lengths, if any does.
        int64_t most = 0;
        for (const auto& [node, lengths] : reads_)
            if (lengths != none || !has_lengths_) most = std::max(most, graph_->nodes[node].layer->rows());
        computed_ += most;
    }

    void say(Facts& facts) const {
        for (const auto& [i, lengths] : reads_) {
            const Node<T>& node = graph_->nodes[i];
            const Way own = lengths == none ? Way::kPadded : way;
            facts.emplace_back(node.name + " forward",
                               "own loop over the steps, " + computed_words(own, steps_of(node)));
        }
        if (computed_ > 0) facts.emplace_back(TT_SEQUENCE_STEPS_FACT, std::to_string(computed_));
    }

  private:
    static constexpr std::size_t none = ~std::size_t{0};

    static int64_t steps_of(const Node<T>& node) { return node.reads[0].edge->shape.steps; }

    const Graph<T>* graph_ = nullptr;
    std::vector<std::pair<std::size_t, std::size_t>> reads_;  // node, and the input that has its lengths
    bool has_lengths_ = false;
    int64_t computed_ = 0;
};

}  // namespace timetrial::layers
