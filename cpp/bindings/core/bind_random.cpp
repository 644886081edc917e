#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "bindings.h"
#include "network/initial.h"
#include "random/draws.h"
#include "text/text.h"

namespace py = pybind11;

namespace timetrial::bindings {
namespace {

py::array_t<float> empty_f32(const std::vector<std::int64_t>& shape) {
    for (const std::int64_t extent : shape)
        if (extent < 0) throw std::invalid_argument("shape " + shape_text(shape) + " has a negative extent");
    element_count(shape);
    return py::array_t<float>(shape);
}

std::span<float> values_of(py::array_t<float>& array) {
    return {array.mutable_data(), static_cast<std::size_t>(array.size())};
}

py::array_t<float> draw_uniform(std::uint64_t seed, const std::string& stream,
                                const std::vector<std::int64_t>& shape, float low, float high) {
    py::array_t<float> array = empty_f32(shape);
    uniform(seed, stream, low, high, values_of(array));
    return array;
}

py::array_t<float> draw_initial_values(std::uint64_t seed, const std::string& parameter,
                                       const std::vector<std::int64_t>& shape, const std::string& initializer,
                                       std::int64_t fan_in, std::int64_t fan_out) {
    py::array_t<float> array = empty_f32(shape);
    draw_initial(seed, {parameter, shape, {initializer, fan_in, fan_out}}, values_of(array));
    return array;
}

py::array_t<std::int64_t> draw_permutation(std::uint64_t seed, const std::string& stream, std::int64_t n) {
    const std::vector<std::int64_t> order = permutation(seed, stream, n);
    return py::array_t<std::int64_t>(static_cast<py::ssize_t>(order.size()), order.data());
}

}  // namespace

void register_random(py::module_& module) {
    module.def("uniform", &draw_uniform, py::arg("seed"), py::arg("stream"), py::arg("shape"), py::arg("low"),
               py::arg("high"));
    module.def("initial_values", &draw_initial_values, py::arg("seed"), py::arg("parameter"),
               py::arg("shape"), py::arg("initializer"), py::arg("fan_in"), py::arg("fan_out"));
    module.def("initializer_names", &initializer_names);
    module.def("permutation", &draw_permutation, py::arg("seed"), py::arg("stream"), py::arg("n"));
}

}  // namespace timetrial::bindings
