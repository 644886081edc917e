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

// As many numbers as there are of a register: all of them, or `count`, the others 0.
template <typename T>
struct Whole {
    using Register = typename Lanes<T>::Register;
    __attribute__((always_inline)) Register load(const T* from) const { return Lanes<T>::load(from); }
    __attribute__((always_inline)) void store(T* to, Register value) const { Lanes<T>::store(to, value); }
};
template <typename T>
struct Part {
    using Register = typename Lanes<T>::Register;
    int64_t count;

    Register load(const T* from) const {
        Register full{};
        for (int64_t i = 0; i < count; ++i) full[i] = from[i];
        return full;
    }
    void store(T* to, Register value) const {
        for (int64_t i = 0; i < count; ++i) to[i] = value[i];
    }
};

// Along `count` numbers, a register at a time: f(first, some), where `some` loads and stores those from
// there.
template <typename T, typename F>
inline void by_registers(int64_t count, F&& f) {
    int64_t i = 0;
    for (; i + Lanes<T>::count <= count; i += Lanes<T>::count) f(i, Whole<T>{});
    if (i < count) f(i, Part<T>{count - i});
}

}  // namespace timetrial::layers
