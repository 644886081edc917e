#include "metrics/peak.h"

#include <cstddef>
#include <vector>

#include "clock/clock.h"
#include "metrics/windows.h"

namespace timetrial {
namespace {

using Loop = std::uint64_t (*)(std::uint64_t rounds);

constexpr std::uint64_t rounds_between_looks = 4096;  // 10 to 30 us: the look at the clock is lost in it

struct Kernel {
    const char* isa;
    Loop loop;
};

// Of every ISA that this CPU has.
std::vector<Kernel> kernels_here() {
    std::vector<Kernel> kernels = {{"sse2", multiply_add_sse2}};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        kernels.push_back({"avx2", multiply_add_avx2});
    }
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
        kernels.push_back({"avx512", multiply_add_avx512});
    }
    return kernels;
}

// Operations per second of this thread over one window.
double run_window(Loop loop, std::uint64_t window_ns) {
    std::uint64_t operations = 0;
    const std::uint64_t start_ns = now_ns();
    std::uint64_t passed_ns = 0;
    do {
        operations += loop(rounds_between_looks);
        passed_ns = now_ns() - start_ns;
    } while (passed_ns < window_ns);
    return static_cast<double>(operations) * 1e9 / static_cast<double>(passed_ns);
}

}  // namespace

Peak measure_peak_flops(int threads, double seconds) {
    const std::vector<Kernel> kernels = kernels_here();
    const Best best = best_of_windows(threads, seconds, kernels.size(),
                                      [&](std::size_t kernel, std::size_t, std::uint64_t window_ns) {
                                          return run_window(kernels[kernel].loop, window_ns);
                                      });
    return {kernels[best.kernel].isa, threads, best.rate};
}

}  // namespace timetrial
