#include "clock/clock.h"

#include <algorithm>

namespace timetrial {

double clock_cost_ns() noexcept {
    constexpr int bursts = 64;
    constexpr int reads = 512;
    double best_ns = 1e9;
    for (int burst = 0; burst < bursts; ++burst) {
        const std::uint64_t start_ns = now_ns();
        std::uint64_t end_ns = start_ns;
        for (int read = 0; read < reads; ++read) end_ns = now_ns();
        best_ns = std::min(best_ns, static_cast<double>(end_ns - start_ns) / reads);
    }
    return best_ns;
}

}  // namespace timetrial
