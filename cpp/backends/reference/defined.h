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

    void forward(std::span<Tensor* const> x, Tensor& y) override {
        gather(x);
        check(definition_.forward(definition_.user, &network_, node_, inputs_.data(), weights_.data(),
                                  y.value.data()));
    }

    void backward(std::span<Tensor* const> x, Tensor& y) override {
        gather(x);
        check(definition_.backward(definition_.user, &network_, node_, inputs_.data(), weights_.data(),
                                   y.value.data(), y.gradient.data(), input_gradients_.data(),
                                   weight_gradients_.data()));
    }

  private:
    void gather(std::span<Tensor* const> x) {
        inputs_.clear(), weights_.clear(), input_gradients_.clear(), weight_gradients_.clear();
        const tt_node& node = element(network_.nodes, node_);
        for (std::size_t i = 0; i < x.size(); ++i) {
            const bool is_whole = element(network_.nodes, node.inputs[i]).output.dtype == TT_I64;
            inputs_.push_back(x[i]->value.data());
            input_gradients_.push_back(is_whole ? nullptr : x[i]->gradient.data());
        }
        for (const auto& one : parameters) {
            weights_.push_back(one->value.data());
            weight_gradients_.push_back(one->gradient.data());
        }
    }

    static void check(const char* failure) {
        if (failure) throw std::runtime_error(failure);
    }

    const tt_definition& definition_;
    const tt_network& network_;
    const std::uint32_t node_;
    std::vector<const double*> inputs_, weights_;
    std::vector<double*> input_gradients_, weight_gradients_;
};

}  // namespace timetrial::reference
