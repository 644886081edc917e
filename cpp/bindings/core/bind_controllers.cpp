#include <pybind11/pybind11.h>

#include "bindings.h"
#include "controllers/openblas_cores.h"

namespace py = pybind11;

namespace timetrial::bindings {

void register_controllers(py::module_& module) {
    module.def("openblas_core_problem", &openblas_core_problem, py::arg("core"));
    module.def("openblas_core_missed", &openblas_core_missed, py::arg("core"));
}

}  // namespace timetrial::bindings
