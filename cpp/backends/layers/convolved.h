// What the kinds of convolution share: weight and bias, and the gradients that each thread keeps of its own
// images until the threads have met.
#pragma once

#include <algorithm>
#include <vector>

#include "layers/layer.h"

namespace timetrial::layers {

// f(channel, the place of the images' values, how many there are)
template <typename F>
inline void for_each_channel(const Shape& shape, Share images, F&& f) {
    for (int64_t c = 0; c < shape.channels; ++c)
        f(c, (c * shape.batch + images.begin) * shape.plane(), (images.end - images.begin) * shape.plane());
}

template <typename T>
inline void clear(const Shape& shape, Share images, T* values) {
    for_each_channel(shape, images, [&](int64_t, int64_t first, int64_t count) {
        std::fill_n(values + first, count, T(0));
    });
}

// Of each thread, and their sum in the order of the threads.
template <typename T>
class OwnGradients {
  public:
    void prepare(int64_t size, int threads) {
        for (int thread = 0; thread < threads; ++thread) own_.emplace_back(size);
    }
    // To be added to, from zero.
    T* begin(int thread) {
        own_[static_cast<size_t>(thread)].zero();
        return own_[static_cast<size_t>(thread)].data();
    }
    // `to`: of the first of the part.
    void sum(Share part, T* to) const {
        for (int64_t i = part.begin; i < part.end; ++i) {
            T sum = 0;
            for (const Buffer<T>& own : own_) sum += own.data()[i];
            *to++ = sum;
        }
    }

  private:
    std::vector<Buffer<T>> own_;
};

template <typename T>
class Convolved : public LayerOfOne<T> {
  public:
    bool keeps_output_gradient() const final { return false; }

    void equip(Algorithm, Rooms<T>& rooms) override { rooms_ = &rooms; }

    void parameter_gradients(const Edge<T>&, const Edge<T>&, int thread, int threads,
                             const typename Layer<T>::Each& each) final {
        auto& weights = *this->parameters[0];
        const int64_t rows = weights.shape[0], per_row = weights.size() / rows;
        const Share mine = share_of(rows, thread, threads);
        for (int64_t row = mine.begin; row < mine.end; row += block) {
            const int64_t end = std::min(row + block, mine.end);
            sum_weight_gradient({row, end}, weights.gradient_from(row * per_row, thread));
            each(weights, row * per_row, end * per_row);
        }
        if (!bias()) return;
        auto& biases = *this->parameters[1];
        const Share part = share_of(biases.size(), thread, threads);
        bias_gradients_.sum(part, biases.gradient.data() + part.begin);
        each(biases, part.begin, part.end);
    }

  protected:
    // The gradient of some rows of the weight, from what each thread has kept; `to`: of the first of them.
    virtual void sum_weight_gradient(Share rows, T* to) = 0;

    void prepare_parameters(int64_t outputs, int threads) {
        auto& weights = *this->parameters[0];
        const int64_t rows = weights.shape[0];
        weights.may_pass(rooms_->gradients,
                         std::min(block, largest_share(rows, threads)) * (weights.size() / rows));
        bias_gradients_.prepare(bias() ? outputs : 0, threads);
    }
    T* begin_bias_gradient(int thread) { return bias_gradients_.begin(thread); }

    const T* weight() const { return this->parameters[0]->value.data(); }
    const T* bias() const {
        return this->parameters.size() > 1 ? this->parameters[1]->value.data() : nullptr;
    }

    Rooms<T>* rooms_ = nullptr;

  private:
    // Rows of the weight per part of its gradient: whole squares of Correlation, and as few as stay in L2
    // with states and weights.
    static constexpr int64_t block = 32;

    OwnGradients<T> bias_gradients_;
};

}  // namespace timetrial::layers
