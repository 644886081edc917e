// timetrial.core._core: the compiled half of timetrial.core. Its typed face is python/timetrial/core.
#include <pybind11/pybind11.h>

#include <stdexcept>
#include <system_error>

#include "bindings.h"
#include "loader/context.h"
#include "network/node.h"
#include "npy/npy.h"

namespace py = pybind11;
using namespace timetrial;

namespace {

void set_python_error(const char* module, const char* type, const char* text) {
    PyErr_SetString(py::module_::import(module).attr(type).ptr(), text);
}

// What the core throws says in words what was wrong; here it gets its place in the family of
// timetrial.errors.
void translate(std::exception_ptr exception) {
    try {
        if (exception) std::rethrow_exception(exception);
    } catch (const NetworkError& error) {
        set_python_error("timetrial.core.errors", "NetworkError", error.what());
    } catch (const NpyError& error) {
        set_python_error("timetrial.errors", "InputError", error.what());
    } catch (const PluginError& error) {
        set_python_error("timetrial.errors", "InputError", error.what());
    } catch (const BackendError& error) {
        const bool unsupported = error.status() == TT_UNSUPPORTED;
        set_python_error(unsupported ? "timetrial.errors" : "timetrial.core.errors",
                         unsupported ? "Unavailable" : "BackendError", error.what());
    } catch (const std::system_error& error) {
        set_python_error("timetrial.errors", "MeasurementError", error.what());
    } catch (const std::invalid_argument& error) {
        set_python_error("timetrial.errors", "InputError", error.what());
    }
}

}  // namespace

PYBIND11_MODULE(_core, module) {
    module.doc() = "The compiled half of timetrial.core.";
    py::register_local_exception_translator(translate);
    bindings::register_controllers(module);
    bindings::register_layer_kinds(module);
    bindings::register_metrics(module);
    bindings::register_network(module);
    bindings::register_random(module);
    bindings::register_recorder(module);
    bindings::register_backend(module);  // its signatures name Network and Recorder
}
