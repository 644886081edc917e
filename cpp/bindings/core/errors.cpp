#include <pybind11/pybind11.h>

#include "bindings.h"

namespace py = pybind11;

namespace timetrial::bindings {

void raise_python(const char* module, const char* type, const std::string& text) {
    PyErr_SetString(py::module_::import(module).attr(type).ptr(), text.c_str());
    throw py::error_already_set();
}

void raise_input_error(const std::string& text) { raise_python("timetrial.errors", "InputError", text); }
void raise_measurement_error(const std::string& text) {
    raise_python("timetrial.errors", "MeasurementError", text);
}

}  // namespace timetrial::bindings
