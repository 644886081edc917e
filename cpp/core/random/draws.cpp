#include "random/draws.h"

#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "random/philox.h"

namespace timetrial {

void uniform(std::uint64_t seed, std::string_view stream, float low, float high, std::span<float> values) {
    if (!std::isfinite(low) || !std::isfinite(high) || !(low < high))
        throw std::invalid_argument("uniform needs finite limits with low < high; got low " +
                                    std::to_string(low) + ", high " + std::to_string(high));
    PhiloxStream numbers(seed, stream);
    const double width = static_cast<double>(high) - low;
    const float last = std::nextafter(high, low);
    for (float& value : values) {
        const auto drawn = static_cast<float>(low + width * numbers.next_unit());
        value = drawn < high ? drawn : last;  // rounding to f32 may reach the open end
    }
}

std::vector<std::int64_t> permutation(std::uint64_t seed, std::string_view stream, std::int64_t n) {
    if (n < 0) throw std::invalid_argument("permutation needs n >= 0; got " + std::to_string(n));
    std::vector<std::int64_t> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    PhiloxStream numbers(seed, stream);
    for (std::size_t last = order.size(); last > 1; --last) {
        const std::size_t partner = numbers.next_below(last);
        std::swap(order[last - 1], order[partner]);
    }
    return order;
}

}  // namespace timetrial
