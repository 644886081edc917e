// Passes: the same steps again and again, each from the initial state and the first batch.
#pragma once

#include <cstdint>

#include "loader/context.h"
#include "loop/gather.h"
#include "timetrial/recorder.h"

namespace timetrial {

struct Passes {
    std::uint32_t steps = 0;  // of a pass; 0: none ends
    std::uint32_t done = 0;   // since the last reset
    PluginCall call{};
    Gather* gather = nullptr;  // null where the backend reads no data

    // For tt_loop_part: initial weights, empty optimizer, first batch.
    static int reset(void* user, double*) {
        auto* passes = static_cast<Passes*>(user);
        if (passes->gather != nullptr) passes->gather->next = 0;
        const tt_status status = passes->call.table->reset(passes->call.context);
        return status != TT_OK ? status : passes->call.table->wait(passes->call.context);
    }
};

}  // namespace timetrial
