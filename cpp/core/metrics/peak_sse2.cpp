// Compiled for sse2 alone: nothing but this loop may stand here, or another file's copy of an inline function
// could be this one's.
#include <immintrin.h>

#include <cstdint>

namespace timetrial {

std::uint64_t multiply_add_sse2(std::uint64_t rounds) {
    constexpr int accumulators =
        12;  // 12 of 16 registers. No fused operation here: a multiplication, then an addition.
    constexpr std::uint64_t lanes = 4;
    const __m128 factor = _mm_set1_ps(0.999f);  // with the term: converges to 1, no overflow, no denormals
    const __m128 term = _mm_set1_ps(0.001f);
    __m128 sums[accumulators];
    for (__m128& lane : sums) lane = term;
    for (std::uint64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
        for (__m128& lane : sums) lane = _mm_add_ps(_mm_mul_ps(lane, factor), term);
    }
    // The compiler must believe that someone wants the results.
    for (__m128& lane : sums) __asm__ volatile("" : : "x"(lane));
    return rounds * accumulators * lanes * 2;
}

}  // namespace timetrial
