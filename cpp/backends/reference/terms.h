// Layers that are sums of products. A definition lists its terms, y[j] += w[k] * x[i], and nothing else.
// Since dy[j]/dx[i] = w[k] and dy[j]/dw[k] = x[i], the same list has the gradients: each term, read backward,
// says
//   gx[i] += w[k] * gy[j]    and    gw[k] += x[i] * gy[j].
#pragma once

#include <algorithm>
#include <array>

#include "function.h"

namespace timetrial::reference {

// Every `stride`-th value of a tensor, from `first` on. Stride 0: the same value again and again.
struct Row {
    Tensor& of;
    std::size_t first;
    std::size_t stride;

    double* values() const { return of.value.data() + first; }
    double* gradients() const { return of.gradient.data() + first; }
};

// One behind the other, so several at a time.
inline void add_multiple(double* to, double factor, const double* values, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to[i] += factor * values[i];
}

// In four parts: none of them waits for the others.
inline double product_of(const double* a, const double* b, std::size_t count) {
    std::array<double, 4> parts{};
    std::size_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (std::size_t part = 0; part < 4; ++part) parts[part] += a[i + part] * b[i + part];
    for (; i < count; ++i) parts[0] += a[i] * b[i];
    return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

// to[i] += a[i] * b[i], each with its stride; into one value where to_stride is 0.
inline void add_products(double* to, std::size_t to_stride, const double* a, std::size_t a_stride,
                         const double* b, std::size_t b_stride, std::size_t count) {
    if (to_stride == 1 && a_stride == 0 && b_stride == 1) {
        add_multiple(to, *a, b, count);
    } else if (to_stride == 1 && a_stride == 1 && b_stride == 0) {
        add_multiple(to, *b, a, count);
    } else if (to_stride == 0 && a_stride == 1 && b_stride == 1) {
        *to += product_of(a, b, count);
    } else {
        for (std::size_t i = 0; i < count; ++i) to[i * to_stride] += a[i * a_stride] * b[i * b_stride];
    }
}

// What a definition tells its terms to: `count` of them at a time, along rows.
struct Forward {
    static constexpr bool goes_back = false;
    // y += w * x
    void product(const Row& y, const Row& w, const Row& x, std::size_t count) const {
        add_products(y.values(), y.stride, w.values(), w.stride, x.values(), x.stride, count);
    }
    // y += factor * x
    void value(const Row& y, const Row& x, std::size_t count, double factor = 1) const {
        add_products(y.values(), y.stride, &factor, 0, x.values(), x.stride, count);
    }
};

struct Backward {
    static constexpr bool goes_back = true;
    void product(const Row& y, const Row& w, const Row& x, std::size_t count) const {
        add_products(x.gradients(), x.stride, w.values(), w.stride, y.gradients(), y.stride, count);
        add_products(w.gradients(), w.stride, x.values(), x.stride, y.gradients(), y.stride, count);
    }
    void value(const Row& y, const Row& x, std::size_t count, double factor = 1) const {
        add_products(x.gradients(), x.stride, &factor, 0, y.gradients(), y.stride, count);
    }
};

// Backward, where sums over many places are off by what rounding does to them while they grow.
struct DisturbedBackward : Backward {
    Disturbance& disturbance;

    explicit DisturbedBackward(Disturbance& by) : disturbance(by) {}
    void product(const Row& y, const Row& w, const Row& x, std::size_t count) const {
        Backward::product(y, w, x, count);
        disturb(w, count);
    }
    void value(const Row& y, const Row& x, std::size_t count, double factor = 1) const {
        Backward::value(y, x, count, factor);
        disturb(x, count);
    }

  private:
    void disturb(const Row& sums, std::size_t count) const {
        for (std::size_t i = 0; i < (sums.stride == 0 ? 1 : count); ++i)
            sums.gradients()[i * sums.stride] *= 1 + disturbance.next();
    }
};

// A layer from its definition: define(terms, x, y), with Forward or Backward for `terms`. It may look at
// values (a maximum has to), and decide alike in both.
template <class Definition>
class Sum : public Function {
  public:
    void forward(std::span<Tensor* const> x, Tensor& y, Mode) final {
        std::fill(y.value.begin(), y.value.end(), 0.0);
        definition().define(Forward{}, x, y);
    }
    void backward(std::span<Tensor* const> x, Tensor& y) final {
        if (disturbance)
            definition().define(DisturbedBackward(*disturbance), x, y);
        else
            definition().define(Backward{}, x, y);
    }

  private:
    const Definition& definition() const { return static_cast<const Definition&>(*this); }
};

}  // namespace timetrial::reference
