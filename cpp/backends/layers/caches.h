// How large the processor's caches are: what is written and read again at once should fit.
#pragma once

#include <unistd.h>

#include <cstdint>

namespace timetrial::layers {

// Bytes of a core's L2; a usual size where the system does not say. It may ask the processor, which costs a
// virtual machine microseconds: no call for a step.
inline int64_t l2_bytes() {
    const int64_t found = sysconf(_SC_LEVEL2_CACHE_SIZE);  // 0 or -1: it does not say
    return found > 0 ? found : 512 * 1024;
}

}  // namespace timetrial::layers
