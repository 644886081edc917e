#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <vector>

#include "bindings.h"
#include "controllers/loaded.h"
#include "controllers/openblas_cores.h"

namespace py = pybind11;

namespace timetrial::bindings {

void register_controllers(py::module_& module) {
    module.def("openblas_core_problem", &openblas_core_problem, py::arg("core"));
    module.def("openblas_core_missed", &openblas_core_missed, py::arg("core"));

    py::class_<Library, std::shared_ptr<Library>>(module, "Library")
        .def_property_readonly("path", &Library::path)
        .def_property_readonly("kind", &Library::kind)
        .def_property_readonly("vendor", &Library::vendor)
        .def_property_readonly("version", &Library::version)
        .def_property_readonly("kernel", &Library::kernel)
        .def_property_readonly("threading", &Library::threading)
        .def_property_readonly("integer_bits", &Library::integer_bits)
        .def_property_readonly("threads", &Library::threads)
        .def_property_readonly("threads_getter", &Library::threads_getter)
        .def_property_readonly("limits", &Library::limits)
        .def_property_readonly("of_calling_thread",
                               [](const Library& one) { return one.scope() == Scope::kCallingThread; })
        .def("set_threads", &Library::set_threads, py::arg("threads"));

    py::class_<Libraries>(module, "Libraries")
        .def(py::init<>())
        .def_property_readonly("searches", &Libraries::searches)
        .def("loaded", [](Libraries& libraries) {
            std::vector<std::shared_ptr<Library>> found;
            for (const LibraryPtr& one : libraries.loaded())
                found.push_back(std::const_pointer_cast<Library>(one));
            return found;
        });
}

}  // namespace timetrial::bindings
