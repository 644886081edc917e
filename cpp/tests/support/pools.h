// Threads that numerical libraries keep for their next call.
#pragma once

#include <gtest/gtest.h>

namespace timetrial::testing {

// Ends those of GNU OpenMP and of OpenBLAS, where they are loaded: for the end of a process. At exit
// LeakSanitizer stops every thread and reads its stack; over threads that spin on a busy machine its tracer
// has crashed.
void end_pools();

// Does so after the last test: AddGlobalTestEnvironment(new EndsPools).
class EndsPools : public ::testing::Environment {
    void TearDown() override { end_pools(); }
};

}  // namespace timetrial::testing
