/* The BLAS and OpenMP libraries that this process has loaded, each asked for what it is and does.
 *
 * Whatever a library is called and whoever loaded it, it is known by the functions that its file itself
 * defines: wheels rename their copies, and a framework may have one inside. A copy whose functions are hidden
 * cannot be found.
 *
 * The function is exported by libtimetrial-c.so.
 */
#ifndef TIMETRIAL_LIBRARIES_H
#define TIMETRIAL_LIBRARIES_H

#include <stdint.h>

#include "timetrial/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TT_LIBRARY_PATH = 1024, TT_LIBRARY_TEXT = 256, TT_LIBRARY_WORD = 64 };

/* All texts are NUL-terminated, cut where they are too long, and empty where nobody knows. */
typedef struct tt_library {
    uint32_t size;                       /* sizeof(tt_library) of the caller */
    int32_t threads;                     /* by its own getter; -1: it does not tell, or was not asked */
    char path[TT_LIBRARY_PATH];          /* of the file, as the kernel has it mapped */
    char kind[TT_LIBRARY_WORD];          /* "blas", "openmp" */
    char vendor[TT_LIBRARY_WORD];        /* "OpenBLAS", "BLIS", "MKL", "ATLAS", "GNU", "LLVM" */
    char version[TT_LIBRARY_TEXT];       /* in the library's own words */
    char kernel[TT_LIBRARY_WORD];        /* the kernels that a BLAS chose for this CPU: "Haswell" */
    char kernel_getter[TT_LIBRARY_WORD]; /* the function that told */
    char threads_getter[TT_LIBRARY_WORD];
} tt_library;

/* How many there are; writes the first `capacity` of them. libraries[0].size is set by the caller, and is the
 * distance from one to the next. Without memory: 0. Call it outside of anything that is timed. */
TT_EXPORT uint32_t tt_libraries(tt_library* libraries, uint32_t capacity);

#ifdef __cplusplus
}
#endif

#endif /* TIMETRIAL_LIBRARIES_H */
