// What a layer is here: an operation of ATen on the outputs of others.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "timetrial/backend.hpp"

namespace timetrial::libtorch {

using Inputs = std::vector<at::Tensor>;
// A layer may compute something else where nothing is learned.
enum class Mode { kTraining, kInference };
using Operation = std::function<at::Tensor(const Inputs& inputs, Mode mode)>;

// `parameters`: weight, and bias if the layer has one; then its states. ATen's operations are the ones that
// torch.nn calls, so rows here and rows of PyTorch run the same kernels.
using Parameters = std::vector<at::Tensor>;
using MakeOperation = Operation (*)(const Attributes& attributes, const Parameters& parameters);

}  // namespace timetrial::libtorch
