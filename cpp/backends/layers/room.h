// Memory that layers use one after the other.
#pragma once

#include <cstdint>
#include <vector>

#include "layers/buffer.h"

namespace timetrial::layers {

// A thread's own piece each, as large as the layer that needs most asked for.
template <typename T>
class Room {
  public:
    explicit Room(int threads) : pieces_(static_cast<std::size_t>(threads)) {}

    // Before any step; what was in it is lost.
    void ask(int64_t values) {
        for (Buffer<T>& piece : pieces_) {
            if (piece.size() >= values) continue;
            piece = Buffer<T>();  // first, so that there are never both
            piece = Buffer<T>(values);
        }
    }
    T* of(int thread) { return pieces_[static_cast<std::size_t>(thread)].data(); }

  private:
    std::vector<Buffer<T>> pieces_;
};

// What all layers share.
template <typename T>
struct Rooms {
    explicit Rooms(int threads) : call(threads), sums(threads), gradients(threads) {}
    Room<T> call;  // nothing in it outlives the call of a layer
    Room<T> sums;  // of a layer's backward_weights(), until the parameter_gradients() that follows at once
    Room<T> gradients;  // a part of one, until it has been used (Parameter::passing)
};

// Cuts a piece of memory into arrays that begin at cache lines. From null it gives nulls, and counts.
template <typename T>
class Cutter {
  public:
    explicit Cutter(T* memory) : memory_(memory) {}

    T* cut(int64_t values) {
        T* const made = memory_ ? memory_ + taken_ : nullptr;
        taken_ += (values + line - 1) / line * line;
        return made;
    }
    int64_t taken() const { return taken_; }

  private:
    static constexpr int64_t line = 64 / int64_t{sizeof(T)};
    T* memory_;
    int64_t taken_ = 0;
};

}  // namespace timetrial::layers
