// embedding: y[n][t] = the row of the weights that the token x[n][t] names. Tokens come as numbers of the
// engine's type.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "layers/layer.h"
#include "timetrial/backend.hpp"

namespace timetrial::layers {

template <typename T>
class Embedding final : public LayerOfOne<T> {
  public:
    explicit Embedding(const Attributes& attributes)
        : vocabulary_(attributes.integer("vocabulary")), units_(attributes.integer("units")) {
        if (vocabulary_ > most)
            throw Unsupported("vocabulary = " + std::to_string(vocabulary_) + ": the backend takes at most " +
                              std::to_string(most) + " tokens");
    }

    void forward(const Edge<T>& input, const Edge<T>& output, Share images, int) override {
        const int64_t steps = input.shape.features();
        for (int64_t i = images.begin * steps; i < images.end * steps; ++i)
            std::copy_n(weight().value.data() + row_of(input.value[i]) * units_, units_,
                        output.value + i * units_);
    }

    void backward_data(const Edge<T>&, const Edge<T>&, Share, int, bool) override {}

    // By rows of the weights: each thread adds up what its tokens got, in the order of the batch.
    void parameter_gradients(const Edge<T>& input, const Edge<T>& output, int thread, int threads,
                             const typename Layer<T>::Each& each) override {
        const Share mine = share_of(vocabulary_, thread, threads);
        T* const gradient = weight().gradient.data();
        std::fill(gradient + mine.begin * units_, gradient + mine.end * units_, T(0));
        const int64_t tokens = input.shape.batch * input.shape.features();
        for (int64_t i = 0; i < tokens; ++i) {
            const auto token = static_cast<int64_t>(input.value[i]);
            if (token < mine.begin || token >= mine.end) continue;
            const T* dy = output.gradient + i * units_;
            T* to = gradient + token * units_;
            for (int64_t u = 0; u < units_; ++u) to[u] += dy[u];
        }
        if (!weight().is_tied) each(weight(), mine.begin * units_, mine.end * units_);
    }

  private:
    static constexpr int64_t most = int64_t{1} << 24;  // exact in f32

    Parameter<T>& weight() const { return *this->parameters[0]; }
    int64_t row_of(T token) const {
        const auto row = static_cast<int64_t>(token);
        if (row < 0 || row >= vocabulary_)
            throw std::invalid_argument("token " + std::to_string(row) + " is outside the vocabulary, 0 to " +
                                        std::to_string(vocabulary_ - 1));
        return row;
    }

    const int64_t vocabulary_, units_;
};

}  // namespace timetrial::layers
