// A timed trial among the forms of one operation, each with the reorders that it would need here.
//
// oneDNN lists its implementations by expected speed. The expectation is wrong where a shape is unusual: the
// weight gradient of a first layer with one channel, or channels that fill no vector.
#pragma once

#include <omp.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "onednn/forms.h"

namespace timetrial::onednn {

// In which formats a value is at hand (reads), or the one in which it is wanted (writes). What is not listed
// takes the format that the primitive likes.
using Homes = std::map<int, std::vector<Desc>>;

// A clock for trials. One thread is timed by its own CPU time, which a busy neighbor does not lengthen;
// several wait for each other, so only the wall tells.
class TrialClock {
  public:
    TrialClock()
        : id_(omp_get_max_threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC), start_(now()) {}
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

class Trial {
  public:
    struct Result {
        std::size_t chosen = 0;
        std::string report;  // the forms with their times; empty if there was nothing to choose
    };

    Trial(dnnl::engine engine, dnnl::stream stream)
        : engine_(std::move(engine)), stream_(std::move(stream)) {}

    Result fastest(const std::vector<Form>& forms, const Homes& homes) const {
        if (forms.size() < 2) return {};
        std::size_t chosen = 0;
        std::vector<double> times;
        for (std::size_t i = 0; i < forms.size(); ++i) {
            times.push_back(time(forms[i], homes, i == 0 ? 0 : times[chosen]));
            if (i == 0 && times[0] < too_short_ns) return {};
            // Within the noise the library's order stands, so that equal forms do not change places from
            // launch to launch.
            if (times[i] < times[chosen] * (1 - least_gain)) chosen = i;
        }
        std::string report;
        for (std::size_t i = 0; i < forms.size(); ++i)
            report += (i == 0 ? "" : "; ") + forms[i].text() + " " + milliseconds(times[i]) +
                      (i == chosen ? " (chosen)" : "");
        return {chosen, report};
    }

  private:
    static constexpr double least_gain = 0.05;
    static constexpr double too_short_ns = 2e4;
    static constexpr double hopeless = 1.3;
    static constexpr int runs = 2;

    // Best of some runs, in nanoseconds, or of one where that is hopeless against `rival_ns`.
    double time(const Form& form, const Homes& homes, double rival_ns) const {
        const std::vector<Call> calls = rehearsal(form, homes);
        double best = std::numeric_limits<double>::infinity();
        for (int run = 0; run <= runs; ++run) {
            const TrialClock clock;
            for (const Call& call : calls) call();
            if (run == 0) continue;  // touches the memory; some kernels are compiled only now
            best = std::min(best, clock.elapsed_ns());
            if (rival_ns > 0 && best > hopeless * rival_ns) break;
        }
        return best;
    }

    std::vector<Call> rehearsal(const Form& form, const Homes& homes) const {
        std::vector<Call> before, after;
        Call::Arguments arguments;
        for (const Port& port : form.reads) {
            const Tensor& tensor = stage(arguments, port);
            const auto home = homes.find(port.argument);
            if (home == homes.end()) continue;
            const auto& [argument, at_hand] = *home;
            if (std::find(at_hand.begin(), at_hand.end(), port.desc) == at_hand.end())
                before.push_back(reorder_call(engine_, stream_, allocate(engine_, at_hand.front()), tensor));
        }
        for (const Port& port : form.writes) {
            const Tensor& tensor = stage(arguments, port);
            const auto home = homes.find(port.argument);
            if (home != homes.end() && home->second.front() != port.desc)
                after.push_back(
                    reorder_call(engine_, stream_, tensor, allocate(engine_, home->second.front())));
        }
        arguments.push_back({DNNL_ARG_SCRATCHPAD, dnnl::memory(form.scratchpad, engine_)});
        before.emplace_back(stream_, form.make(), std::move(arguments));
        before.insert(before.end(), after.begin(), after.end());
        return before;
    }

    Tensor stage(Call::Arguments& arguments, const Port& port) const {
        Tensor tensor = allocate(engine_, port.desc);
        arguments.push_back({port.argument, tensor.memory});
        return tensor;
    }

    dnnl::engine engine_;
    dnnl::stream stream_;
};

}  // namespace timetrial::onednn
