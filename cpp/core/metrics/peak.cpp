#include "metrics/peak.h"

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "clock/clock.h"

namespace timetrial {
namespace {

using Loop = std::uint64_t (*)(std::uint64_t rounds);

constexpr std::uint64_t rounds_between_looks = 4096;  // 10 to 30 us: the look at the clock is lost in it
constexpr int windows = 24;                           // of all ISAs together: eight or more of each
constexpr int most_threads = 4096;

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
    if (threads < 1 || threads > most_threads) {
        throw std::invalid_argument("threads = " + std::to_string(threads) + "; expected 1 to " +
                                    std::to_string(most_threads));
    }
    if (!(seconds > 0 && seconds <= 60)) {
        throw std::invalid_argument("seconds = " + std::to_string(seconds) +
                                    "; expected more than 0, at most 60");
    }
    const std::vector<Kernel> kernels = kernels_here();
    std::size_t turn = 0;  // of the kernels; changes while all threads wait
    Kernel fastest = kernels.front();
    const auto window_ns = static_cast<std::uint64_t>(seconds * 1e9 / windows);
    std::vector<double> rates(static_cast<std::size_t>(threads));
    double best = 0;
    // Runs while all threads wait at the barrier: the window's sum over threads.
    const auto finish_window = [&]() noexcept {
        double sum = 0;
        for (const double rate : rates) sum += rate;
        if (sum > best) {
            best = sum;
            fastest = kernels[turn % kernels.size()];
        }
        ++turn;
    };
    std::barrier together(threads, finish_window);
    const auto run = [&](double& rate) {
        for (int window = 0; window <= windows; ++window) {
            together.arrive_and_wait();
            rate = run_window(kernels[turn % kernels.size()].loop, window_ns);
        }
        together.arrive_and_wait();
    };
    {
        std::vector<std::jthread> team;
        std::size_t started = 0;
        try {
            for (double& rate : rates) {
                team.emplace_back(run, std::ref(rate));
                ++started;
            }
        } catch (...) {  // no more threads to be had: those that wait must not wait for the missing
            for (; started < rates.size(); ++started) together.arrive_and_drop();
            throw;
        }
    }
    return {fastest.isa, threads, best};
}

}  // namespace timetrial
