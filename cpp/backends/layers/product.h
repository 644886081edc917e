// What a backend supplies: the matrix product, once and over and over by the same matrix, and nothing else.
#pragma once

#include <cstdint>

namespace timetrial::layers {

// A row-major matrix inside somebody's buffer; `stride` is the distance between rows, in elements.
// `transposed` means: use it the other way round (rows and columns are those of the buffer).
template <typename T>
struct Matrix {
    T* data;
    int64_t rows;
    int64_t columns;
    int64_t stride;
    bool transposed = false;

    Matrix operator!() const { return {data, rows, columns, stride, !transposed}; }
};

template <typename T>
Matrix<T> matrix(T* data, int64_t rows, int64_t columns) {
    return {data, rows, columns, columns};
}

template <typename T>
Matrix<T> matrix(T* data, int64_t rows, int64_t columns, int64_t stride) {
    return {data, rows, columns, stride};
}

// A Product has:
//   template <typename T> static void multiply(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool add);
// c = a b, or c = c + a b where `add`. c is never transposed. Called from several threads at once.
//   template <typename T> Prepacked: a right matrix of many products, laid out for them once, for one thread.
//     static int64_t room(Matrix<const T> b, int64_t most)          numbers; products have up to `most` rows
//     void pack(Matrix<const T> b, int64_t most, T* room)           both stay until the last product
//     void multiply(Matrix<const T> a, Matrix<T> c, bool add)       as above; neither is transposed

}  // namespace timetrial::layers
