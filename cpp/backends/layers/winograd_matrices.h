// The transforms of Winograd's minimal filtering F(4, 3), for a line of numbers or of registers.
//
// y = A' [(G g) * (B' x)]: four outputs of a filter g of three taps, from six inputs x, by six
// multiplications instead of twelve (Winograd 1980; Lavin and Gray 2016, section 4). In two dimensions, the
// lines and then the columns of a tile: 36 multiplications instead of 144. The six points are 0, a, -a, b, -b
// and infinity. With 3/4 and 3/2 for a and b the error in f32 is half of that with the usual 1 and 2, and
// about three times that of a direct sum.
//
// Backward, the same matrices are used transposed: the gradient of x through y is a filtering itself; that of
// g is G' [(A y) * (B' x)].
#pragma once

#include <array>

namespace timetrial::layers::winograd {

inline constexpr int64_t tile = 4;   // outputs, each way
inline constexpr int64_t reach = 6;  // inputs, each way
inline constexpr int64_t products = reach * reach;

inline constexpr double a = 0.75, b = 1.5;
inline constexpr double a2 = a * a, b2 = b * b;

template <typename V, std::size_t N>
using Line = std::array<V, N>;

// B' x
template <typename T, typename V>
__attribute__((always_inline)) inline Line<V, 6> transform_input(const Line<V, 6>& x) {
    constexpr T pa = T(a), pb = T(b), qa = T(a2), qb = T(b2), ab = T(a2 * b2), sum = T(a2 + b2);
    const V even_a = x[4] - qb * x[2], odd_a = pa * (x[3] - qb * x[1]);
    const V even_b = x[4] - qa * x[2], odd_b = pb * (x[3] - qa * x[1]);
    return {ab * x[0] - sum * x[2] + x[4], even_a + odd_a, even_a - odd_a, even_b + odd_b, even_b - odd_b,
            ab * x[1] - sum * x[3] + x[5]};
}

// G g
template <typename T, typename V>
__attribute__((always_inline)) inline Line<V, 6> transform_filter(const Line<V, 3>& g) {
    constexpr T zero = T(1 / (a2 * b2)), fa = T(1 / (2 * a2 * (a2 - b2))), fb = T(1 / (2 * b2 * (b2 - a2)));
    const V even_a = fa * g[0] + T(fa * a2) * g[2], odd_a = T(fa * a) * g[1];
    const V even_b = fb * g[0] + T(fb * b2) * g[2], odd_b = T(fb * b) * g[1];
    return {zero * g[0], even_a + odd_a, even_a - odd_a, even_b + odd_b, even_b - odd_b, g[2]};
}

// A' m
template <typename T, typename V>
__attribute__((always_inline)) inline Line<V, 4> transform_back(const Line<V, 6>& m) {
    const V sum_a = m[1] + m[2], difference_a = m[1] - m[2];
    const V sum_b = m[3] + m[4], difference_b = m[3] - m[4];
    return {m[0] + sum_a + sum_b, T(a) * difference_a + T(b) * difference_b, T(a2) * sum_a + T(b2) * sum_b,
            T(a2 * a) * difference_a + T(b2 * b) * difference_b + m[5]};
}

// A y
template <typename T, typename V>
__attribute__((always_inline)) inline Line<V, 6> transform_output_gradient(const Line<V, 4>& y) {
    const V even_a = y[0] + T(a2) * y[2], odd_a = T(a) * y[1] + T(a2 * a) * y[3];
    const V even_b = y[0] + T(b2) * y[2], odd_b = T(b) * y[1] + T(b2 * b) * y[3];
    return {y[0], even_a + odd_a, even_a - odd_a, even_b + odd_b, even_b - odd_b, y[3]};
}

// G' u
template <typename T, typename V>
__attribute__((always_inline)) inline Line<V, 3> transform_filter_gradient(const Line<V, 6>& u) {
    constexpr T zero = T(1 / (a2 * b2)), fa = T(1 / (2 * a2 * (a2 - b2))), fb = T(1 / (2 * b2 * (b2 - a2)));
    const V sum_a = u[1] + u[2], sum_b = u[3] + u[4];
    return {zero * u[0] + fa * sum_a + fb * sum_b, T(fa * a) * (u[1] - u[2]) + T(fb * b) * (u[3] - u[4]),
            T(fa * a2) * sum_a + T(fb * b2) * sum_b + u[5]};
}

// Columns, then lines, of a tile: In x In numbers in row-major order to Out x Out.
template <std::size_t In, std::size_t Out, typename V, typename Transform>
__attribute__((always_inline)) inline void transform_tile(const V (&from)[In * In], V (&to)[Out * Out],
                                                          const Transform& transform) {
    V between[Out * In];
#pragma GCC unroll 6
    for (std::size_t column = 0; column < In; ++column) {
        Line<V, In> line;
#pragma GCC unroll 6
        for (std::size_t i = 0; i < In; ++i) line[i] = from[i * In + column];
        const Line<V, Out> made = transform(line);
#pragma GCC unroll 6
        for (std::size_t i = 0; i < Out; ++i) between[i * In + column] = made[i];
    }
#pragma GCC unroll 6
    for (std::size_t row = 0; row < Out; ++row) {
        Line<V, In> line;
#pragma GCC unroll 6
        for (std::size_t i = 0; i < In; ++i) line[i] = between[row * In + i];
        const Line<V, Out> made = transform(line);
#pragma GCC unroll 6
        for (std::size_t i = 0; i < Out; ++i) to[row * Out + i] = made[i];
    }
}

}  // namespace timetrial::layers::winograd
