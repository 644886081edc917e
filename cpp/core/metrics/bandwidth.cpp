#include "metrics/bandwidth.h"

#include <emmintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "clock/clock.h"
#include "metrics/windows.h"

namespace timetrial {
namespace {

constexpr std::size_t line = 16;      // floats of a cache line
constexpr std::size_t piece = 65536;  // elements between two looks at the clock: the look is lost in it
constexpr std::uint64_t arrays = 3;
constexpr std::uint64_t least_bytes = 4096;  // of a thread

using Triad = void (*)(float* a, const float* b, const float* c, std::size_t count);

// A sanitizer's looks at each access take longer than a cache does, and what is measured is no longer the
// memory.
#define UNWATCHED __attribute__((no_sanitize("address", "undefined")))

// Vectors of 16 bytes move as much as wider ones: lines do, not instructions.
UNWATCHED void triad_stores(float* a, const float* b, const float* c, std::size_t count) {
    const __m128 factor = _mm_set1_ps(0.5f);
    for (std::size_t i = 0; i < count; i += 4)
        _mm_store_ps(a + i, _mm_add_ps(_mm_load_ps(b + i), _mm_mul_ps(factor, _mm_load_ps(c + i))));
}

UNWATCHED void triad_streams(float* a, const float* b, const float* c, std::size_t count) {
    const __m128 factor = _mm_set1_ps(0.5f);
    for (std::size_t i = 0; i < count; i += 4)
        _mm_stream_ps(a + i, _mm_add_ps(_mm_load_ps(b + i), _mm_mul_ps(factor, _mm_load_ps(c + i))));
    _mm_sfence();
}

constexpr Triad triads[] = {triad_stores, triad_streams};

struct Free {
    void operator()(float* memory) const { std::free(memory); }
};

// Three arrays of one thread, which go on where the window before left off: what a window reads is not what
// the last one has just had.
class Arrays {
  public:
    explicit Arrays(std::size_t count) : count_(count) {
        memory_.reset(static_cast<float*>(std::aligned_alloc(64, arrays * count * sizeof(float))));
        if (!memory_) throw std::bad_alloc();
    }

    // By the thread itself, so that its pages lie near it.
    void touch() {
        if (!is_touched_) std::fill_n(memory_.get(), arrays * count_, 1.0f);
        is_touched_ = true;
    }

    // Bytes per second of this thread over one window.
    double run(Triad triad, std::uint64_t window_ns) {
        std::uint64_t moved = 0, passed_ns = 0;
        const std::uint64_t start_ns = now_ns();
        do {
            float* a = memory_.get() + place_;
            const std::size_t count = std::min(piece, count_ - place_);
            triad(a, a + count_, a + 2 * count_, count);
            moved += arrays * count * sizeof(float);
            place_ = (place_ + count) % count_;
            passed_ns = now_ns() - start_ns;
        } while (passed_ns < window_ns);
        return static_cast<double>(moved) * 1e9 / static_cast<double>(passed_ns);
    }

  private:
    std::size_t count_;  // of one array
    std::size_t place_ = 0;
    bool is_touched_ = false;
    std::unique_ptr<float[], Free> memory_;
};

}  // namespace

Bandwidth measure_bandwidth(int threads, double seconds, std::uint64_t bytes) {
    const auto team = static_cast<std::uint64_t>(std::max(threads, 1));
    if (bytes / team < least_bytes) {
        throw std::invalid_argument("bytes = " + std::to_string(bytes) + "; expected " +
                                    std::to_string(least_bytes) + " for each thread");
    }
    const std::size_t count = bytes / team / (arrays * sizeof(float)) / line * line;
    std::vector<Arrays> all;
    for (int thread = 0; thread < threads; ++thread) all.emplace_back(count);
    const Best best = best_of_windows(threads, seconds, std::size(triads),
                                      [&](std::size_t kernel, std::size_t thread, std::uint64_t window_ns) {
                                          all[thread].touch();
                                          return all[thread].run(triads[kernel], window_ns);
                                      });
    return {threads, team * arrays * count * sizeof(float), best.rate, triads[best.kernel] == triad_streams};
}

}  // namespace timetrial
