#include "loop/loop.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>

namespace timetrial {
namespace {

// What a step's loss is until a part writes it: a NaN of our own, so that "gave no loss" is not "gave NaN".
constexpr std::uint64_t kNoLossBits = 0x7ff8'0000'0000'6e6f;

bool is_bad_loss(double loss) noexcept {
    return !std::isfinite(loss) && std::bit_cast<std::uint64_t>(loss) != kNoLossBits;
}

// TT_STEP ends a step and nothing else: exactly one, the last.
bool parts_make_a_step(const tt_loop_part* parts, std::uint32_t n_parts) noexcept {
    if (n_parts == 0 || parts[n_parts - 1].boundary != TT_STEP) return false;
    return std::all_of(parts, parts + n_parts - 1, [](const tt_loop_part& part) {
        return part.boundary != TT_STEP && part.boundary <= 0xff;
    });
}

// Back to the initial state; TT_RESET ends it. Returns whether the segment may go on.
bool begin_pass(Recorder& recorder, tt_segment& segment) {
    const std::uint64_t cpu_before_ns = process_cpu_ns();
    double unused = 0;
    segment.call_status = segment.reset->call(segment.reset->user, &unused);
    if (segment.call_status != 0 || !recorder.has_room()) return false;
    segment.reset_cpu_ns += process_cpu_ns() - cpu_before_ns;
    recorder.stamp_unchecked(TT_RESET);
    segment.pass_done = 0;
    return true;
}

std::uint32_t passed(const tt_segment& segment) noexcept {
    return std::min(segment.pass_done, segment.pass_steps);
}

// At most so many resets lie among the next steps.
std::uint32_t resets_among(std::uint32_t steps, const tt_segment& segment) noexcept {
    return segment.pass_steps == 0 ? 0 : (passed(segment) + steps) / segment.pass_steps;
}

// Steps for which a window has room, with the stamps of the resets among them.
std::uint32_t steps_with_room(std::uint32_t capacity, std::uint32_t stamps_per_step,
                              const tt_segment& segment) noexcept {
    if (segment.pass_steps == 0)
        return std::min(segment.max_steps, steps_that_fit(capacity, stamps_per_step));
    const std::uint64_t length = segment.pass_steps;
    const std::uint64_t room = (capacity - 1) * length;  // in stamps, times the length of a pass
    const std::uint64_t steps =
        room < passed(segment) ? 0 : (room - passed(segment)) / (stamps_per_step * length + 1);
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(segment.max_steps, steps));
}

}  // namespace

int run_segment(Recorder& recorder, const tt_loop_part* parts, std::uint32_t n_parts, tt_segment& segment) {
    segment.steps = segment.stamps = 0;
    segment.window_bytes = 0;
    segment.call_status = 0;
    segment.reset_cpu_ns = 0;
    if (segment.pass_steps != 0 && segment.reset == nullptr) return EINVAL;
    if (!parts_make_a_step(parts, n_parts) || segment.max_steps == 0) return EINVAL;
    const auto stamps_per_step = static_cast<std::uint32_t>(std::count_if(
        parts, parts + n_parts, [](const tt_loop_part& part) { return part.boundary != TT_SEGMENT; }));
    const std::uint32_t max_steps = steps_with_room(recorder.capacity(), stamps_per_step, segment);
    if (max_steps == 0) return EINVAL;
    const std::uint32_t room = 1 + max_steps * stamps_per_step + resets_among(max_steps, segment);
    if (const int error = recorder.begin(segment.window, room)) return error;

    const tt_loop_part* const end = parts + n_parts;
    double* const losses = recorder.losses();
    const std::uint64_t start_ns = recorder.stamp_unchecked(TT_SEGMENT);
    const bool has_limit = segment.max_ns != 0 && segment.max_ns <= UINT64_MAX - start_ns;
    const std::uint64_t stop_ns = has_limit ? start_ns + segment.max_ns : UINT64_MAX;
    bool full = false;
    std::uint32_t step = 0;
    while (step < max_steps) {
        if (segment.pass_steps != 0 && segment.pass_done >= segment.pass_steps) [[unlikely]] {
            if (!begin_pass(recorder, segment)) break;
        }
        double loss = std::bit_cast<double>(kNoLossBits);
        std::uint64_t time_ns = 0;
        for (const tt_loop_part* part = parts; part != end; ++part) {
            segment.call_status = part->call(part->user, &loss);
            if (segment.call_status != 0) [[unlikely]]
                break;
            if (part->boundary == TT_SEGMENT) continue;
            // A step that stamps boundaries of its own may have used the room up.
            full = !recorder.has_room();
            if (full) [[unlikely]]
                break;
            time_ns = recorder.stamp_unchecked(part->boundary);
        }
        if (segment.call_status != 0 || full) [[unlikely]]
            break;
        losses[step++] = loss;
        ++segment.pass_done;
        if (time_ns >= stop_ns) break;
        if (segment.stop_at_nan != 0 && is_bad_loss(loss)) [[unlikely]]
            break;
    }
    segment.steps = step;
    return recorder.end(&segment.stamps, &segment.window_bytes);
}

}  // namespace timetrial
