// The plug-in over oneDNN, with its library.
#pragma once

#include <string>

#include "loader/plugin.h"
#include "support/trainer.h"

namespace timetrial::testing {

// The library before the plug-in, as timetrial-child does.
inline std::string onednn() {
    static const bool preloaded = (preload_library(TIMETRIAL_TEST_ONEDNN), true);
    return preloaded ? plugin_path("onednn") : "";
}

}  // namespace timetrial::testing
