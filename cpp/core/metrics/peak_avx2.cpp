// Compiled for avx2 alone: nothing but this loop may stand here, or another file's copy of an inline function
// could be this one's.
#include <immintrin.h>

#include <cstdint>

namespace timetrial {

std::uint64_t multiply_add_avx2(std::uint64_t rounds) {
    constexpr int accumulators = 12;  // 12 of 16 registers; two units with a latency of 4 to 5 need 10.
    constexpr std::uint64_t lanes = 8;
    const __m256 factor = _mm256_set1_ps(0.999f);  // with the term: converges to 1, no overflow, no denormals
    const __m256 term = _mm256_set1_ps(0.001f);
    __m256 sums[accumulators];
    for (__m256& lane : sums) lane = term;
    for (std::uint64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
        for (__m256& lane : sums) lane = _mm256_fmadd_ps(lane, factor, term);
    }
    // The compiler must believe that someone wants the results.
    for (__m256& lane : sums) __asm__ volatile("" : : "x"(lane));
    return rounds * accumulators * lanes * 2;
}

}  // namespace timetrial
