// _timetrial_runtime.libraries(): what tt_libraries() found, as dicts.
#include <vector>

#include "python_api.h"
#include "timetrial/libraries.h"

namespace timetrial::runtime {
namespace {

bool put(PyObject* dict, const char* key, PyObject* value) {
    if (value == nullptr) return false;
    const bool done = PyDict_SetItemString(dict, key, value) == 0;
    Py_DECREF(value);
    return done;
}

bool put_text(PyObject* dict, const char* key, const char* text) {
    return put(dict, key, PyUnicode_DecodeFSDefault(text));
}

PyObject* as_dict(const tt_library& library) {
    PyObject* dict = PyDict_New();
    if (dict == nullptr) return nullptr;
    if (library.threads < 0) Py_INCREF(Py_None);
    PyObject* threads = library.threads < 0 ? Py_None : PyLong_FromLong(library.threads);
    if (put_text(dict, "path", library.path) && put_text(dict, "kind", library.kind) &&
        put_text(dict, "vendor", library.vendor) && put_text(dict, "version", library.version) &&
        put_text(dict, "kernel", library.kernel) && put_text(dict, "kernel_getter", library.kernel_getter) &&
        put_text(dict, "threads_getter", library.threads_getter)) {
        if (put(dict, "threads", threads)) return dict;
        threads = nullptr;  // put() has taken it
    }
    Py_XDECREF(threads);
    Py_DECREF(dict);
    return nullptr;
}

}  // namespace

PyObject* list_libraries(PyObject*, PyObject*) {
    constexpr uint32_t capacity = 64;
    std::vector<tt_library> libraries(capacity);
    libraries[0].size = sizeof(tt_library);
    const uint32_t found = tt_libraries(libraries.data(), capacity);
    PyObject* list = PyList_New(0);
    for (uint32_t i = 0; list != nullptr && i < found && i < capacity; ++i) {
        PyObject* dict = as_dict(libraries[i]);
        if (dict == nullptr || PyList_Append(list, dict) != 0) {
            Py_DECREF(list);
            list = nullptr;
        }
        Py_XDECREF(dict);
    }
    return list;
}

}  // namespace timetrial::runtime
