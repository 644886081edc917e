// The entries of the table of layer kinds, by what belongs together. Each is what the core knows of a kind
// and what the documentation says.
#pragma once

#include <vector>

#include "network/layers.h"

namespace timetrial::kinds {

// Where definitions are from.
inline constexpr const char* kVision = "Dumoulin and Visin, A guide to convolution arithmetic, 2016";
inline constexpr const char* kBook = "Goodfellow, Bengio and Courville, Deep Learning, 2016";

std::vector<LayerKind> dense();
std::vector<LayerKind> convolution();
std::vector<LayerKind> pooling();
std::vector<LayerKind> elementwise();
std::vector<LayerKind> normalization();
std::vector<LayerKind> shapes();
std::vector<LayerKind> sequences();
std::vector<LayerKind> losses();

}  // namespace timetrial::kinds
