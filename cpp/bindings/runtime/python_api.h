// Small helpers on CPython's limited API of 3.6: what that version has, every later one has.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <new>

namespace timetrial::runtime {

// A new instance's memory, with a T built behind the object's head. Errors: nullptr, a Python error is set.
template <typename T>
struct Instance {
    PyObject head;
    T value;

    static T& of(PyObject* self) { return reinterpret_cast<Instance*>(self)->value; }

    static PyObject* create(PyTypeObject* type) {
        const auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
        PyObject* self = allocate(type, 0);
        if (self != nullptr) new (&of(self)) T();
        return self;
    }

    static void destroy(PyObject* self) {
        PyTypeObject* type = Py_TYPE(self);
        of(self).~T();
        reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
        Py_DECREF(reinterpret_cast<PyObject*>(type));
    }
};

// A function with keywords as the one pointer type that a PyMethodDef has.
inline PyCFunction method(PyCFunctionWithKeywords function) {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

// PyArg_ParseTupleAndKeywords takes names as char**, but never writes to them.
inline char** names(const char* const* keywords) { return const_cast<char**>(keywords); }

// A whole number in a range; names the argument otherwise.
bool in_range(const char* name, long long value, long long smallest, long long largest);

// OSError(error, words); returns nullptr.
PyObject* raise_errno(int error, const char* words);

// libraries(), see runtime_module.cpp.
PyObject* list_libraries(PyObject*, PyObject*);

PyObject* make_recorder_type();
PyObject* make_gather_type();
bool is_gather(PyObject* object);
// The timetrial::Gather in an object that is one.
void* gather_of(PyObject* object);

}  // namespace timetrial::runtime
