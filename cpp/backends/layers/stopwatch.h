// Where the time of a profiled step goes: for each thread, node and direction. In an ordinary step it is off,
// and costs one predictable branch per layer.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "timetrial/backend.hpp"

namespace timetrial::layers {

class Stopwatch {
  public:
    void resize(std::size_t threads, std::size_t nodes) {
        per_thread_.assign(threads, std::vector<uint64_t>(nodes * directions));
    }

    void start() {
        for (auto& times : per_thread_) std::fill(times.begin(), times.end(), 0);
        on_ = true;
    }
    void stop() { on_ = false; }

    // Calls `work`, and counts its time less what was counted meanwhile for the same node as `within`.
    template <typename Work>
    void time(int thread, std::size_t node, tt_direction direction, Work&& work, tt_direction within = {}) {
        if (!on_) return work();
        uint64_t& inner = at(thread, node, within);
        const uint64_t inner_before = inner, before = now();
        work();
        const uint64_t total = now() - before;
        // At least one: what was done counts as done, however coarse the clock.
        at(thread, node, direction) += std::max<uint64_t>(total - (inner - inner_before), 1);
    }

    // Of the slowest thread: that is what the step waits for.
    uint64_t slowest(std::size_t node, tt_direction direction) const {
        uint64_t slowest = 0;
        for (const auto& times : per_thread_)
            slowest = std::max(slowest, times[node * directions + direction]);
        return slowest;
    }

  private:
    static constexpr std::size_t directions = TT_DIRECTION_REORDER + 1;  // 0: none

    static uint64_t now() {
        timespec time{};
        clock_gettime(CLOCK_MONOTONIC, &time);
        return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
    }

    uint64_t& at(int thread, std::size_t node, tt_direction direction) {
        return per_thread_[static_cast<std::size_t>(thread)][node * directions + direction];
    }

    bool on_ = false;
    std::vector<std::vector<uint64_t>> per_thread_;
};

}  // namespace timetrial::layers
