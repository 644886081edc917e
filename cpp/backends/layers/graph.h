// The network as the engine runs it: live nodes and their buffers, losses, parameters.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "layers/layer.h"
#include "layers/loss.h"

namespace timetrial::layers {

template <typename T>
struct Node {
    std::string name;
    std::vector<int64_t> external_shape;  // N x C x H x W, N x F, ..., as the outside knows it
    Edge<T> output;
    Buffer<T> value;                  // empty where another node's serves, or Graph::recomputed
    Buffer<T> gradient;               // empty where another node's serves
    std::unique_ptr<Layer<T>> layer;  // null: an input of the network
    bool is_mask = false;             // of the network's inputs: nobody reads it in inference
    bool is_whole = false;            // of them too: whole numbers
    std::vector<std::size_t> inputs;
    std::vector<Input<T>> reads;  // their outputs
    bool in_place = false;        // writes over its first input, and that one's gradient over its output's
    bool overwritten = false;     // by such a node, or by the next that is recomputed: no longer its own
    bool recomputed = false;      // on the way back of its reader, and not kept until then
    std::vector<std::size_t> recomputes;  // those that its own way back begins with
    bool by_channel = false;              // threads share its channels where it learns, not the images
    // Of a judge: what takes the output's place in the next step that learns and, behind that step, what the
    // layer itself had made.
    Buffer<T> shown;
    bool is_shown = false;   // it has something for the next one
    bool was_shown = false;  // it took the place in the last step
};

// In double precision the engine judges: every activation stays as it was computed, and what a contender
// shows of its own may take its place (Engine::write_tensor).
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
    std::unique_ptr<Rooms<T>> rooms;    // of the layers, which keep the address
    Buffer<T> recomputed;               // the value of the nodes that are, one after the other
};

}  // namespace timetrial::layers
