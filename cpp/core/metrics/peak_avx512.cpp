// Compiled for avx512 alone: nothing but this loop may stand here, or another file's copy of an inline
// function could be this one's.
#include <immintrin.h>

#include <cstdint>

namespace timetrial {

std::uint64_t multiply_add_avx512(std::uint64_t rounds) {
    constexpr int accumulators = 16;  // 16 of 32 registers; two units with a latency of 4 need 8.
    constexpr std::uint64_t lanes = 16;
    const __m512 factor = _mm512_set1_ps(0.999f);  // with the term: converges to 1, no overflow, no denormals
    const __m512 term = _mm512_set1_ps(0.001f);
    __m512 sums[accumulators];
    for (__m512& lane : sums) lane = term;
    for (std::uint64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
        for (__m512& lane : sums) lane = _mm512_fmadd_ps(lane, factor, term);
    }
    // The compiler must believe that someone wants the results.
    for (__m512& lane : sums) __asm__ volatile("" : : "x"(lane));
    return rounds * accumulators * lanes * 2;
}

}  // namespace timetrial
