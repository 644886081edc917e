// A register full of numbers, in the width of the ISA that the file is compiled for: arithmetic on it is the
// compiler's own, element by element.
#pragma once

#include <cstdint>

namespace timetrial::layers {

template <typename T>
struct Lanes {
#if defined(__AVX512F__)
    static constexpr int64_t bytes = 64;
#elif defined(__AVX__)
    static constexpr int64_t bytes = 32;
#else
    static constexpr int64_t bytes = 16;
#endif
    static constexpr int64_t count = bytes / int64_t{sizeof(T)};
    typedef T Register __attribute__((vector_size(bytes)));
    // The same in memory, at any address.
    typedef T Unaligned __attribute__((vector_size(bytes), aligned(alignof(T)), may_alias));

    __attribute__((always_inline)) static Register load(const T* from) {
        return *reinterpret_cast<const Unaligned*>(from);
    }
    __attribute__((always_inline)) static void store(T* to, Register value) {
        *reinterpret_cast<Unaligned*>(to) = value;
    }
    static constexpr int64_t round_up(int64_t n) { return (n + count - 1) / count * count; }
};

}  // namespace timetrial::layers
