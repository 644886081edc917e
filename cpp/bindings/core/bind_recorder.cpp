#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "clock/clock.h"
#include "recorder/recorder.h"

namespace py = pybind11;

namespace timetrial::bindings {
namespace {

[[noreturn]] void refuse(int error) {
    switch (error) {
        case EBADF:
            raise_measurement_error("the recorder has no open window: call begin() first");
        case EBUSY:
            raise_measurement_error("the recorder has an open window already: call end() first");
        case EBADMSG:
            raise_input_error("the file is no recorder file: it does not start with " TT_RECORDER_MAGIC);
        case EPROTO:
            raise_input_error("the recorder file has another version than " +
                              std::to_string(TT_RECORDER_VERSION));
        case ENOSPC:
        case ENOMEM:
        case EFBIG:
            raise_measurement_error(std::string("no room for the recorder file: ") + std::strerror(error) +
                                    ". Free memory, or space where the file lies");
        default:
            raise_measurement_error(std::string("recorder: ") + std::strerror(error));
    }
}

void check(int error) {
    if (error != 0) refuse(error);
}

std::unique_ptr<Recorder> open_recorder(int fd, std::uint32_t capacity) {
    auto recorder = std::make_unique<Recorder>();
    const int error = recorder->open(fd, capacity);
    if (error == EINVAL)
        raise_input_error("capacity " + std::to_string(capacity) + ": a window holds 1 to " +
                          std::to_string(TT_WINDOW_CAPACITY) +
                          " stamps, and a file that exists keeps its own");
    check(error);
    return recorder;
}

void begin(Recorder& recorder, std::uint32_t window, std::uint32_t entries) {
    const int error = recorder.begin(window, entries);
    if (error == EINVAL)
        raise_input_error("entries = " + std::to_string(entries) + "; expected 1 to " +
                          std::to_string(recorder.capacity()) + ", the file's capacity");
    check(error);
}

std::pair<std::uint32_t, std::uint64_t> end(Recorder& recorder) {
    std::pair<std::uint32_t, std::uint64_t> result;
    check(recorder.end(&result.first, &result.second));
    return result;
}

void check_stamp(const Recorder& recorder, int error) {
    if (error == 0) return;
    if (error == ENOSPC)
        raise_measurement_error("the recorder is full: its window has room for " +
                                std::to_string(recorder.written()) + " stamps");
    if (error == EINVAL)
        raise_input_error("a boundary is a number from 0 to 255, a time one from 1 to 2^56 - 1 ns");
    refuse(error);
}

int create_file(std::uint32_t windows, std::uint32_t capacity) {
    const int fd = create_recorder_file(windows, capacity);
    if (fd == -EINVAL)
        raise_input_error(
            "windows = " + std::to_string(windows) + ", capacity = " + std::to_string(capacity) +
            "; expected at least 1 window and 1 to " + std::to_string(TT_WINDOW_CAPACITY) + " stamps");
    if (fd < 0) refuse(-fd);
    return fd;
}

template <typename T>
py::array_t<T> array_of(const std::vector<T>& values) {
    return py::array_t<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

std::pair<py::array_t<std::uint64_t>, py::array_t<double>> read(int fd, std::uint32_t window) {
    WindowContent content;
    const int error = read_window(fd, window, content);
    if (error == EINVAL) raise_input_error("the recorder file has no window " + std::to_string(window));
    check(error);
    return {array_of(content.stamps), array_of(content.losses)};
}

}  // namespace

void register_recorder(py::module_& module) {
    module.def("now_ns", &now_ns);
    module.def("clock_cost_ns", &clock_cost_ns);
    py::class_<Recorder>(module, "Recorder")
        .def(py::init(&open_recorder), py::arg("fd"), py::arg("capacity") = 0)
        .def("begin", &begin, py::arg("window"), py::arg("entries"))
        .def("end", &end)
        .def(
            "stamp",
            [](Recorder& recorder, std::uint32_t boundary) {
                check_stamp(recorder, recorder.stamp(boundary));
            },
            py::arg("boundary") = static_cast<std::uint32_t>(TT_STEP))
        .def(
            "stamp_at",
            [](Recorder& recorder, std::uint32_t boundary, std::uint64_t time_ns) {
                check_stamp(recorder, recorder.stamp_at(boundary, time_ns));
            },
            py::arg("boundary"), py::arg("time_ns"))
        .def_property_readonly("capacity", &Recorder::capacity);
    module.def("create_recorder_file", &create_file, py::arg("windows"), py::arg("capacity"));
    module.def("read_window", &read, py::arg("fd"), py::arg("window"));
    module.attr("WINDOW_CAPACITY") = static_cast<int>(TT_WINDOW_CAPACITY);
}

}  // namespace timetrial::bindings
