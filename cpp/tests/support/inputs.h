// What the batches of most tests bring.
#pragma once

#include <vector>

#include "network/node.h"

namespace timetrial::testing {

// "images" (f32, that shape each) and "labels" (i64, one each).
inline std::vector<InputSpec> images_and_labels(const Shape& sample) {
    return {{"images", TT_F32, sample, TT_INPUT}, {"labels", TT_I64, {}, TT_TARGET}};
}

}  // namespace timetrial::testing
