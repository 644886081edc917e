/* How a thread treats subnormal numbers: two bits of its MXCSR register. A thread inherits them from the one
 * that starts it, so what is set before a library makes its threads reaches these too, unless they set their
 * own.
 *
 * The functions are exported by libtimetrial-c.so.
 */
#ifndef TIMETRIAL_FLOAT_MODE_H
#define TIMETRIAL_FLOAT_MODE_H

#include <stdint.h>

#include "timetrial/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    TT_FLUSH_TO_ZERO = 1,      /* a subnormal result is 0 */
    TT_DENORMALS_ARE_ZERO = 2, /* a subnormal operand is 0 */
};

/* The bits in force in the calling thread. */
TT_EXPORT uint32_t tt_float_mode(void);
/* Sets them in the calling thread. */
TT_EXPORT void tt_set_float_mode(uint32_t mode);

#ifdef __cplusplus
}
#endif

#endif /* TIMETRIAL_FLOAT_MODE_H */
