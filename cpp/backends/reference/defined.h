// A layer of a kind that a user registered. Its definition lies with whoever built the network, and so does
// the derivative, which was held against differences of the definition before.
#pragma once

#include <stdexcept>

#include "function.h"

namespace timetrial::reference {

class Defined final : public Function {
  public:
    // `network` and `definition` stay readable as long as this.
    Defined(const tt_definition& definition, const tt_network& network, std::size_t node)
        : definition_(definition), network_(network), node_(static_cast<std::uint32_t>(node)) {}

    void forward(std::span<Tensor* const> x, Tensor& y, Mode mode) override {
        const tt_layer_call call = gather(x, mode);
        check(definition_.forward(definition_.user, &call, y.value.data()));
    }

    void backward(std::span<Tensor* const> x, Tensor& y) override {
        const tt_layer_call call = gather(x, Mode::kTraining);
        std::vector<double*> of_inputs, of_parameters;
        const tt_node& node = element(network_.nodes, node_);
        for (std::size_t i = 0; i < x.size(); ++i) {
            const tt_tensor& input = element(network_.nodes, node.inputs[i]).output;
            const bool is_given = input.dtype == TT_I64 || input.role == TT_MASK;
            of_inputs.push_back(is_given ? nullptr : x[i]->gradient.data());
        }
        for (const auto& one : parameters) of_parameters.push_back(one->gradient.data());
        of_parameters.resize(parameters.size() + states.size(), nullptr);
        check(definition_.backward(definition_.user, &call, y.value.data(), y.gradient.data(),
                                   of_inputs.data(), of_parameters.data()));
    }

    void keep_states(std::span<Tensor* const> x) override {
        if (states.empty()) return;
        const tt_layer_call call = gather(x, Mode::kTraining);
        std::vector<Values> behind;
        std::vector<double*> to;
        for (const auto& one : states) to.push_back(behind.emplace_back(one->size()).data());
        check(definition_.next_states(definition_.user, &call, to.data()));
        for (std::size_t i = 0; i < states.size(); ++i) states[i]->value = behind[i];
    }

  private:
    tt_layer_call gather(std::span<Tensor* const> x, Mode mode) {
        inputs_.clear(), values_.clear();
        for (const Tensor* one : x) inputs_.push_back(one->value.data());
        for (const auto* group : {&parameters, &states})
            for (const auto& one : *group) values_.push_back(one->value.data());
        return {sizeof(tt_layer_call), node_,         mode == Mode::kTraining, &network_,
                inputs_.data(),        values_.data()};
    }

    static void check(const char* failure) {
        if (failure) throw std::runtime_error(failure);
    }

    const tt_definition& definition_;
    const tt_network& network_;
    const std::uint32_t node_;
    std::vector<const double*> inputs_, values_;
};

}  // namespace timetrial::reference
