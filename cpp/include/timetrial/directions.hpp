// The directions in which a recurrent layer goes through the steps of a sequence. In reverse the first step
// is a sample's last one that counts. A layer of two directions has the parameters of both, one behind the
// other, and each row of its output has the units of both.
#ifndef TIMETRIAL_DIRECTIONS_HPP
#define TIMETRIAL_DIRECTIONS_HPP

#include <cstdint>
#include <vector>

#include "timetrial/backend.hpp"

namespace timetrial {

enum class TimeDirection { kForward, kReverse };

// By the attribute `direction`, in the order of the parameters.
inline std::vector<TimeDirection> time_directions(const Attributes& attributes) {
    const std::string& word = attributes.word("direction");
    if (word == "forward") return {TimeDirection::kForward};
    if (word == "reverse") return {TimeDirection::kReverse};
    return {TimeDirection::kForward, TimeDirection::kReverse};
}

// Where a direction's step t, of so many that count, is in the sequence. What is behind the end stays there.
inline std::int64_t place_of_step(TimeDirection direction, std::int64_t t, std::int64_t count) {
    return direction == TimeDirection::kReverse && t < count ? count - 1 - t : t;
}

}  // namespace timetrial

#endif  // TIMETRIAL_DIRECTIONS_HPP
