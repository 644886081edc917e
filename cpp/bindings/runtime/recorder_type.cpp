// _timetrial_runtime.Recorder: stamps and the timed loop for a contender written in Python.
#include <cerrno>
#include <climits>
#include <vector>

#include "loop/gather.h"
#include "python_api.h"
#include "timetrial/recorder.h"

namespace timetrial::runtime {
namespace {

struct State {
    tt_recorder* recorder = nullptr;
    bool running = false;  // inside run(): the window belongs to the loop

    ~State() {
        if (recorder != nullptr) tt_recorder_close(recorder);
    }
};
using Object = Instance<State>;

PyObject* recorder_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    static const char* const keywords[] = {"fd", "capacity", nullptr};
    int fd = -1;
    long long capacity = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "i|L:Recorder", names(keywords), &fd, &capacity))
        return nullptr;
    if (!in_range("capacity", capacity, 0, TT_WINDOW_CAPACITY)) return nullptr;
    PyObject* self = Object::create(type);
    if (self == nullptr) return nullptr;
    const int error = tt_recorder_open(&Object::of(self).recorder, fd, static_cast<uint32_t>(capacity));
    if (error == 0) return self;
    Object::of(self).recorder = nullptr;
    Py_DECREF(self);
    return raise_errno(error, error == EBADMSG
                                  ? "the descriptor is no recorder file: it does not start with TTSTAMPS"
                              : error == EPROTO ? "the recorder file has another version"
                              : error == EINVAL ? "the recorder file has another capacity"
                                                : "the recorder file cannot be opened");
}

bool refuse_while_running(const State& state) {
    if (state.running)
        PyErr_SetString(PyExc_RuntimeError, "the recorder is inside run(): its window belongs to the loop");
    return state.running;
}

PyObject* recorder_begin(PyObject* self, PyObject* args) {
    long long window = 0;
    long long entries = 0;
    if (!PyArg_ParseTuple(args, "LL:begin", &window, &entries)) return nullptr;
    State& state = Object::of(self);
    if (refuse_while_running(state) || !in_range("window", window, 0, INT_MAX) ||
        !in_range("entries", entries, 1, TT_WINDOW_CAPACITY))
        return nullptr;
    const int error =
        tt_recorder_begin(state.recorder, static_cast<uint32_t>(window), static_cast<uint32_t>(entries));
    if (error == 0) Py_RETURN_NONE;
    return raise_errno(error, error == EBUSY    ? "a window is open already: call end() first"
                              : error == EINVAL ? "entries: more than the file's capacity"
                                                : "no room for the window");
}

PyObject* recorder_end(PyObject* self, PyObject*) {
    State& state = Object::of(self);
    if (refuse_while_running(state)) return nullptr;
    uint32_t written = 0;
    uint64_t bytes = 0;
    if (const int error = tt_recorder_end(state.recorder, &written, &bytes))
        return raise_errno(error, "no window is open: call begin() first");
    return Py_BuildValue("(IK)", written, static_cast<unsigned long long>(bytes));
}

PyObject* recorder_stamp(PyObject* self, PyObject* args) {
    long boundary = TT_STEP;
    const Py_ssize_t count = PyTuple_Size(args);
    if (count > 1)
        return PyErr_Format(PyExc_TypeError, "stamp() takes one boundary, got %zd arguments", count);
    if (count == 1) {
        boundary = PyLong_AsLong(PyTuple_GetItem(args, 0));
        if (boundary == -1 && PyErr_Occurred()) return nullptr;
        if (!in_range("boundary", boundary, 0, 255)) return nullptr;
    }
    const int error = tt_recorder_stamp(Object::of(self).recorder, static_cast<uint32_t>(boundary));
    if (error == 0) Py_RETURN_NONE;
    return raise_errno(error,
                       error == EBADF ? "no window is open: call begin() first" : "the window is full");
}

// For tt_loop_part: user is the callable. A result of None leaves the loss as it is.
int call_python(void* user, double* loss) {
    PyObject* result = PyObject_CallObject(static_cast<PyObject*>(user), nullptr);
    if (result == nullptr) return 1;
    if (result != Py_None) {
        *loss = PyFloat_AsDouble(result);
        if (*loss == -1.0 && PyErr_Occurred()) {
            Py_DECREF(result);
            return 1;
        }
    }
    Py_DECREF(result);
    return 0;
}

// The same for what leads back to the initial state: whatever it returns.
int call_reset(void* user, double*) {
    PyObject* result = PyObject_CallObject(static_cast<PyObject*>(user), nullptr);
    if (result == nullptr) return 1;
    Py_DECREF(result);
    return 0;
}

// The parts of a step. Owns a reference to each callable while the loop runs.
class Parts {
  public:
    Parts() = default;
    Parts(const Parts&) = delete;
    Parts& operator=(const Parts&) = delete;
    ~Parts() {
        for (PyObject* callable : callables_) Py_DECREF(callable);
    }

    bool read(PyObject* sequence) {
        const Py_ssize_t count = PySequence_Size(sequence);
        if (count < 0) return false;
        for (Py_ssize_t i = 0; i < count; ++i) {
            PyObject* item = PySequence_GetItem(sequence, i);
            if (item == nullptr) return false;
            const bool added = add(item);
            Py_DECREF(item);
            if (!added) return false;
        }
        if (!parts_.empty() && parts_.back().boundary == TT_STEP) return true;
        PyErr_SetString(PyExc_ValueError, "the last part of a step has the boundary 1 (STEP)");
        return false;
    }
    const std::vector<tt_loop_part>& get() const { return parts_; }

  private:
    bool add(PyObject* item) {
        int boundary = 0;
        PyObject* callable = nullptr;
        if (!PyTuple_Check(item)) {
            PyErr_SetString(PyExc_TypeError, "a part is a tuple (boundary, callable or Gather)");
            return false;
        }
        if (!PyArg_ParseTuple(item, "iO:part", &boundary, &callable)) return false;
        if (!in_range("boundary of a part", boundary, 0, 255)) return false;
        if (!parts_.empty() && parts_.back().boundary == TT_STEP) {
            PyErr_SetString(PyExc_ValueError, "only the last part of a step has the boundary 1 (STEP)");
            return false;
        }
        if (!PyCallable_Check(callable)) {
            PyErr_SetString(PyExc_TypeError, "a part is a tuple (boundary, callable or Gather)");
            return false;
        }
        Py_INCREF(callable);
        callables_.push_back(callable);
        const auto number = static_cast<uint32_t>(boundary);
        if (is_gather(callable))
            parts_.push_back({number, Gather::call, gather_of(callable)});
        else
            parts_.push_back({number, call_python, callable});
        return true;
    }

    std::vector<tt_loop_part> parts_;
    std::vector<PyObject*> callables_;
};

PyObject* recorder_run(PyObject* self, PyObject* args, PyObject* kwargs) {
    static const char* const keywords[] = {"parts", "max_steps",  "max_ns",    "window", "stop_at_nan",
                                           "reset", "pass_steps", "pass_done", nullptr};
    PyObject* sequence = nullptr;
    long long max_steps = 0;
    long long max_ns = 0;
    long long window = 0;
    int stop_at_nan = 1;
    PyObject* reset = Py_None;
    long long pass_steps = 0;
    long long pass_done = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OLLL|pOLL:run", names(keywords), &sequence, &max_steps,
                                     &max_ns, &window, &stop_at_nan, &reset, &pass_steps, &pass_done))
        return nullptr;
    State& state = Object::of(self);
    if (refuse_while_running(state) || !in_range("max_steps", max_steps, 1, UINT_MAX) ||
        !in_range("max_ns", max_ns, 0, LLONG_MAX) || !in_range("window", window, 0, INT_MAX) ||
        !in_range("pass_steps", pass_steps, 0, UINT_MAX) || !in_range("pass_done", pass_done, 0, UINT_MAX))
        return nullptr;
    if (pass_steps != 0 && PyCallable_Check(reset) == 0) {
        PyErr_SetString(PyExc_TypeError, "passes need reset, a callable");
        return nullptr;
    }
    Parts parts;
    if (!parts.read(sequence)) return nullptr;
    tt_segment segment{};
    segment.size = sizeof segment;
    segment.window = static_cast<uint32_t>(window);
    segment.max_steps = static_cast<uint32_t>(max_steps);
    segment.max_ns = static_cast<uint64_t>(max_ns);
    segment.stop_at_nan = static_cast<uint32_t>(stop_at_nan);
    const tt_loop_part begin_pass{TT_RESET, call_reset, reset};
    segment.reset = &begin_pass;
    segment.pass_steps = static_cast<uint32_t>(pass_steps);
    segment.pass_done = static_cast<uint32_t>(pass_done);
    state.running = true;
    const int error =
        tt_loop_run(state.recorder, parts.get().data(), static_cast<uint32_t>(parts.get().size()), &segment);
    state.running = false;
    if (segment.call_status != 0) return nullptr;  // the call has set the exception
    if (error != 0)
        return raise_errno(error, error == EBUSY    ? "a window is open already: call end() first"
                                  : error == EINVAL ? "the window is too small for one step"
                                                    : "no room for the window");
    return Py_BuildValue("{s:I,s:I,s:K,s:I,s:K}", "steps", segment.steps, "stamps", segment.stamps,
                         "window_bytes", static_cast<unsigned long long>(segment.window_bytes), "pass_done",
                         segment.pass_done, "reset_cpu_ns",
                         static_cast<unsigned long long>(segment.reset_cpu_ns));
}

}  // namespace

PyObject* make_recorder_type() {
    static PyMethodDef methods[] = {
        {"begin", recorder_begin, METH_VARARGS,
         "begin(window, entries)\n\nMaps room for that many stamps in a window and clears it."},
        {"stamp", recorder_stamp, METH_VARARGS, "stamp(boundary=1)\n\nWrites a stamp with the time now."},
        {"end", recorder_end, METH_NOARGS, "end() -> (stamps, bytes)\n\nUnmaps the window."},
        {"run", method(recorder_run), METH_VARARGS | METH_KEYWORDS,
         "run(parts, max_steps, max_ns, window, stop_at_nan=True, reset=None, pass_steps=0, pass_done=0)\n"
         "-> dict(steps, stamps, window_bytes, pass_done, reset_cpu_ns)\n\n"
         "Runs a segment: parts are tuples (boundary, callable or Gather); boundary 0 means no stamp, the "
         "last\n"
         "part's is 1. A callable takes nothing and returns the step's loss as a number, or None. max_ns 0 "
         "is\n"
         "no limit. reset() is called before a step that would be number pass_steps + 1 since the last one,\n"
         "and stamped with 6; pass_done steps lie before this segment. An exception\n"
         "ends the segment and goes on to the caller; the stamps stay in the file."},
        {nullptr, nullptr, 0, nullptr},
    };
    static PyType_Slot slots[] = {
        {Py_tp_new, reinterpret_cast<void*>(recorder_new)},
        {Py_tp_dealloc, reinterpret_cast<void*>(Object::destroy)},
        {Py_tp_methods, methods},
        {Py_tp_doc,
         const_cast<char*>("Recorder(fd, capacity=0)\n\nThe recorder on an open file, which stays the "
                           "caller's. capacity 0 takes the file's own.")},
        {0, nullptr},
    };
    static PyType_Spec spec = {"_timetrial_runtime.Recorder", static_cast<int>(sizeof(Object)), 0,
                               Py_TPFLAGS_DEFAULT, slots};
    return PyType_FromSpec(&spec);
}

}  // namespace timetrial::runtime
