// What several kinds share: rules of attributes, what inputs have to be, windows that slide. A window that
// does not fit whole at the lower or right edge is dropped.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "network/layers.h"

namespace timetrial::kinds {

AttributeRule whole(std::string name, std::optional<AttributeValue> otherwise = std::nullopt);
AttributeRule flag(std::string name, bool otherwise);
AttributeRule pair(std::string name, double least, std::optional<AttributeValue> otherwise = std::nullopt);
AttributeRule pair_as(std::string name, double least, std::string other);
// A number from 0.
AttributeRule share(std::string name, double otherwise);

// "'conv1' gives (64, 20, 24, 24)"
std::string gives(const LayerView& layer);
// "'conv1' gives (64, 20, 24, 24), 'conv2' gives (64, 50, 8, 8)"
std::string all_give(const LayerView& layer);

void need_flat(const LayerView& layer);
void need_images(const LayerView& layer);

// A weight is (outputs, inputs) or (outputs, inputs, kernel...).
std::vector<Parameter> weight_and_bias(const LayerView& layer, const Shape& weight);

// Extents of the output of a window that slides over (H, W).
std::array<std::int64_t, 2> slide(const LayerView& layer);

}  // namespace timetrial::kinds
