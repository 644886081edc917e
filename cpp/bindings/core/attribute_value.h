// Attributes as Python writes them.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "network/node.h"

namespace timetrial::bindings {

// NetworkError for a value that no attribute has; `where` begins its words.
AttributeValue attribute_value(const std::string& where, pybind11::handle value);

}  // namespace timetrial::bindings
