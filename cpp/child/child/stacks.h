// The stack of the thread that dies, on standard error.
#pragma once

namespace timetrial {

/// From here on, before this process ends by a signal of its own making (SIGSEGV, SIGABRT, ...) it writes the
/// stack of the thread that got it. Signals that something else handles already are left to that.
void write_stacks_when_dying();

}  // namespace timetrial
