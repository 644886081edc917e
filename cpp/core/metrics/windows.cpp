#include "metrics/windows.h"

#include <barrier>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace timetrial {
namespace {

constexpr std::size_t windows = 24;  // of all kernels together: eight or more of each
constexpr int most_threads = 4096;

}  // namespace

Best best_of_windows(int threads, double seconds, std::size_t kernels, const Window& run) {
    if (threads < 1 || threads > most_threads) {
        throw std::invalid_argument("threads = " + std::to_string(threads) + "; expected 1 to " +
                                    std::to_string(most_threads));
    }
    if (!(seconds > 0 && seconds <= 60)) {
        throw std::invalid_argument("seconds = " + std::to_string(seconds) +
                                    "; expected more than 0, at most 60");
    }
    std::size_t turn = 0;  // of the kernels; changes while all threads wait
    Best best;
    const auto window_ns = static_cast<std::uint64_t>(seconds * 1e9 / static_cast<double>(windows));
    std::vector<double> rates(static_cast<std::size_t>(threads));
    // Runs while all threads wait at the barrier: the window's sum over threads.
    const auto finish_window = [&]() noexcept {
        double sum = 0;
        for (const double rate : rates) sum += rate;
        if (sum > best.rate) best = {turn % kernels, sum};
        ++turn;
    };
    std::barrier together(threads, finish_window);
    const auto work = [&](std::size_t thread) {
        for (std::size_t window = 0; window <= windows; ++window) {
            together.arrive_and_wait();
            rates[thread] = run(turn % kernels, thread, window_ns);
        }
        together.arrive_and_wait();
    };
    {
        std::vector<std::jthread> team;
        std::size_t started = 0;
        try {
            for (; started < rates.size(); ++started) team.emplace_back(work, started);
        } catch (...) {  // no more threads to be had: those that wait must not wait for the missing
            for (; started < rates.size(); ++started) together.arrive_and_drop();
            throw;
        }
    }
    return best;
}

}  // namespace timetrial
