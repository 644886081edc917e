// What parameters are before the first step.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "network/node.h"

namespace timetrial {

// Words that an Initializer may have.
std::vector<std::string> initializer_names();

// Throws NetworkError for a word that is none of them, and for one that lacks its fans.
void check_initializer(const Parameter& parameter);

// Fills `values` with f32; the stream is the parameter's name.
//   glorot_uniform  in [-a, a), a = sqrt(6 / (fan_in + fan_out)): Glorot and Bengio, 2010
//   forget_ones     1 for the second of four gates (an LSTM's forget gate), 0 for the others
//   he_uniform      in [-a, a), a = sqrt(6 / fan_in): He, Zhang, Ren and Sun, 2015
void draw_initial(std::uint64_t seed, const Parameter& parameter, std::span<float> values);

}  // namespace timetrial
