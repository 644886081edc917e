// _timetrial_runtime: the recorder and the timed loop for every CPython from 3.6 on, through its limited API.
// That has no buffer protocol, so arrays are passed as addresses.
#include "clock/clock.h"
#include "python_api.h"
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

PyMethodDef functions[] = {
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
