// _timetrial_runtime.Gather: the data part of a step, in C.
#include <vector>

#include "loop/gather.h"
#include "python_api.h"

namespace timetrial::runtime {
namespace {

using Object = Instance<Gather>;
PyTypeObject* gather_type = nullptr;

bool read_tensors(PyObject* list, std::vector<GatheredTensor>& tensors) {
    const Py_ssize_t count = PySequence_Size(list);
    if (count < 0) return false;
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* item = PySequence_GetItem(list, i);
        if (item == nullptr) return false;
        unsigned long long source = 0;
        unsigned long long destination = 0;
        unsigned long long row_bytes = 0;
        unsigned long long drawn_rows = 0;
        const bool read =
            PyTuple_Check(item) != 0 &&
            PyArg_ParseTuple(item, "KKK|K:tensor", &source, &destination, &row_bytes, &drawn_rows) != 0;
        Py_DECREF(item);
        if (!read || source == 0 || destination == 0 || row_bytes == 0) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError,
                                "a tensor is a tuple (source address, destination address, bytes of a row, "
                                "and of one that belongs to no sample the rows of the source)");
            return false;
        }
        tensors.push_back({reinterpret_cast<const void*>(source), reinterpret_cast<void*>(destination),
                           static_cast<std::size_t>(row_bytes), static_cast<std::size_t>(drawn_rows)});
    }
    return true;
}

PyObject* gather_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    static const char* const keywords[] = {"order", "batches", "batch_size", "tensors", nullptr};
    unsigned long long order = 0;
    long long batches = 0;
    long long batch_size = 0;
    PyObject* tensors = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "KLLO:Gather", names(keywords), &order, &batches,
                                     &batch_size, &tensors))
        return nullptr;
    if (!in_range("batches", batches, 1, PY_SSIZE_T_MAX) ||
        !in_range("batch_size", batch_size, 1, PY_SSIZE_T_MAX))
        return nullptr;
    if (order == 0) {
        PyErr_SetString(PyExc_ValueError, "order is the address of an array of i64, not 0");
        return nullptr;
    }
    PyObject* self = Object::create(type);
    if (self == nullptr) return nullptr;
    Gather& gather = Object::of(self);
    gather.order = reinterpret_cast<const std::int64_t*>(order);
    gather.batches = static_cast<std::size_t>(batches);
    gather.batch_size = static_cast<std::size_t>(batch_size);
    if (read_tensors(tensors, gather.tensors)) return self;
    Py_DECREF(self);
    return nullptr;
}

PyObject* gather_fill(PyObject* self, PyObject*) {
    Object::of(self).fill();
    Py_RETURN_NONE;
}

PyObject* gather_call(PyObject* self, PyObject*, PyObject*) {
    Gather::call(&Object::of(self), nullptr);
    Py_RETURN_NONE;
}

PyObject* get_next(PyObject* self, void*) { return PyLong_FromSize_t(Object::of(self).next); }

int set_next(PyObject* self, PyObject* value, void*) {
    Gather& gather = Object::of(self);
    const Py_ssize_t next = value == nullptr ? -1 : PyNumber_AsSsize_t(value, PyExc_OverflowError);
    if (PyErr_Occurred()) return -1;
    if (!in_range("next", next, 0, static_cast<long long>(gather.batches) - 1)) return -1;
    gather.next = static_cast<std::size_t>(next);
    return 0;
}

}  // namespace

bool is_gather(PyObject* object) { return Py_TYPE(object) == gather_type; }
void* gather_of(PyObject* object) { return &Object::of(object); }

PyObject* make_gather_type() {
    static PyMethodDef methods[] = {
        {"fill", gather_fill, METH_NOARGS,
         "fill()\n\nFills the tensors with the current batch; does not advance."},
        {nullptr, nullptr, 0, nullptr},
    };
    static PyGetSetDef properties[] = {
        {"next", get_next, set_next, "the row of the order that the next batch uses", nullptr},
        {nullptr, nullptr, nullptr, nullptr, nullptr},
    };
    static PyType_Slot slots[] = {
        {Py_tp_new, reinterpret_cast<void*>(gather_new)},
        {Py_tp_dealloc, reinterpret_cast<void*>(Object::destroy)},
        {Py_tp_call, reinterpret_cast<void*>(gather_call)},
        {Py_tp_methods, methods},
        {Py_tp_getset, properties},
        {Py_tp_doc,
         const_cast<char*>(
             "Gather(order, batches, batch_size, tensors)\n\n"
             "The data part of a step: batch k holds the rows that row k mod batches of the order names.\n"
             "order: address of i64 (batches, batch_size). tensors: tuples (source address, destination\n"
             "address, bytes of a row); with the number of its rows behind them, one that belongs to no\n"
             "sample: batch k has its rows from k batch_size on, mod that number. The caller keeps the\n"
             "arrays alive and has checked the order.\n"
             "Called, it fills the tensors with the next batch.")},
        {0, nullptr},
    };
    static PyType_Spec spec = {"_timetrial_runtime.Gather", static_cast<int>(sizeof(Object)), 0,
                               Py_TPFLAGS_DEFAULT, slots};
    PyObject* type = PyType_FromSpec(&spec);
    gather_type = reinterpret_cast<PyTypeObject*>(type);
    return type;
}

}  // namespace timetrial::runtime
