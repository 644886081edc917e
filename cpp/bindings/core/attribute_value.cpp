#include "attribute_value.h"

#include <vector>

namespace py = pybind11;

namespace timetrial::bindings {
namespace {

bool is_number(py::handle value) {
    return PyFloat_Check(value.ptr()) != 0 || PyIndex_Check(value.ptr()) != 0;
}

}  // namespace

AttributeValue attribute_value(const std::string& where, py::handle value) {
    if (py::isinstance<py::bool_>(value)) return value.cast<bool>();
    if (is_number(value)) return py::float_(py::reinterpret_borrow<py::object>(value)).cast<double>();
    if (py::isinstance<py::str>(value)) return value.cast<std::string>();
    if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value)) {
        std::vector<double> numbers;
        for (const py::handle item : value) {
            if (!is_number(item)) break;
            numbers.push_back(py::float_(py::reinterpret_borrow<py::object>(item)).cast<double>());
        }
        if (numbers.size() == py::len(value)) return numbers;
    }
    throw NetworkError(where + " = " + py::repr(value).cast<std::string>() +
                       "; expected a number, true or false, a word or a list of numbers");
}

}  // namespace timetrial::bindings
