// The timed loop: the only code that runs between two stamps besides the step itself.
#pragma once

#include <cstdint>

#include "recorder/recorder.h"
#include "timetrial/recorder.h"

namespace timetrial {

// tt_loop_run of timetrial/recorder.h. Returns 0 or an errno value: EINVAL for parts that do not make a step,
// otherwise what Recorder::begin said. segment.max_steps may be more than the window holds; the segment then
// ends when the window is full.
int run_segment(Recorder& recorder, const tt_loop_part* parts, std::uint32_t n_parts, tt_segment& segment);

// Where a segment of `stamps_per_step` ends for want of room, whatever was asked.
inline std::uint32_t steps_that_fit(std::uint32_t capacity, std::uint32_t stamps_per_step) noexcept {
    return (capacity - 1) / stamps_per_step;
}

}  // namespace timetrial
