// embedding: y[n][t][u] = w[x[n][t]][u], a row of the weights for each token.
#pragma once

#include <stdexcept>
#include <string>

#include "terms.h"

namespace timetrial::reference {

// Tokens are whole numbers: they choose what is added, and have no gradient.
class Embedding final : public Sum<Embedding> {
  public:
    template <class Terms>
    void define(Terms terms, std::span<Tensor* const> inputs, Tensor& y) const {
        const Values& tokens = inputs[0]->value;
        const std::size_t units = y.extent(2);
        for (std::size_t i = 0; i < tokens.size(); ++i)
            terms.value({y, i * units, 1}, {weight(), row_of(tokens[i]) * units, 1}, units);
    }

  private:
    std::size_t row_of(double token) const {
        if (!(token >= 0 && token < static_cast<double>(weight().extent(0))))
            throw std::invalid_argument("token " + std::to_string(static_cast<int64_t>(token)) +
                                        " is outside the vocabulary, 0 to " +
                                        std::to_string(weight().extent(0) - 1));
        return static_cast<std::size_t>(token);
    }
};

}  // namespace timetrial::reference
