// lstm: z = w x[t] + u h[t-1] + b, c[t] = s(f) c[t-1] + s(i) tanh(g), h[t] = s(o) tanh(c[t]).
//
// One product makes the inputs' part of z for all steps; a step adds its states' part and the gates. Back
// through time each step's gradient of z makes that of h before it; what the weights and the inputs get are
// three products over all steps at the end. Samples are packed by length (packing.h): only steps that count
// are computed. Threads share the samples, each with rows of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "layers/layer.h"
#include "layers/lstm_cell.h"
#include "layers/packing.h"
#include "layers/product.h"
#include "timetrial/backend.hpp"

namespace timetrial::layers {

template <typename T, typename Product>
class Lstm final : public Layer<T> {
  public:
    explicit Lstm(const Attributes& attributes)
        : units_(attributes.integer("units")), gives_all_(attributes.word("output") == "all") {}

    void prepare(Inputs<T> inputs, const Edge<T>& output, int threads) override {
        const Shape& in = inputs[0].edge->shape;
        steps_ = in.steps;
        features_ = in.step_features();
        const int64_t rows = in.batch * steps_;
        x_ = Buffer<T>(rows * features_);
        if (inputs[0].edge->gradient != nullptr) of_x_ = Buffer<T>(rows * features_);
        z_ = Buffer<T>(rows * gates());
        for (Buffer<T>* one : {&before_, &cell_, &curved_}) *one = Buffer<T>(rows * units_);
        for (Buffer<T>* one : {&of_state_, &of_cell_}) *one = Buffer<T>(in.batch * units_);
        packings_.resize(static_cast<std::size_t>(threads));
        for (auto& packing : packings_) packing.prepare(in.batch, steps_);
        batch_ = output.shape.batch;
    }

    void forward(Inputs<T> inputs, const Edge<T>& output, Share images, int thread) override {
        Packing<T>& packing = packings_[static_cast<std::size_t>(thread)];
        packing.arrange(images, inputs.size() > 1 ? inputs[1].edge->value : nullptr);
        const Rows at = rows_of(images.begin);
        packing.gather(inputs[0].edge->value, at.x, features_);
        start_sums(at.z, packing.rows());
        multiply(matrix<const T>(at.x, packing.rows(), features_),
                 !matrix<const T>(value(0), gates(), features_), matrix(at.z, packing.rows(), gates()), true);
        std::fill_n(at.before, packing.active(0) * units_, T(0));
        for (int64_t t = 0; t < packing.steps(); ++t) {
            const int64_t first = packing.first(t), active = packing.active(t);
            T* const z = at.z + first * gates();
            if (t > 0)
                multiply(matrix<const T>(at.before + first * units_, active, units_),
                         !matrix<const T>(value(1), gates(), units_), matrix(z, active, gates()), true);
            for (int64_t r = 0; r < active; ++r) {
                T* const shown = shown_at(packing, output.value, r, t);
                // It goes on to the next step, or is shown, or both.
                T* const next =
                    r < packing.active(t + 1) ? at.before + (packing.first(t + 1) + r) * units_ : shown;
                lstm_forward(row(at, packing, t, r), next);
                if (shown != nullptr && shown != next) std::copy_n(next, units_, shown);
            }
        }
        if (gives_all_) packing.clear_rest(output.value, units_);
    }

    // Back through time: z becomes its gradient.
    void backward_weights(Inputs<T>, const Edge<T>& output, Share images, int thread) override {
        const Packing<T>& packing = packings_[static_cast<std::size_t>(thread)];
        const Rows at = rows_of(images.begin);
        T *const of_state = of_state_.data() + images.begin * units_, *const of_cell = of_cell_.data() +
                                                                                       images.begin * units_;
        std::fill_n(of_state, packing.samples() * units_, T(0));
        std::fill_n(of_cell, packing.samples() * units_, T(0));
        for (int64_t t = packing.steps(); t-- > 0;) {
            const int64_t active = packing.active(t);
            for (int64_t r = 0; r < active; ++r) {
                T* const of_h = of_state + r * units_;
                if (const T* const dy = shown_at(packing, output.gradient, r, t))
                    for (int64_t u = 0; u < units_; ++u) of_h[u] += dy[u];
                lstm_backward(row(at, packing, t, r), of_h, of_cell + r * units_);
            }
            if (t > 0)
                multiply(matrix<const T>(at.z + packing.first(t) * gates(), active, gates()),
                         matrix<const T>(value(1), gates(), units_), matrix(of_state, active, units_), false);
        }
    }

    void backward_data(Inputs<T> inputs, const Edge<T>&, Share images, int thread) override {
        if (inputs[0].edge->gradient == nullptr) return;
        const Packing<T>& packing = packings_[static_cast<std::size_t>(thread)];
        const Rows at = rows_of(images.begin);
        T* const of_x = of_x_.data() + images.begin * steps_ * features_;
        multiply(matrix<const T>(at.z, packing.rows(), gates()),
                 matrix<const T>(value(0), gates(), features_), matrix(of_x, packing.rows(), features_),
                 false);
        packing.scatter(of_x, inputs[0].edge->gradient, features_, inputs[0].add);
    }

    // Over the rows of all threads, by rows of the weights.
    void parameter_gradients(Inputs<T>, const Edge<T>&, int thread, int threads,
                             const typename Layer<T>::Each& each) override {
        const Share mine = share_of(gates(), thread, threads);
        for (int64_t gate = mine.begin; gate < mine.end; gate += block) {
            const int64_t count = std::min(block, mine.end - gate);
            add_up(gate, count, 0, x_, features_, each);
            add_up(gate, count, 1, before_, units_, each);
        }
        for (std::size_t bias = 2; bias < this->parameters.size(); ++bias) {
            Parameter<T>& to = *this->parameters[bias];
            T* const gradient = to.gradient.data();
            std::fill(gradient + mine.begin, gradient + mine.end, T(0));
            for_each_thread([&](const Rows& at, const Packing<T>& packing) {
                for (int64_t i = 0; i < packing.rows(); ++i)
                    for (int64_t gate = mine.begin; gate < mine.end; ++gate)
                        gradient[gate] += at.z[i * gates() + gate];
            });
            each(to, mine.begin, mine.end);
        }
    }

  private:
    // Rows of weights per product: gradient, velocity and weights of a block stay in L2.
    static constexpr int64_t block = 128;

    struct Rows {
        int64_t first;
        T *x, *z, *before, *cell, *curved;  // `before`: h behind the step before
    };

    int64_t gates() const { return 4 * units_; }
    const T* value(std::size_t which) const { return this->parameters[which]->value.data(); }

    // A thread's, whose first sample that is.
    Rows rows_of(int64_t sample) {
        const int64_t first = sample * steps_;
        return {first,
                x_.data() + first * features_,
                z_.data() + first * gates(),
                before_.data() + first * units_,
                cell_.data() + first * units_,
                curved_.data() + first * units_};
    }

    LstmRow<T> row(const Rows& at, const Packing<T>& packing, int64_t t, int64_t r) const {
        const int64_t place = packing.first(t) + r;
        return {at.z + place * gates(), t > 0 ? at.cell + (packing.first(t - 1) + r) * units_ : nullptr,
                at.cell + place * units_, at.curved + place * units_, units_};
    }

    // Where the state behind a step is in the output or its gradient; null: nowhere.
    T* shown_at(const Packing<T>& packing, T* output, int64_t r, int64_t t) const {
        const int64_t n = packing.sample(r);
        if (gives_all_) return output + (n * steps_ + t) * units_;
        return t + 1 == packing.length(r) ? output + n * units_ : nullptr;
    }

    // The biases.
    void start_sums(T* z, int64_t rows) const {
        if (this->parameters.size() == 2) return std::fill_n(z, rows * gates(), T(0)), void();
        for (int64_t i = 0; i < rows; ++i) std::copy_n(value(2), gates(), z + i * gates());
        if (this->parameters.size() == 3) return;
        const T* const more = value(3);
        for (int64_t i = 0; i < rows; ++i)
            for (int64_t gate = 0; gate < gates(); ++gate) z[i * gates() + gate] += more[gate];
    }

    static void multiply(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool add) {
        if (c.rows > 0) Product::template multiply<T>(a, b, c, add);
    }

    // The gradient of `count` rows of a weight, from what it was multiplied by.
    void add_up(int64_t gate, int64_t count, std::size_t which, const Buffer<T>& by, int64_t width,
                const typename Layer<T>::Each& each) {
        Parameter<T>& to = *this->parameters[which];
        bool add = false;
        for_each_thread([&](const Rows& at, const Packing<T>& packing) {
            if (packing.rows() == 0) return;
            const T* const rows = by.data() + at.first * width;
            Product::template multiply<T>(!matrix<const T>(at.z + gate, packing.rows(), count, gates()),
                                          matrix<const T>(rows, packing.rows(), width),
                                          matrix(to.gradient.data() + gate * width, count, width), add);
            add = true;
        });
        each(to, gate * width, (gate + count) * width);
    }

    template <typename F>
    void for_each_thread(F&& f) {
        const int threads = static_cast<int>(packings_.size());
        for (int thread = 0; thread < threads; ++thread)
            f(rows_of(share_of(batch_, thread, threads).begin), packings_[static_cast<std::size_t>(thread)]);
    }

    const int64_t units_;
    const bool gives_all_;
    int64_t steps_ = 0, features_ = 0, batch_ = 0;
    // Of every row: its input, the sums of its gates (then what these let through, then the sums' gradients),
    // h behind the step before, c and tanh(c) behind its own.
    Buffer<T> x_, of_x_, z_, before_, cell_, curved_;
    Buffer<T> of_state_, of_cell_;  // gradients of a sample's states, at the step that is gone back through
    std::vector<Packing<T>> packings_;  // of each thread
};

}  // namespace timetrial::layers
