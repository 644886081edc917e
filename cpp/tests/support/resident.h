// What a process holds of the machine's memory.
#pragma once

#include <unistd.h>

#include <fstream>

namespace timetrial::testing {

// In bytes. What is only freed, the process may still hold.
inline long resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    long pages = 0;
    statm >> pages >> pages;
    return pages * sysconf(_SC_PAGESIZE);
}

}  // namespace timetrial::testing
