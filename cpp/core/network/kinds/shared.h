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

// The weight, and a bias for each output if the layer has one.
std::vector<Parameter> with_bias(const LayerView& layer, Parameter weight, std::int64_t outputs);

// Extents of the output of a window that slides over (H, W), with padding_end_* and dilation_* where the kind
// has them.
std::array<std::int64_t, 2> slide(const LayerView& layer);

}  // namespace timetrial::kinds
