// Costs of the instrument in C++, in nanoseconds, as one JSON object: the bare clock, a stamp, a step that
// does nothing through the timed loop. Bursts alternate, so that a slow moment of the machine hits all three;
// the smallest mean counts, because everything that disturbs only adds.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>

#include "clock/clock.h"
#include "loop/loop.h"
#include "recorder/recorder.h"

namespace {

constexpr std::uint32_t steps = 20'000, rounds = 200;

int nothing(void*, double* loss) {
    *loss = 0;
    return 0;
}

}  // namespace

int main() {
    const int fd = timetrial::create_recorder_file(1, TT_WINDOW_CAPACITY);
    timetrial::Recorder recorder;
    if (fd < 0 || recorder.open(fd, TT_WINDOW_CAPACITY) != 0) return 1;
    double clock = std::numeric_limits<double>::infinity(), stamp = clock, step = clock;
    std::uint64_t sink = 0;
    for (std::uint32_t round = 0; round < rounds; ++round) {
        std::uint64_t start = timetrial::now_ns();
        for (std::uint32_t i = 0; i < steps; ++i) sink += timetrial::now_ns();
        clock = std::min(clock, static_cast<double>(timetrial::now_ns() - start) / steps);

        if (recorder.begin(0, steps) != 0) return 1;
        start = timetrial::now_ns();
        for (std::uint32_t i = 0; i < steps; ++i) {
            if (recorder.stamp(TT_STEP) != 0) return 1;
        }
        stamp = std::min(stamp, static_cast<double>(timetrial::now_ns() - start) / steps);
        recorder.end(nullptr, nullptr);

        const tt_loop_part part{TT_STEP, nothing, nullptr};
        tt_segment segment{};
        segment.size = sizeof segment;
        segment.max_steps = steps;
        segment.stop_at_nan = 1;
        if (timetrial::run_segment(recorder, &part, 1, segment) != 0) return 1;
        timetrial::WindowContent content;
        if (timetrial::read_window(fd, 0, content) != 0 || content.stamps.size() != steps + 1) return 1;
        const std::uint64_t whole =
            tt_stamp_time_ns(content.stamps.back()) - tt_stamp_time_ns(content.stamps[0]);
        step = std::min(step, static_cast<double>(whole) / steps);
    }
    std::printf("{\"clock_ns\": %.2f, \"stamp_ns\": %.2f, \"null_step_ns\": %.2f, \"sink\": %d}\n", clock,
                stamp, step, static_cast<int>(sink & 1));
}
