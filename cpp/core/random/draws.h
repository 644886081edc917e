// What weights and orders are drawn from. Each call takes numbers from the start of its stream.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace timetrial {

// Fills with f32 in [low, high). std::invalid_argument unless low < high and both are finite.
void uniform(std::uint64_t seed, std::string_view stream, float low, float high, std::span<float> values);

// 0 ... n-1 in random order: Fisher and Yates from the last place down, each partner drawn without bias.
std::vector<std::int64_t> permutation(std::uint64_t seed, std::string_view stream, std::int64_t n);

}  // namespace timetrial
