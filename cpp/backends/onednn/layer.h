// What a layer is to the backend: something that appends its operations to the programs, once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onednn/builder.h"

namespace timetrial::onednn {

class Layer;

// A node of the network. Nodes form a chain: node i reads node i - 1.
struct Node {
    std::size_t index = 0;
    std::string name;
    Shape shape;                   // as the outside knows it
    std::unique_ptr<Layer> layer;  // null: the images
    Value value;
    Value gradient;                        // of the loss; does not exist where nothing upstream learns
    std::optional<dnnl::algorithm> fused;  // the activation behind it, which its own primitive applies
    bool is_overwritten = false;           // by that activation: its own value is nowhere to be read

    Purpose purpose(tt_direction direction) const { return {index, name, direction}; }
};

class Layer {
  public:
    virtual ~Layer() = default;

    // Makes output.value and appends to builder.forward.
    virtual void build_forward(Builder& builder, Node& input, Node& output) = 0;

    // Appends to builder.backward: the parameters' gradients and, if `wants_input_gradient`, input.gradient.
    virtual void build_backward(Builder& builder, Node& input, Node& output, bool wants_input_gradient) = 0;

    std::vector<std::unique_ptr<Parameter>> parameters;  // weight, then bias if there is one
};

}  // namespace timetrial::onednn
