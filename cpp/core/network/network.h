// A network: a directed graph of layers with every shape, parameter and amount of work known.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "network/node.h"

namespace timetrial {

struct LayerKind;
struct LayerView;

// Work of one node on one whole batch, by pass. Bytes are the least that must move: each f32 tensor that the
// pass reads or writes, once.
struct PassWork {
    std::int64_t forward = 0;
    std::int64_t backward_data = 0;     // gradients with respect to its inputs; 0 where nobody needs them
    std::int64_t backward_weights = 0;  // gradients of its parameters, with what goes back through its states

    // What a step of that task takes of it.
    std::int64_t of(tt_task task) const {
        return task == TT_FORWARD ? forward : forward + backward_data + backward_weights;
    }
};

class Network {
  public:
    // Puts a node of kind "input" in front for each of `inputs`. Specs of that kind are accepted under their
    // names, and normalized attributes under their own: what nodes() says, written back as specs, gives the
    // same network. Throws NetworkError.
    Network(const std::vector<NodeSpec>& specs, std::int64_t batch_size,
            const std::vector<InputSpec>& inputs);

    // In topological order, the inputs first.
    const std::vector<Node>& nodes() const { return nodes_; }
    // Indices of the inputs: 0, 1, ...
    std::vector<std::uint32_t> inputs() const;
    // Integers of an input lie in 0 to this - 1, by what its layers make of them; 0: they are not looked up.
    std::int64_t values_below(std::uint32_t input) const;
    // The least that they may be: 0, or -1 where that says of a place that it does not count.
    std::int64_t values_from(std::uint32_t input) const;
    const Node& node(std::uint32_t index) const { return nodes_[index]; }
    // Index of a node; NetworkError with the nearest name if there is none.
    std::uint32_t index_of(std::string_view name) const;
    // Whose output is the prediction: (N, classes), or (N, T, classes).
    std::uint32_t output() const { return output_; }
    std::uint32_t loss() const { return loss_; }  // what is minimized: a loss, or a sum of several
    // The loss of that prediction.
    std::uint32_t output_loss() const { return output_loss_; }
    std::int64_t batch_size() const { return batch_size_; }
    // Whether, while it learns, what a layer makes of one sample depends on the others of the batch. Who
    // keeps states learned them of the batch, so that it may.
    bool couples_batch() const;
    // NetworkError if a layer cannot learn with this batch size, only infer.
    void check_training() const;
    std::int64_t classes() const { return nodes_[output_].shape.back(); }

    std::vector<Parameter> parameters() const;  // of all layers, states too
    std::int64_t parameter_count() const;       // numbers that are trained, not tensors
    std::int64_t activation_bytes() const;      // of all outputs of layers, f32
    PassWork multiply_accumulates(std::uint32_t index) const;
    PassWork bytes(std::uint32_t index) const;

  private:
    void add_inputs(std::int64_t batch_size, const std::vector<InputSpec>& inputs);
    void check_input_specs(const std::vector<NodeSpec>& specs) const;
    void refuse_unused() const;
    void add_layer(const NodeSpec& spec, const std::vector<NodeSpec>& all);
    // The mask of a layer as its second input: an input of the network, added if the spec names none.
    void add_mask(const LayerView& layer, std::vector<std::uint32_t>& inputs);
    // Of a layer with a second input: it must be the lengths of the first.
    void check_lengths(const LayerView& layer, const std::vector<std::uint32_t>& inputs) const;
    // Of a layer whose weight is that of another: it must fit, and be no third one's.
    void check_tied(const LayerView& layer) const;
    // Numbers of the weights and biases that a layer reads, its own or not.
    std::int64_t weight_elements(const Node& node) const;
    // `kind` NULL: one that the core does not know.
    std::vector<std::uint32_t> find_inputs(const LayerView& layer, const LayerKind* kind,
                                           const std::vector<std::string>& names,
                                           const std::vector<NodeSpec>& all) const;
    void find_loss_and_output();
    std::int64_t elements_of(std::uint32_t index) const;
    bool needs_data_gradient(std::uint32_t index) const;

    std::vector<Node> nodes_;
    std::vector<bool> trains_;  // whether a node or one before it on its paths has parameters
    std::uint32_t n_inputs_ = 0;
    std::uint32_t output_ = 0;
    std::uint32_t loss_ = 0;
    std::uint32_t output_loss_ = 0;
    std::int64_t batch_size_ = 0;
};

}  // namespace timetrial
