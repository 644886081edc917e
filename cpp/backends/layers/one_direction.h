// A recurrent layer in one direction: sums of the products of a step's input and of the state before it; what
// a cell (cell.h) makes of them is the state behind it.
//
// One product makes the inputs' part of the sums for all steps; a step adds its state's part and runs the
// cell. Back through time each step's gradient of the sums makes that of h before it; what the weights and
// the inputs get are products over all steps at the end. Samples are packed by length (packing.h): only steps
// that count are computed. Threads share the samples, each with rows of its own. States begin at 0, or with
// what the batch before or another layer left: then every sample has all steps.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "layers/caches.h"
#include "layers/cell.h"
#include "layers/layer.h"
#include "layers/packing.h"
#include "layers/product.h"
#include "layers/room.h"
#include "timetrial/backend.hpp"
#include "timetrial/directions.hpp"

namespace timetrial::layers {

// States in front of the first step, (N, units) each; null: 0.
template <typename T>
struct Start {
    const T* hidden = nullptr;
    const T* cell = nullptr;
};

// Of each row of the output it gives `units` numbers, from `column` on.
template <typename T, typename Product, typename Cell>
class OneDirection {
  public:
    using Parameters = std::span<const std::unique_ptr<Parameter<T>>>;

    OneDirection(const Attributes& attributes, TimeDirection direction, int64_t column)
        : units_(attributes.integer("units")),
          gives_all_(attributes.word("output") == "all"),
          direction_(direction),
          column_(column) {}

    // `has_cell`: a start has one.
    void prepare(const Edge<T>& input, const Edge<T>& output, Parameters parameters, bool has_cell,
                 int threads, Room<T>& room) {
        const Shape& in = input.shape;
        parameters_ = parameters;
        steps_ = in.steps;
        features_ = in.step_features();
        width_ = output.shape.step_features();
        const int64_t rows = in.batch * steps_;
        x_ = Buffer<T>(rows * features_);
        if (input.gradient != nullptr) of_x_ = Buffer<T>(rows * features_);
        sums_ = Buffer<T>(rows * columns());
        before_ = Buffer<T>(rows * units_);
        kept_ = Buffer<T>(rows * Cell::kept * units_);
        for (Buffer<T>* one : {&of_state_, &of_more_}) *one = Buffer<T>(in.batch * units_);
        if (has_cell) start_ = Buffer<T>(in.batch * units_);
        batch_ = output.shape.batch;
        block_ = rows_of_block(std::max(features_, units_));
        most_ = (batch_ + threads - 1) / threads;
        room_ = &room;
        for (const bool onward : {true, false}) {
            Cutter<T> cutter(nullptr);
            for (const Gates& part : Cell::of_state)
                cutter.cut(Prepacked::room(recurrent_weight(part, onward), most_));
            room.ask(cutter.taken());
        }
    }

    // `packing`: of these images, the thread's, here as in what follows.
    void forward(const Edge<T>& input, const Edge<T>& output, Share images, int thread,
                 const Packing<T>& packing, const Start<T>& start) {
        const Rows at = rows_of(images.begin, start.cell != nullptr);
        packing.gather(input.value, at.x, features_, direction_);
        start_sums(at.sums, packing.rows());
        for (const Gates& part : Cell::of_input)
            multiply(matrix<const T>(at.x, packing.rows(), features_), !weight(0, part, features_),
                     columns_of(at.sums, packing.rows(), part), true);
        begin(at, images, start);
        const bool has_states = packing.steps() > 1 || start.hidden != nullptr;
        Weights weights = has_states && packing.samples() > 0 ? packed(thread, true) : Weights{};
        for (int64_t t = 0; t < packing.steps(); ++t) {
            for (std::size_t i = 0; i < weights.size(); ++i) {
                const Gates& part = Cell::of_state[i];
                if constexpr (Cell::resets)
                    if (part.of_reset)
                        for_each_row(at, packing, t,
                                     [](const CellRow<T>& row, int64_t) { Cell::reset(row); });
                if (t > 0 || start.hidden != nullptr)
                    weights[i].multiply(states(at, packing, t, part), sums_at(at, packing, t, part), true);
            }
            for_each_row(at, packing, t, [&](const CellRow<T>& row, int64_t r) {
                T* const shown = shown_at(packing, output.value, r, t);
                T* const nowhere = of_state_.data() + (images.begin + r) * units_;
                // It goes on to the next step, or is shown, or both; the last one behind an end neither.
                T* const next = r < packing.active(t + 1) ? at.before + (packing.first(t + 1) + r) * units_
                                                          : (shown != nullptr ? shown : nowhere);
                Cell::forward(row, next);
                if (shown != nullptr && shown != next) std::copy_n(next, units_, shown);
            });
        }
    }

    // Behind that, where every sample has all steps: what it comes to.
    void keep(const Edge<T>& output, Share images, const Packing<T>& packing, T* hidden, T* cell) {
        const int64_t last = packing.steps() - 1;
        if (last < 0) return;  // no samples
        for_each_row(rows_of(images.begin), packing, last, [&](const CellRow<T>& row, int64_t r) {
            const int64_t place = packing.sample(r) * units_;
            std::copy_n(shown_at(packing, output.value, r, last), units_, hidden + place);
            std::copy_n(row.kept, units_, cell + place);
        });
    }

    // Back through time: sums become their gradients. `to_start`: as far as the state in front of the first
    // step.
    void backward_weights(const Edge<T>& output, Share images, int thread, const Packing<T>& packing,
                          bool to_start) {
        const Rows at = rows_of(images.begin, true);
        T* const of_state = of_state_.data() + images.begin * units_;
        T* const of_more = of_more_.data() + images.begin * units_;
        std::fill_n(of_state, packing.samples() * units_, T(0));
        std::fill_n(of_more, packing.samples() * units_, T(0));
        const bool has_states = packing.steps() > 1 || to_start;
        Weights weights = has_states && packing.samples() > 0 ? packed(thread, false) : Weights{};
        for (int64_t t = packing.steps(); t-- > 0;) {
            for_each_row(at, packing, t, [&](const CellRow<T>& row, int64_t r) {
                T* const of_h = of_state + r * units_;
                if (const T* const dy = shown_at(packing, output.gradient, r, t))
                    for (int64_t u = 0; u < units_; ++u) of_h[u] += dy[u];
                Cell::backward(row, of_h, of_more + r * units_);
            });
            const auto go_back = [&](std::size_t i, T* to, bool add) {
                if (t > 0 || to_start)
                    weights[i].multiply(sums_at<const T>(at, packing, t, Cell::of_state[i]),
                                        matrix(to, packing.active(t), units_), add);
            };
            if constexpr (Cell::resets) {
                go_back(weights.size() - 1, of_more, false);
                for_each_row(at, packing, t, [&](const CellRow<T>& row, int64_t r) {
                    Cell::reset_back(row, of_state + r * units_, of_more + r * units_);
                });
            }
            go_back(0, of_state, Cell::adds_to_state);
        }
    }

    // Behind that: the gradient of h in front of the first step, (N, units), or added to what is there.
    void start_gradient(T* to, Share images, bool add) const {
        const int64_t end = images.end * units_;
        for (int64_t i = images.begin * units_; i < end; ++i)
            to[i] = (add ? to[i] : T(0)) + of_state_.data()[i];
    }

    // `add_to_input`: to the gradient that is there.
    void backward_data(const Edge<T>& input, Share images, const Packing<T>& packing, bool add_to_input) {
        const Rows at = rows_of(images.begin);
        T* const of_x = of_x_.data() + images.begin * steps_ * features_;
        bool add = false;
        for (const Gates& part : Cell::of_input) {
            multiply(columns_of<const T>(at.sums, packing.rows(), part), weight(0, part, features_),
                     matrix(of_x, packing.rows(), features_), add);
            add = true;
        }
        packing.scatter(of_x, input.gradient, features_, direction_, add_to_input);
    }

    // Over the rows of all threads, by rows of the weights. `packings`: of each thread.
    void parameter_gradients(std::span<const Packing<T>> packings, int thread, int threads,
                             const typename Layer<T>::Each& each) {
        const Share mine = share_of(Cell::gates * units_, thread, threads);
        for (Share some{mine.begin, mine.begin}; some.begin < mine.end; some.begin = some.end) {
            some.end = std::min(some.begin + block_, mine.end);
            for_each_part(Cell::of_input, some, [&](Share rows, int64_t column, const Gates&) {
                add_up(packings, rows, column, 0, x_.data(), features_, each);
            });
            for_each_part(Cell::of_state, some, [&](Share rows, int64_t column, const Gates& part) {
                add_up(packings, rows, column, 1, (part.of_reset ? kept_ : before_).data(), units_, each);
            });
        }
        if (parameters_.size() > 2) add_up_bias(packings, 2, Cell::of_input, mine, each);
        if (parameters_.size() > 3) add_up_bias(packings, 3, Cell::of_state, mine, each);
    }

  private:
    using Prepacked = typename Product::template Prepacked<T>;
    // The recurrent weight as a thread's products in one way through time read it, by Cell::of_state.
    using Weights = std::array<Prepacked, Cell::of_state.size()>;

    Matrix<const T> recurrent_weight(const Gates& part, bool onward) const {
        return onward ? !weight(1, part, units_) : weight(1, part, units_);
    }
    Weights packed(int thread, bool onward) const {
        Cutter<T> cutter(room_->of(thread));
        Weights weights;
        for (std::size_t i = 0; i < weights.size(); ++i) {
            const Matrix<const T> one = recurrent_weight(Cell::of_state[i], onward);
            weights[i].pack(one, most_, cutter.cut(Prepacked::room(one, most_)));
        }
        return weights;
    }

    // Rows of weights per product: gradient, velocity and weights of a block stay in L2.
    static int64_t rows_of_block(int64_t width) {
        return std::clamp<int64_t>(l2_bytes() / (4 * width * int64_t{sizeof(T)}), 128, 512);
    }

    struct Rows {
        int64_t first;
        T *x, *sums, *before, *kept;  // `before`: h behind the step before
        const T* start;               // c before the first step, of each sample; null: 0
    };

    int64_t columns() const { return Cell::columns * units_; }
    const T* value(std::size_t which) const { return parameters_[which]->value.data(); }

    // A thread's, whose first sample that is.
    Rows rows_of(int64_t sample, bool has_cell = false) {
        const int64_t first = sample * steps_;
        const bool has_start = has_cell && start_.size() > 0;
        return {first,
                x_.data() + first * features_,
                sums_.data() + first * columns(),
                before_.data() + first * units_,
                kept_.data() + first * Cell::kept * units_,
                has_start ? start_.data() + sample * units_ : nullptr};
    }

    // The states in front of the first step; samples that have them are in their order.
    void begin(const Rows& at, Share images, const Start<T>& start) {
        const int64_t first = images.begin * units_, count = (images.end - images.begin) * units_;
        if (start.hidden == nullptr) return std::fill_n(at.before, count, T(0)), void();
        std::copy_n(start.hidden + first, count, at.before);
        if (start.cell != nullptr) std::copy_n(start.cell + first, count, start_.data() + first);
    }

    // Those of a step: f(row, its place).
    template <typename F>
    void for_each_row(const Rows& at, const Packing<T>& packing, int64_t t, F&& f) const {
        constexpr int64_t kept = Cell::kept;
        for (int64_t r = 0; r < packing.active(t); ++r) {
            const int64_t place = packing.first(t) + r;
            const T* const earlier = t > 0 ? at.kept + (packing.first(t - 1) + r) * kept * units_
                                     : at.start != nullptr ? at.start + r * units_
                                                           : nullptr;
            f(CellRow<T>{at.sums + place * columns(), at.before + place * units_, earlier,
                         at.kept + place * kept * units_, units_},
              r);
        }
    }

    // Some gates: their rows of a weight; their columns of rows of sums, and of those of a step; what they
    // multiply of it.
    Matrix<const T> weight(std::size_t which, const Gates& part, int64_t width) const {
        return matrix<const T>(value(which) + part.first * units_ * width, part.count * units_, width);
    }
    template <typename Number = T>
    Matrix<Number> columns_of(T* sums, int64_t rows, const Gates& part) const {
        return matrix<Number>(sums + part.column * units_, rows, part.count * units_, columns());
    }
    template <typename Number = T>
    Matrix<Number> sums_at(const Rows& at, const Packing<T>& packing, int64_t t, const Gates& part) const {
        return columns_of<Number>(at.sums + packing.first(t) * columns(), packing.active(t), part);
    }
    Matrix<const T> states(const Rows& at, const Packing<T>& packing, int64_t t, const Gates& part) const {
        const T* const from = part.of_reset ? at.kept : at.before;
        return matrix<const T>(from + packing.first(t) * units_, packing.active(t), units_);
    }

    // Where the state behind a step is in the output or its gradient; null: nowhere.
    T* shown_at(const Packing<T>& packing, T* output, int64_t r, int64_t t) const {
        const int64_t n = packing.sample(r), length = packing.length(r);
        if (gives_all_ ? t >= length : t + 1 != length) return nullptr;
        const int64_t row = gives_all_ ? n * steps_ + place_of_step(direction_, t, length) : n;
        return output + row * width_ + column_;
    }

    // The biases.
    void start_sums(T* sums, int64_t rows) const {
        if (parameters_.size() == 2 || rows == 0) return std::fill_n(sums, rows * columns(), T(0)), void();
        std::fill_n(sums, columns(), T(0));
        const auto add = [&](std::size_t which, const auto& parts) {
            if (which >= parameters_.size()) return;
            for (const Gates& part : parts)
                for (int64_t i = 0; i < part.count * units_; ++i)
                    sums[part.column * units_ + i] += value(which)[part.first * units_ + i];
        };
        add(2, Cell::of_input);
        add(3, Cell::of_state);
        for (int64_t i = 1; i < rows; ++i) std::copy_n(sums, columns(), sums + i * columns());
    }

    static void multiply(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool add) {
        if (c.rows > 0) Product::template multiply<T>(a, b, c, add);
    }

    // Of the rows of a weight those of each of the parts: f(rows, where their sums stand, the part).
    template <typename Parts, typename F>
    void for_each_part(const Parts& parts, Share rows, F&& f) const {
        for (const Gates& part : parts) {
            const int64_t first = part.first * units_;
            const Share both{std::max(rows.begin, first), std::min(rows.end, first + part.count * units_)};
            if (both.begin < both.end) f(both, part.column * units_ + both.begin - first, part);
        }
    }

    // The gradient of some rows of a weight, from what it was multiplied by.
    void add_up(std::span<const Packing<T>> packings, Share rows, int64_t column, std::size_t which,
                const T* by, int64_t width, const typename Layer<T>::Each& each) {
        Parameter<T>& to = *parameters_[which];
        const int64_t count = rows.end - rows.begin;
        bool add = false;
        for_each_thread(packings, [&](const Rows& at, const Packing<T>& packing) {
            if (packing.rows() == 0) return;
            Product::template multiply<T>(
                !matrix<const T>(at.sums + column, packing.rows(), count, columns()),
                matrix<const T>(by + at.first * width, packing.rows(), width),
                matrix(to.gradient.data() + rows.begin * width, count, width), add);
            add = true;
        });
        each(to, rows.begin * width, rows.end * width);
    }

    template <typename Parts>
    void add_up_bias(std::span<const Packing<T>> packings, std::size_t which, const Parts& parts, Share mine,
                     const typename Layer<T>::Each& each) {
        Parameter<T>& to = *parameters_[which];
        T* const gradient = to.gradient.data();
        std::fill(gradient + mine.begin, gradient + mine.end, T(0));
        for_each_part(parts, mine, [&](Share rows, int64_t column, const Gates&) {
            for_each_thread(packings, [&](const Rows& at, const Packing<T>& packing) {
                for (int64_t i = 0; i < packing.rows(); ++i) {
                    const T* const sums = at.sums + i * columns() + column;
                    for (int64_t k = 0; k < rows.end - rows.begin; ++k) gradient[rows.begin + k] += sums[k];
                }
            });
        });
        each(to, mine.begin, mine.end);
    }

    template <typename F>
    void for_each_thread(std::span<const Packing<T>> packings, F&& f) {
        const int threads = static_cast<int>(packings.size());
        for (int thread = 0; thread < threads; ++thread)
            f(rows_of(share_of(batch_, thread, threads).begin), packings[static_cast<std::size_t>(thread)]);
    }

    int64_t units_;
    bool gives_all_;
    TimeDirection direction_;
    int64_t column_, width_ = 0;
    int64_t steps_ = 0, features_ = 0, batch_ = 0;
    int64_t most_ = 0, block_ = 0;  // samples of a thread; rows of weights per product
    Room<T>* room_ = nullptr;
    Parameters parameters_;
    Buffer<T> start_;  // c in front of the first step, which the way back reads when the state has moved
    // Of every row: its input, its sums (then what the cell leaves there, then their gradients), h behind the
    // step before, what the cell keeps.
    Buffer<T> x_, of_x_, sums_, before_, kept_;
    Buffer<T> of_state_, of_more_;  // gradients of a sample's states, at the step that is gone back through
};

}  // namespace timetrial::layers
