// A recurrent layer: one direction (one_direction.h), or two over the same samples, whose states stand beside
// each other.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "layers/layer.h"
#include "layers/one_direction.h"
#include "layers/packing.h"
#include "timetrial/backend.hpp"
#include "timetrial/directions.hpp"

namespace timetrial::layers {

template <typename T, typename Product, typename Cell>
class Recurrent final : public Layer<T> {
  public:
    explicit Recurrent(const Attributes& attributes) : gives_all_(attributes.word("output") == "all") {
        for (const TimeDirection one : time_directions(attributes))
            directions_.emplace_back(attributes, one,
                                     static_cast<int64_t>(directions_.size()) * attributes.integer("units"));
    }

    void prepare(Inputs<T> inputs, const Edge<T>& output, int threads) override {
        packings_.resize(static_cast<std::size_t>(threads));
        for (auto& packing : packings_) packing.prepare(output.shape.batch, inputs[0].edge->shape.steps);
        const std::span<const std::unique_ptr<Parameter<T>>> all(this->parameters);
        const std::size_t each = all.size() / directions_.size();
        for (std::size_t i = 0; i < directions_.size(); ++i)
            directions_[i].prepare(*inputs[0].edge, output, all.subspan(i * each, each), this->states);
    }

    void forward(Inputs<T> inputs, const Edge<T>& output, Share images, int thread) override {
        go(inputs, output, images, thread, true);
    }
    void infer(Inputs<T> inputs, const Edge<T>& output, Share images, int thread) override {
        go(inputs, output, images, thread, false);
    }

    void backward_weights(Inputs<T>, const Edge<T>& output, Share images, int thread) override {
        for (auto& one : directions_)
            one.backward_weights(output, images, packings_[static_cast<std::size_t>(thread)]);
    }

    void backward_data(Inputs<T> inputs, const Edge<T>&, Share images, int thread) override {
        if (inputs[0].edge->gradient == nullptr) return;
        bool add = inputs[0].add;
        for (auto& one : directions_) {
            one.backward_data(*inputs[0].edge, images, packings_[static_cast<std::size_t>(thread)], add);
            add = true;
        }
    }

    void parameter_gradients(Inputs<T>, const Edge<T>&, int thread, int threads,
                             const typename Layer<T>::Each& each) override {
        for (auto& one : directions_) one.parameter_gradients(packings_, thread, threads, each);
    }

    void cut(int64_t steps) override { cut_ = steps; }

    // Of each direction.
    int64_t rows() const override {
        int64_t all = 0;
        for (const Packing<T>& packing : packings_) all += packing.rows();
        return all;
    }

  private:
    void go(Inputs<T> inputs, const Edge<T>& output, Share images, int thread, bool learns) {
        Packing<T>& packing = packings_[static_cast<std::size_t>(thread)];
        packing.arrange(images, inputs.size() > 1 ? inputs[1].edge->value : nullptr, cut_);
        for (auto& one : directions_) one.forward(*inputs[0].edge, output, images, packing, learns);
        if (gives_all_) packing.clear_rest(output.value, output.shape.step_features());
    }

    const bool gives_all_;
    int64_t cut_ = 0;
    std::vector<OneDirection<T, Product, Cell>> directions_;
    std::vector<Packing<T>> packings_;  // of each thread
};

}  // namespace timetrial::layers
