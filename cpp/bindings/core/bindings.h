// The parts of timetrial.core._core: one bind_<topic>.cpp per folder of the core. A new topic is one line
// here and one in module.cpp.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

namespace timetrial::bindings {

void register_backend(pybind11::module_& module);
void register_controllers(pybind11::module_& module);
void register_layer_kinds(pybind11::module_& module);
void register_metrics(pybind11::module_& module);
void register_network(pybind11::module_& module);
void register_random(pybind11::module_& module);
void register_recorder(pybind11::module_& module);

// Raises the Python exception `module.type` with that text.
[[noreturn]] void raise_python(const char* module, const char* type, const std::string& text);

// timetrial.errors.InputError and MeasurementError.
[[noreturn]] void raise_input_error(const std::string& text);
[[noreturn]] void raise_measurement_error(const std::string& text);

}  // namespace timetrial::bindings
