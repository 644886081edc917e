// exp, sigmoid and tanh of a whole register at a time, within a few units in the last place: a recurrent
// layer computes five of them for every unit and step, a language model's loss one for every word that it
// knows. In double, where they judge, the library's own.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "layers/lanes.h"

namespace timetrial::layers {

template <typename T>
struct Curves;

template <>
struct Curves<float> {
    using Register = Lanes<float>::Register;
    typedef int32_t Integers __attribute__((vector_size(Lanes<float>::bytes)));

    // 2^n e^r with n whole and |r| <= log(2) / 2; the polynomial's error is 3e-9 (fitted to the largest error
    // of e^r over that range). Between -87 and 87, beyond which 1 + e^x is as good as one of the two.
    static Register exp(Register x) {
        x = x < -87.0F ? Register{} - 87.0F : x;
        x = x > 87.0F ? Register{} + 87.0F : x;
        const Register rounder =
            Register{} + 12582912.0F;  // 1.5 2^23: what is added to it loses its fraction
        const Register n = (x * 1.44269504F + rounder) - rounder;
        const Register r = (x - n * 0.693359375F) + n * 2.12194440e-4F;  // log(2) in two parts
        Register p = Register{} + 0.00139505218F;
        p = p * r + 0.00836890843F;
        p = p * r + 0.0416662060F;
        p = p * r + 0.166665182F;
        p = p * r + 0.5F;
        p = p * (r * r) + (r + 1.0F);
        const Integers bits = (__builtin_convertvector(n, Integers) + 127) << 23;
        Register scale;
        std::memcpy(&scale, &bits, sizeof scale);
        return p * scale;
    }

    static Register sigmoid(Register x) { return 1.0F / (1.0F + exp(-x)); }

    // x + x^3 P(x^2) near 0, where 1 - 2 / (e^2x + 1) would cancel.
    static Register tanh(Register x) {
        const Register size = x < 0.0F ? -x : x;
        const Register square = x * x;
        Register p = Register{} - 0.00571703631F;
        p = p * square + 0.0206505787F;
        p = p * square - 0.0537434965F;
        p = p * square + 0.133314908F;
        p = p * square - 0.333332837F;
        const Register near = x + x * (square * p);
        const Register far = 1.0F - 2.0F / (exp(size + size) + 1.0F);
        return size < 0.625F ? near : (x < 0.0F ? -far : far);
    }
};

template <>
struct Curves<double> {
    using Register = Lanes<double>::Register;

    static Register exp(Register x) {
        return each(x, [](double one) { return std::exp(one); });
    }
    static Register sigmoid(Register x) {
        return each(x, [](double one) { return 1 / (1 + std::exp(-one)); });
    }
    static Register tanh(Register x) {
        return each(x, [](double one) { return std::tanh(one); });
    }

  private:
    template <typename F>
    static Register each(Register x, F&& f) {
        for (int64_t i = 0; i < Lanes<double>::count; ++i) x[i] = f(x[i]);
        return x;
    }
};

}  // namespace timetrial::layers
