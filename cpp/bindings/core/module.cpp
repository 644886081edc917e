// timetrial.core._core: the compiled half of timetrial.core. Its typed face is python/timetrial/core.
#include <pybind11/pybind11.h>

#include <stdexcept>

#include "bindings.h"
#include "network/node.h"
#include "npy/npy.h"

namespace py = pybind11;
using namespace timetrial;

namespace {

void set_python_error(const char* module, const char* type, const char* text) {
    PyErr_SetString(py::module_::import(module).attr(type).ptr(), text);
}

// What the core throws is the user's mistake, in words that name it.
void translate(std::exception_ptr exception) {
    try {
        if (exception) std::rethrow_exception(exception);
    } catch (const NetworkError& error) {
        set_python_error("timetrial.core.errors", "NetworkError", error.what());
    } catch (const NpyError& error) {
        set_python_error("timetrial.errors", "InputError", error.what());
    } catch (const std::invalid_argument& error) {
        set_python_error("timetrial.errors", "InputError", error.what());
    }
}

}  // namespace

PYBIND11_MODULE(_core, module) {
    module.doc() = "The compiled half of timetrial.core.";
    py::register_local_exception_translator(translate);
    bindings::register_metrics(module);
    bindings::register_network(module);
    bindings::register_random(module);
    bindings::register_recorder(module);
}
