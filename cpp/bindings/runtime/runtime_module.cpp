// _timetrial_runtime: the recorder and the timed loop for every CPython from 3.6 on, through its limited API.
// That has no buffer protocol, so arrays are passed as addresses.
#include "clock/clock.h"
#include "python_api.h"
#include "timetrial/float_mode.h"
#include "timetrial/recorder.h"

namespace timetrial::runtime {

bool in_range(const char* name, long long value, long long smallest, long long largest) {
    if (value >= smallest && value <= largest) return true;
    PyErr_Format(PyExc_ValueError, "%s = %lld; expected %lld to %lld", name, value, smallest, largest);
    return false;
}

PyObject* raise_errno(int error, const char* words) {
    PyObject* arguments = Py_BuildValue("(is)", error, words);
    if (arguments != nullptr) PyErr_SetObject(PyExc_OSError, arguments);
    Py_XDECREF(arguments);
    return nullptr;
}

namespace {

PyObject* module_now_ns(PyObject*, PyObject*) { return PyLong_FromUnsignedLongLong(now_ns()); }

PyObject* module_float_mode(PyObject*, PyObject*) { return PyLong_FromUnsignedLong(tt_float_mode()); }

PyObject* module_set_float_mode(PyObject*, PyObject* args) {
    long long mode = 0;
    if (!PyArg_ParseTuple(args, "L:set_float_mode", &mode)) return nullptr;
    if (!in_range("mode", mode, 0, TT_FLUSH_TO_ZERO | TT_DENORMALS_ARE_ZERO)) return nullptr;
    tt_set_float_mode(static_cast<uint32_t>(mode));
    Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"float_mode", module_float_mode, METH_NOARGS,
     "float_mode() -> int\n\nHow this thread treats subnormals: 1, results are 0; 2, operands are 0; 3, "
     "both."},
    {"set_float_mode", module_set_float_mode, METH_VARARGS,
     "set_float_mode(mode)\n\nSets it, for this thread and those that it starts from now on."},
    {"now_ns", module_now_ns, METH_NOARGS, "now_ns() -> int\n\nThe clock of the stamps: CLOCK_MONOTONIC."},
    {"libraries", list_libraries, METH_NOARGS,
     "libraries() -> list of dicts\n\nThe BLAS and OpenMP libraries of this process: path, kind, vendor, "
     "version, "
     "kernel, kernel_getter, threads, threads_getter; timetrial/libraries.h explains them. Unknown: '' or "
     "None."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "_timetrial_runtime",
                          "Recorder and timed loop of timetrial, for any CPython from 3.6 on.",
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

bool add(PyObject* module, const char* name, PyObject* object) {
    if (object != nullptr && PyModule_AddObject(module, name, object) == 0) return true;
    Py_XDECREF(object);
    return false;
}

}  // namespace
}  // namespace timetrial::runtime

PyMODINIT_FUNC PyInit__timetrial_runtime() {
    using namespace timetrial::runtime;
    PyObject* module = PyModule_Create(&definition);
    if (module == nullptr) return nullptr;
    if (add(module, "Recorder", make_recorder_type()) && add(module, "Gather", make_gather_type()))
        return module;
    Py_DECREF(module);
    return nullptr;
}
