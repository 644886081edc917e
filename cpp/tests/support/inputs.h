// What the batches of most tests bring.
#pragma once

#include <vector>

#include "network/node.h"

namespace timetrial::testing {

// "images" (f32, that shape each) and "labels" (i64, one each).
inline std::vector<InputSpec> images_and_labels(const Shape& sample) {
    return {{"images", TT_F32, sample, TT_INPUT}, {"labels", TT_I64, {}, TT_TARGET}};
}

// "series" (f32, T x F each), "lengths" and "labels".
inline std::vector<InputSpec> series_and_labels(const Shape& sample) {
    return {{"series", TT_F32, sample, TT_INPUT},
            {"lengths", TT_I64, {}, TT_LENGTHS},
            {"labels", TT_I64, {}, TT_TARGET}};
}

// "tokens" (i64, T each), "lengths" and "labels".
inline std::vector<InputSpec> tokens_and_labels(std::int64_t steps) {
    return {{"tokens", TT_I64, {steps}, TT_INPUT},
            {"lengths", TT_I64, {}, TT_LENGTHS},
            {"labels", TT_I64, {}, TT_TARGET}};
}

// "tokens" (i64, T each) and "labels" (i64, T each): of a language model.
inline std::vector<InputSpec> tokens_and_next(std::int64_t steps) {
    return {{"tokens", TT_I64, {steps}, TT_INPUT}, {"labels", TT_I64, {steps}, TT_TARGET}};
}

}  // namespace timetrial::testing
