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

// What is in front of the first step.
enum class Begins { kAtZero, kAtState, kAtInput };  // 0; its states, where it learns; its second input

template <typename T, typename Product, typename Cell, Begins begins = Begins::kAtZero>
class Recurrent final : public Layer<T> {
  public:
    explicit Recurrent(const Attributes& attributes) : gives_all_(attributes.word("output") == "all") {
        for (const TimeDirection one : time_directions(attributes))
            directions_.emplace_back(attributes, one,
                                     static_cast<int64_t>(directions_.size()) * attributes.integer("units"));
    }

    void equip(Algorithm, Rooms<T>& rooms) override { room_ = &rooms.call; }

    void prepare(Inputs<T> inputs, const Edge<T>& output, int threads) override {
        packings_.resize(static_cast<std::size_t>(threads));
        for (auto& packing : packings_) packing.prepare(output.shape.batch, inputs[0].edge->shape.steps);
        const std::span<const std::unique_ptr<Parameter<T>>> all(this->parameters);
        const std::size_t each = all.size() / directions_.size();
        for (std::size_t i = 0; i < directions_.size(); ++i)
            directions_[i].prepare(*inputs[0].edge, output, all.subspan(i * each, each),
                                   begins == Begins::kAtState, threads, *room_);
    }

    void forward(Inputs<T> inputs, const Edge<T>& output, Share images, int thread) override {
        Start<T> start = start_of(inputs);
        if constexpr (begins == Begins::kAtState)
            start = {this->states[0]->value.data(), this->states[1]->value.data()};
        go(inputs, output, images, thread, start);
        if constexpr (begins == Begins::kAtState)
            directions_[0].keep(output, images, packing_of(thread), this->states[0]->value.data(),
                                this->states[1]->value.data());
    }
    void infer(Inputs<T> inputs, const Edge<T>& output, Share images, int thread) override {
        go(inputs, output, images, thread, start_of(inputs));
    }

    void backward_weights(Inputs<T>, const Edge<T>& output, Share images, int thread) override {
        for (auto& one : directions_)
            one.backward_weights(output, images, thread, packing_of(thread), begins == Begins::kAtInput);
    }

    void backward_data(Inputs<T> inputs, const Edge<T>&, Share images, int thread) override {
        if constexpr (begins == Begins::kAtInput)
            if (inputs[1].edge->gradient != nullptr)
                directions_[0].start_gradient(inputs[1].edge->gradient, images, inputs[1].add);
        if (inputs[0].edge->gradient == nullptr) return;
        bool add = inputs[0].add;
        for (auto& one : directions_) {
            one.backward_data(*inputs[0].edge, images, packing_of(thread), add);
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
    static Start<T> start_of(Inputs<T> inputs) {
        return {begins == Begins::kAtInput ? inputs[1].edge->value : nullptr, nullptr};
    }
    Packing<T>& packing_of(int thread) { return packings_[static_cast<std::size_t>(thread)]; }

    void go(Inputs<T> inputs, const Edge<T>& output, Share images, int thread, const Start<T>& start) {
        Packing<T>& packing = packing_of(thread);
        const bool has_lengths = begins == Begins::kAtZero && inputs.size() > 1;
        packing.arrange(images, has_lengths ? inputs[1].edge->value : nullptr, cut_);
        for (auto& one : directions_) one.forward(*inputs[0].edge, output, images, thread, packing, start);
        if (gives_all_) packing.clear_rest(output.value, output.shape.step_features());
    }

    const bool gives_all_;
    int64_t cut_ = 0;
    Room<T>* room_ = nullptr;
    std::vector<OneDirection<T, Product, Cell>> directions_;
    std::vector<Packing<T>> packings_;  // of each thread
};

}  // namespace timetrial::layers
