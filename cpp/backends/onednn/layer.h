// What a layer is to the backend: something that appends its operations to the programs, once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onednn/sum.h"

namespace timetrial::onednn {

class Layer;

// Where a value that is recomputed lies once these operations of the way back have run: with the bits that it
// had, until the parameters change.
struct Again {
    Tensor value;
    std::size_t first = 0, end = 0;
};

// A node of the network.
struct Node {
    std::size_t index = 0;
    std::string name;
    Shape shape;                   // as the outside knows it
    std::unique_ptr<Layer> layer;  // null: the images
    std::vector<std::size_t> inputs;
    std::size_t readers = 0;  // of the value; who reads it twice counts twice
    bool learns = false;      // it or something before it has parameters
    Value value;
    Value gradient;                       // of the loss; exists where the node learns
    std::vector<Tensor> parts;            // of the gradient, as the readers hand them back
    std::optional<Eltwise> fused;         // the activation behind it, which its own primitive applies
    bool is_pooled = false;               // alone read by pooling, or through that activation
    bool masks_gradient = false;          // and its way back multiplies by the derivative of that
    bool is_overwritten = false;          // by its reader, or not kept: its own value is nowhere to be read
    bool is_recomputed = false;           // where the way back of its reader begins, and not kept until then
    std::vector<std::size_t> recomputes;  // those that its own way back begins with
    Again again;                          // where it is the last of those of its reader

    Purpose purpose(tt_direction direction) const { return {index, name, direction}; }
};

// The memory of a value that its layer makes in this format.
inline void hand_on(const Builder& builder, Node& from, const Desc& made) {
    const Desc desc = from.is_pooled ? builder.handed_to_pooling(made) : made;
    from.value = Value(allocate(builder.engine(), desc));
}

// What one reader of a value makes of its own gradient, in the format of the value. The last one adds up all.
inline void hand_back(Builder& builder, const Purpose& purpose, Node& to, const Tensor& gradient) {
    to.parts.push_back(gradient);
    if (to.parts.size() < to.readers) return;
    if (to.readers == 1) {
        to.gradient = Value(gradient);
        to.parts.clear();
        return;
    }
    std::vector<Value> values(to.parts.begin(), to.parts.end());
    std::vector<Value*> parts;
    for (Value& value : values) parts.push_back(&value);
    const Tensor sum = builder.lend(to.value.desc());
    append_sum(builder, builder.backward, purpose, "sum of gradients " + to.name, parts, sum);
    to.gradient = Value(sum);
    to.parts.clear();
}

using Inputs = std::vector<Node*>;

class Layer {
  public:
    virtual ~Layer() = default;

    // Makes output.value and appends to builder.forward.
    virtual void build_forward(Builder& builder, const Inputs& inputs, Node& output) = 0;

    // The same value once more, by operations of builder.backward: of nodes that are recomputed.
    virtual void build_again(Builder& builder, const Inputs& inputs, Node& output) {
        (void)builder, (void)inputs, (void)output;
    }

    // Appends to builder.backward: the parameters' gradients, and those of the inputs that learn, which it
    // hands back.
    virtual void build_backward(Builder& builder, const Inputs& inputs, Node& output) = 0;

    // Whether the way back looks at the output, so that nobody may write over that.
    virtual bool needs_its_output() const { return true; }

    std::vector<std::unique_ptr<Parameter>> parameters;  // weight, then bias if there is one
    std::vector<std::unique_ptr<Parameter>> states;      // not trained, but changed by training steps
    Parameter* tied = nullptr;  // an earlier layer's weight that is its own too: not among its parameters
};

// Whether the node's only reader may write its own result over the value.
inline bool may_write_over(const Node& node) {
    return node.layer && node.readers == 1 && !node.layer->needs_its_output();
}

// Memory of a parameter in the format of `desc`, with that of its gradient and states where it learns. A
// gradient that passes gets none: see Builder::pass().
inline void keep(const Builder& builder, Parameter& parameter, const Desc& outside, const Desc& desc,
                 bool passes = false) {
    parameter.outside = outside;
    parameter.value = Value(allocate(builder.engine(), desc));
    if (!builder.learns()) return;
    parameter.gradient = passes ? Tensor{desc, dnnl::memory(desc, builder.engine(), DNNL_MEMORY_NONE)}
                                : allocate(builder.engine(), desc);
    for (auto& [name, state] : parameter.states) state = allocate(builder.engine(), desc);
}

// A layer with one input: the same with that.
class LayerOfOne : public Layer {
  public:
    virtual void build_forward(Builder& builder, Node& input, Node& output) = 0;
    virtual void build_backward(Builder& builder, Node& input, Node& output) = 0;

    void build_forward(Builder& builder, const Inputs& inputs, Node& output) final {
        build_forward(builder, *inputs[0], output);
    }
    void build_backward(Builder& builder, const Inputs& inputs, Node& output) final {
        build_backward(builder, *inputs[0], output);
    }
};

}  // namespace timetrial::onednn
