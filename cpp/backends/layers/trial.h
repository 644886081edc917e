// A timed trial among several ways to compute the same.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

namespace timetrial::layers {

// One thread is timed by its own CPU time, which a busy neighbor does not lengthen; several wait for each
// other, so only the wall tells.
class TrialClock {
  public:
    explicit TrialClock(bool is_one_thread)
        : id_(is_one_thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC), start_(now()) {}
    double elapsed_ns() const { return now() - start_; }

  private:
    double now() const {
        timespec time{};
        clock_gettime(id_, &time);
        return 1e9 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec);
    }
    clockid_t id_;
    double start_;
};

inline std::string milliseconds(double ns) {
    char words[32];
    std::snprintf(words, sizeof words, "%.3g ms", ns / 1e6);
    return words;
}

struct TrialResult {
    std::size_t chosen = 0;
    std::string report;  // the ways with their times; empty if there was nothing to choose
};

namespace trial {

// Within the noise the order stands, so that equal ways do not change places from launch to launch.
inline constexpr double least_gain = 0.05;
inline constexpr double too_short_ns = 2e4;
inline constexpr double hopeless = 1.3;
inline constexpr int runs = 2;  // of one thread
// Several threads wait for each other: one that lost its processor makes a run look ten times as long. So
// they run until the two shortest agree; for no longer than a second, of which a lost slice is a small part.
inline constexpr int fewest_runs = 4, most_runs = 16;
inline constexpr double agreement = 0.02;
inline constexpr double patience_ns = 1e9;

// The shortest of some runs, in nanoseconds; of fewer where that is hopeless against `rival_ns`.
template <typename Run>
double time(const Run& run, bool is_one_thread, double rival_ns) {
    constexpr double never = std::numeric_limits<double>::infinity();
    const int fewest = is_one_thread ? 1 : fewest_runs;
    double best = never, second = never, spent = 0;
    run();  // touches the memory; some kernels are compiled only now
    for (int done = 1; done <= (is_one_thread ? runs : most_runs); ++done) {
        const TrialClock clock(is_one_thread);
        run();
        const double taken = clock.elapsed_ns();
        second = std::min(second, std::max(best, taken));
        best = std::min(best, taken);
        spent += taken;
        if (done < fewest && spent < patience_ns) continue;
        if (rival_ns > 0 && best > hopeless * rival_ns) break;
        if (!is_one_thread && (second < (1 + agreement) * best || spent > patience_ns)) break;
    }
    return best;
}

}  // namespace trial

// The expected order is that of `names`; rehearse(i) makes way i ready and returns what to call.
template <typename Rehearse>
TrialResult fastest_of(const std::vector<std::string>& names, bool is_one_thread, const Rehearse& rehearse) {
    if (names.size() < 2) return {};
    TrialResult result;
    std::vector<double> times;
    for (std::size_t i = 0; i < names.size(); ++i) {
        times.push_back(trial::time(rehearse(i), is_one_thread, i == 0 ? 0 : times[result.chosen]));
        if (i == 0 && times[0] < trial::too_short_ns) return {};
        if (times[i] < times[result.chosen] * (1 - trial::least_gain)) result.chosen = i;
    }
    for (std::size_t i = 0; i < names.size(); ++i)
        result.report += (i == 0 ? "" : "; ") + names[i] + " " + milliseconds(times[i]) +
                         (i == result.chosen ? " (chosen)" : "");
    return result;
}

}  // namespace timetrial::layers
