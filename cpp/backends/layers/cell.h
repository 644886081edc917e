// What a recurrent layer's cell is (recurrent.h): what it does at one step with the sums of one sample, and
// which gate's sums stand where.
#pragma once

#include <cstdint>

namespace timetrial::layers {

// Of the rows of a weight those of `count` gates from `first` on; their sums stand from `column` on. In units
// of a gate's numbers. `of_reset`: the product is not with the state h, but with what the cell's reset() made
// of it.
struct Gates {
    int64_t first, count, column;
    bool of_reset = false;
};

// `units` numbers each, or so many times as many.
template <typename T>
struct CellRow {
    T* __restrict sums;         // Cell::columns times; where what backward reads is left, and then gradients
    const T* __restrict state;  // h behind the step before
    const T* __restrict earlier;  // what that step kept; null: 0
    T* __restrict kept;           // Cell::kept times, for backward and for the next step
    int64_t units;
};

// A Cell has:
//   gates, columns, kept      how many: of the weights; in a row of sums; see above
//   of_input, of_state        arrays of Gates, of the weight and the recurrent weight
//   adds_to_state             whether h reaches the next one beside the products too
//   resets                    whether the last of of_state is `of_reset`
//   static void forward(const CellRow<T>& row, T* state)      to h behind the step
//   static void backward(const CellRow<T>& row, T* of_state, T* of_more)
// backward() has the gradient of h behind the step in `of_state`; it makes gradients of the sums, and leaves
// there what h before it gets beside the products. `of_more` is the cell's own from step to step, 0 at first.
// One that resets has also, in front of the last product and behind its gradient, which is then `of_more`:
//   static void reset(const CellRow<T>& row)                  of complete sums of the other gates; to `kept`
//   static void reset_back(const CellRow<T>& row, T* of_state, const T* of_reset)

}  // namespace timetrial::layers
