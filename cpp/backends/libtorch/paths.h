// Which way ATen goes through a recurrent layer, as it shows it itself: the operations that two steps of a
// sample come to.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "graph.h"

namespace timetrial::libtorch {

// The names of the operations of this thread, for as long as it lives.
class Watch {
  public:
    Watch()
        : handle_(at::addThreadLocalCallback(
              at::RecordFunctionCallback(note).scopes({at::RecordScope::FUNCTION}))) {
        names().clear();
    }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch() { at::removeCallback(handle_); }

    static std::vector<std::string>& names() {
        static thread_local std::vector<std::string> seen;
        return seen;
    }

  private:
    static std::unique_ptr<at::ObserverContext> note(const at::RecordFunction& operation) {
        names().emplace_back(operation.name());
        return nullptr;
    }

    at::CallbackHandle handle_;
};

// "mkldnn_rnn_layer"; empty: none of oneDNN's.
inline std::string kernel_of(const Operation& layer, int64_t features, bool learns) {
    const at::AutoGradMode mode(learns);
    const Watch watch;
    layer({at::zeros({1, 2, features}, at::kFloat)}, learns ? Mode::kTraining : Mode::kInference);
    for (const std::string& name : Watch::names())
        if (name.find("mkldnn") != std::string::npos) return name.substr(name.find("::") + 2);
    return "";
}

// Of every recurrent layer, and how to get the faster way of an LSTM: other cells have one only.
inline Facts path_facts(const tt_network& network, const Graph& graph, bool learns) {
    Facts facts;
    const std::vector<Layer> layers = read_layers(network);
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const Layer& layer = layers[i];
        if (layer.kind != "lstm" && layer.kind != "gru" && layer.kind != "rnn") continue;
        const Shape& sequence = layers[layer.inputs[0]].shape;
        const std::string kernel = kernel_of(graph.nodes[i].operation, sequence[2], learns);
        const std::string path =
            kernel.empty() ? "native loop over the steps" : "oneDNN's kernel (" + kernel + ")";
        facts.emplace_back(layer.name + " forward",
                           path + ", all " + std::to_string(sequence[1]) + " steps of every sample");
        if (kernel.empty() && layer.kind == "lstm")
            facts.emplace_back(layer.name + " faster", "torch.mkldnn=true gives it to oneDNN's kernel");
    }
    return facts;
}

}  // namespace timetrial::libtorch
