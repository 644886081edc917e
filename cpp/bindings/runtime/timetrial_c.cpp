// The functions of timetrial/recorder.h with C linkage, for any language.
#include <cerrno>
#include <new>

#include "loop/gather.h"
#include "loop/loop.h"
#include "process/float_mode.h"
#include "recorder/recorder.h"
#include "timetrial/float_mode.h"
#include "timetrial/recorder.h"

struct tt_recorder {
    timetrial::Recorder recorder;
};

extern "C" {

int tt_recorder_open(tt_recorder** recorder, int fd, uint32_t capacity) {
    auto* opened = new (std::nothrow) tt_recorder;
    if (opened == nullptr) return ENOMEM;
    if (const int error = opened->recorder.open(fd, capacity)) {
        delete opened;
        return error;
    }
    *recorder = opened;
    return 0;
}

int tt_recorder_begin(tt_recorder* recorder, uint32_t window, uint32_t entries) {
    return recorder->recorder.begin(window, entries);
}

int tt_recorder_end(tt_recorder* recorder, uint32_t* written, uint64_t* bytes) {
    return recorder->recorder.end(written, bytes);
}

int tt_recorder_stamp(tt_recorder* recorder, uint32_t boundary) { return recorder->recorder.stamp(boundary); }

int tt_recorder_stamp_at(tt_recorder* recorder, uint32_t boundary, uint64_t time_ns) {
    return recorder->recorder.stamp_at(boundary, time_ns);
}

void tt_recorder_close(tt_recorder* recorder) { delete recorder; }

int tt_loop_run(tt_recorder* recorder, const tt_loop_part* parts, uint32_t n_parts, tt_segment* segment) {
    return timetrial::run_segment(recorder->recorder, parts, n_parts, *segment);
}

void tt_gather(void* dst, const void* src, uint64_t row_bytes, const int64_t* indices, uint64_t n) {
    timetrial::gather_rows(dst, src, row_bytes, indices, n);
}

uint32_t tt_float_mode(void) { return timetrial::float_mode(); }

void tt_set_float_mode(uint32_t mode) { timetrial::set_float_mode(mode); }

}  // extern "C"
