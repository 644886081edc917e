// y = x W^T + b, with x (N x F), W (units x F): the layout of the weights is that of the files. Of a sequence
// every step is a row.
#pragma once

#include <algorithm>

#include "layers/layer.h"
#include "layers/product.h"

namespace timetrial::layers {

template <typename T, typename Product>
class Dense final : public LayerOfOne<T> {
  public:
    void equip(Algorithm, Rooms<T>& rooms) override { rooms_ = &rooms; }

    void prepare(const Edge<T>& input, const Edge<T>& output, int threads) override {
        if (this->tied != nullptr) return;
        const int64_t share = largest_share(output.shape.step_features(), threads);
        weight().may_pass(rooms_->gradients, std::min(block, share) * input.shape.step_features());
    }

    void forward(const Edge<T>& input, const Edge<T>& output, Share images, int) override {
        const int64_t features = input.shape.step_features(), units = output.shape.step_features();
        const int64_t begin = images.begin * input.shape.steps, rows = images.end * input.shape.steps - begin;
        T* y = output.value + begin * units;
        if (const T* b = bias()) {
            for (int64_t row = 0; row < rows; ++row) std::copy_n(b, units, y + row * units);
        }
        Product::template multiply<T>(matrix<const T>(input.value + begin * features, rows, features),
                                      !matrix<const T>(weights(), units, features), matrix(y, rows, units),
                                      bias() != nullptr);
    }

    void backward_data(const Edge<T>& input, const Edge<T>& output, Share images, int, bool add) override {
        const int64_t features = input.shape.step_features(), units = output.shape.step_features();
        const int64_t begin = images.begin * input.shape.steps, rows = images.end * input.shape.steps - begin;
        Product::template multiply<T>(matrix<const T>(output.gradient + begin * units, rows, units),
                                      matrix<const T>(weights(), units, features),
                                      matrix(input.gradient + begin * features, rows, features), add);
    }

    // Over all images at once, by rows of W: no private copies of a large matrix, nothing to add up. A tied
    // weight has its first part already, which this thread made of the same rows.
    void parameter_gradients(const Edge<T>& input, const Edge<T>& output, int thread, int threads,
                             const typename Layer<T>::Each& each) override {
        const int64_t features = input.shape.step_features(), units = output.shape.step_features();
        const int64_t n = input.shape.batch * input.shape.steps;
        const Share mine = share_of(units, thread, threads);
        auto& weights = weight();
        for (int64_t unit = mine.begin; unit < mine.end; unit += block) {
            const int64_t count = std::min(block, mine.end - unit);
            Product::template multiply<T>(
                !matrix<const T>(output.gradient + unit, n, count, units),
                matrix<const T>(input.value, n, features),
                matrix(weights.gradient_from(unit * features, thread), count, features),
                this->tied != nullptr);
            each(weights, unit * features, (unit + count) * features);
        }
        if (has_bias()) {
            auto& biases = *this->parameters.back();
            T* gradient = biases.gradient.data();
            std::fill(gradient + mine.begin, gradient + mine.end, T(0));
            for (int64_t row = 0; row < n; ++row) {
                const T* dy = output.gradient + row * units;
                for (int64_t unit = mine.begin; unit < mine.end; ++unit) gradient[unit] += dy[unit];
            }
            each(biases, mine.begin, mine.end);
        }
    }

  private:
    // Rows of W per product: enough work for it, and gradient, velocity and weights of a block stay in L2.
    static constexpr int64_t block = 128;

    Rooms<T>* rooms_ = nullptr;

    bool has_bias() const { return this->parameters.size() > (this->tied != nullptr ? 0 : 1); }
    Parameter<T>& weight() const { return this->tied != nullptr ? *this->tied : *this->parameters[0]; }
    const T* weights() const { return weight().value.data(); }
    const T* bias() const { return has_bias() ? this->parameters.back()->value.data() : nullptr; }
};

}  // namespace timetrial::layers
