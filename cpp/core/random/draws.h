// What timetrial draws: weights and orders. Each call takes numbers from the start of its stream.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace timetrial {

// Fills with f32 in [low, high). std::invalid_argument unless low < high and both are finite.
void uniform(std::uint64_t seed, std::string_view stream, float low, float high, std::span<float> values);

// The limit a = sqrt(6 / (fan_in + fan_out)) of Glorot and Bengio 2010. A weight is (outputs, inputs) or
// (outputs, inputs, kernel...): fan_in = inputs * kernel, fan_out = outputs * kernel, as in torch.nn.init.
// std::invalid_argument for a shape with fewer than two extents.
double glorot_limit(std::span<const std::int64_t> shape);

// Fills a weight of that shape with f32 in [-a, a); the stream is the parameter's name.
void glorot_uniform(std::uint64_t seed, std::string_view parameter, std::span<const std::int64_t> shape,
                    std::span<float> values);

// 0 ... n-1 in random order: Fisher and Yates from the last place down, each partner drawn without bias.
std::vector<std::int64_t> permutation(std::uint64_t seed, std::string_view stream, std::int64_t n);

}  // namespace timetrial
