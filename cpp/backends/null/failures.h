// The ways in which the null backend can fail. One table, failures.cpp, is all there is to know.
#pragma once

#include <string_view>

namespace timetrial {

enum class Failure {
    none,
    throws,
    aborts,
    segfaults,
    exits,
    hangs,
    nan,
    oom,
    grows,
    prints,
    wrong_threads,
    unsupported_layer,
    slow_start
};

// Throws Unsupported for a word that is not in the table.
Failure failure_named(std::string_view word);

// Does it, where it is something to be done at a moment: nan, prints, wrong_threads, unsupported_layer
// and slow_start are done by the backend in their own places.
void fail(Failure failure);

}  // namespace timetrial
