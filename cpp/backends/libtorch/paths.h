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

// "mkldnn_rnn_layer"; empty: none of oneDNN's. Two samples of unequal lengths, where it reads lengths: of
// equal ones ATen may go another way.
inline std::string kernel_of(const Operation& layer, int64_t features, bool learns, bool has_lengths) {
    const at::AutoGradMode mode(learns);
    const Watch watch;
    Inputs inputs{at::zeros({2, 2, features}, at::kFloat)};
    if (has_lengths) inputs.push_back(at::arange(2, 0, -1, at::kLong));
    layer(inputs, learns ? Mode::kTraining : Mode::kInference);
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
        const bool has_lengths = layer.inputs.size() > 1;
        const Way way = has_lengths ? along_time().way : Way::kPadded;
        const std::string kernel = kernel_of(graph.nodes[i].operation, sequence[2], learns, has_lengths);
        const std::string loop =
            way == Way::kPacked ? "native loop over packed steps" : "native loop over the steps";
        const std::string path = kernel.empty() ? loop : "oneDNN's kernel (" + kernel + ")";
        facts.emplace_back(layer.name + " forward", path + ", " + computed_words(way, sequence[1]));
        if (kernel.empty() && layer.kind == "lstm" && way != Way::kPacked)
            facts.emplace_back(layer.name + " faster", "torch.mkldnn=true gives it to oneDNN's kernel");
    }
    along_time().clear_counts();  // of what was tried here
    return facts;
}

}  // namespace timetrial::libtorch
