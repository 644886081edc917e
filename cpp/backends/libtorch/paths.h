// Which way ATen goes through a recurrent layer, as it shows it itself: the operations that two steps of
// two samples come to.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "graph.h"
#include "lengths.h"

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

// "mkldnn_rnn_layer"; empty: none of oneDNN's. `is_stateful`: it would move its states where it learns.
inline std::string kernel_of(const Operation& layer, const Inputs& inputs, bool learns, bool is_stateful) {
    const at::AutoGradMode mode(learns);
    const Watch watch;
    layer(inputs, learns && !is_stateful ? Mode::kTraining : Mode::kInference);
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
        const bool is_stateful = layer.kind == "stateful_lstm", is_continued = layer.kind == "continued_gru";
        const bool is_lstm = is_stateful || layer.kind == "lstm";
        if (!is_lstm && !is_continued && layer.kind != "gru" && layer.kind != "rnn") continue;
        const Shape& sequence = layers[layer.inputs[0]].shape;
        const bool has_lengths = !is_continued && layer.inputs.size() > 1;
        const Way way = has_lengths ? along_time().way : Way::kPadded;
        // Two samples of unequal lengths, where it reads lengths: of equal ones ATen may go another way.
        Inputs inputs{at::zeros({is_stateful ? sequence[0] : 2, 2, sequence[2]}, at::kFloat)};
        if (has_lengths) inputs.push_back(at::arange(2, 0, -1, at::kLong));
        if (is_continued) inputs.push_back(at::zeros({2, layers[layer.inputs[1]].shape[1]}, at::kFloat));
        const std::string kernel = kernel_of(graph.nodes[i].operation, inputs, learns, is_stateful);
        const std::string loop =
            way == Way::kPacked ? "native loop over packed steps" : "native loop over the steps";
        const std::string path = kernel.empty() ? loop : "oneDNN's kernel (" + kernel + ")";
        facts.emplace_back(layer.name + " forward", path + ", " + computed_words(way, sequence[1]));
        if (kernel.empty() && is_lstm)
            facts.emplace_back(layer.name + " faster",
                               std::string(way == Way::kPacked ? "lengths=trimmed (with torch.mkldnn=true)"
                                                               : "torch.mkldnn=true") +
                                   " gives it to oneDNN's kernel");
    }
    along_time().clear_counts();  // of what was tried here
    return facts;
}

}  // namespace timetrial::libtorch
