/* The recorder: stamps and losses in a mapped file, and the timed loop that writes them.
 *
 * A stamp is one 64-bit word: CLOCK_MONOTONIC in nanoseconds in the upper 56 bits, the number of the
 * boundary in the lower 8. One stamp per boundary; a duration is the difference of two stamps, so
 * durations add up to the whole exactly and nothing can hide between a stop and a start.
 *
 * The file: one header page, then windows of the same size, each with `capacity` stamps and, behind
 * them, `capacity` losses (f64). A segment of steps writes one window from its start. begin() maps that
 * window and touches it with zeros; end() unmaps it: nothing stays charged to the process, and a zero
 * word marks the end of what a killed writer left. Anyone who has the file can read along.
 *
 * The functions are exported by libtimetrial-c.so; C++ inside timetrial uses the classes behind them.
 */
#ifndef TIMETRIAL_RECORDER_H
#define TIMETRIAL_RECORDER_H

#include <stdint.h>

#include "timetrial/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    TT_RECORDER_VERSION = 1,
    TT_RECORDER_PAGE = 4096,    /* window w starts at TT_RECORDER_PAGE + w * 16 * capacity */
    TT_WINDOW_CAPACITY = 65536, /* the most stamps a window can hold */
};
#define TT_RECORDER_MAGIC "TTSTAMPS"

/* Boundaries. What lies before a boundary belongs to it: the stamp TT_STEP ends a step. */
enum {
    TT_SEGMENT = 0, /* start of a segment: with TT_RESET the only stamp that ends no step or part */
    TT_STEP = 1,    /* end of a step (also the end of its last part) */
    TT_DATA = 2,    /* end of the part: batch gathered */
    TT_FORWARD_END = 3,
    TT_LOSS_END = 4,
    TT_BACKWARD_END = 5,
    TT_RESET = 6, /* end of a reset to the initial state: what lies before it belongs to no step */
    TT_FIRST_USER_BOUNDARY = 64, /* 64 to 255 are free for users of Recorder */
};

/* The first bytes of the file. Little-endian. */
typedef struct tt_recorder_header {
    char magic[8];
    uint32_t version;
    uint32_t capacity; /* stamps per window */
} tt_recorder_header;

static inline uint64_t tt_stamp_time_ns(uint64_t stamp) { return stamp >> 8; }
static inline uint32_t tt_stamp_boundary(uint64_t stamp) { return (uint32_t)(stamp & 0xff); }

typedef struct tt_recorder tt_recorder;

/* All functions: 0 or an errno value. EBADF: no window is open (for open(): no file). EBUSY: one is already.
 * EINVAL: an argument is out of range. ENOSPC: the window is full, or no room for the file. */
/* Opens the recorder on an open file (a header is written where there is none); takes no ownership of fd.
 * capacity 0 takes what the file's header says. EBADMSG: the file is something else; EPROTO: another version.
 */
TT_EXPORT int tt_recorder_open(tt_recorder** recorder, int fd, uint32_t capacity);
/* Reserves, maps and touches room for `entries` stamps (and as many losses) in window `window`. */
TT_EXPORT int tt_recorder_begin(tt_recorder* recorder, uint32_t window, uint32_t entries);
/* Unmaps the window. *written gets the number of stamps, *bytes the memory that was mapped (either may be
 * NULL). */
TT_EXPORT int tt_recorder_end(tt_recorder* recorder, uint32_t* written, uint64_t* bytes);
/* Writes a stamp with the time now / with a given time (device events resolved later). ENOSPC when full. */
TT_EXPORT int tt_recorder_stamp(tt_recorder* recorder, uint32_t boundary);
TT_EXPORT int tt_recorder_stamp_at(tt_recorder* recorder, uint32_t boundary, uint64_t time_ns);
TT_EXPORT void tt_recorder_close(tt_recorder* recorder);

/* One piece of a step. call() returns 0, or anything else to end the segment at once. boundary TT_SEGMENT
 * means "no stamp after me": the gathering of the batch in fused steps. */
typedef struct tt_loop_part {
    uint32_t boundary;
    int (*call)(void* user, double* loss);
    void* user;
} tt_loop_part;

/* A segment may be made of passes: before a step that would be number pass_steps + 1 of its pass, `reset` is
 * called and TT_RESET stamped, so that every pass is the same steps again. A pass may span segments. */
typedef struct tt_segment {
    uint32_t size;
    uint32_t window;
    uint32_t max_steps;   /* at least 1; the segment ends earlier when the window is full */
    uint64_t max_ns;      /* 0: no limit. Checked on the stamp just taken: no second clock read */
    uint32_t stop_at_nan; /* a loss that a call wrote and that is not finite ends the segment */
    /* out */
    uint32_t steps;        /* completed */
    uint32_t stamps;       /* written, the segment's own first stamp included */
    uint64_t window_bytes; /* of memory mapped while it ran */
    int call_status;       /* what the call() that ended the segment returned, else 0 */
    /* passes */
    uint32_t pass_steps;       /* of a pass; 0: no pass ends */
    uint32_t pass_done;        /* in and out: steps since the last reset */
    const tt_loop_part* reset; /* its boundary is not looked at; needed where pass_steps is not 0 */
    uint64_t reset_cpu_ns;     /* out: the CPU time of this process in all resets together */
} tt_segment;

/* Runs a segment: stamp TT_SEGMENT, then the parts in order, step by step. Every step's loss goes to the
 * window's losses, one per step (NaN where no call wrote one). The last part's boundary is TT_STEP, no
 * other's is. Calls may stamp boundaries of their own. No allocation, lock, system call or I/O of its own in
 * between. */
TT_EXPORT int tt_loop_run(tt_recorder* recorder, const tt_loop_part* parts, uint32_t n_parts,
                          tt_segment* segment);

/* Gathers a batch: row i of dst becomes row indices[i] of src, for i < n. Nothing is checked. */
TT_EXPORT void tt_gather(void* dst, const void* src, uint64_t row_bytes, const int64_t* indices, uint64_t n);

#ifdef __cplusplus
}
#endif

#endif /* TIMETRIAL_RECORDER_H */
