#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "backend_session.h"
#include "bindings.h"
#include "npy/npy.h"
#include "text/text.h"

namespace py = pybind11;

namespace timetrial::bindings {
namespace {

using F32Array = py::array_t<float, py::array::c_style | py::array::forcecast>;
using I64Array = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>;

Shape shape_of(const py::array& array) { return {array.shape(), array.shape() + array.ndim()}; }

void expect_shape(const std::string& what, const py::array& array, const Shape& expected) {
    if (shape_of(array) != expected)
        raise_input_error(what + " have shape " + shape_text(shape_of(array)) + "; expected " +
                          shape_text(expected));
}

void build(BackendSession& backend, const Network& network, const std::string& optimizer,
           const std::map<std::string, double>& attributes, const std::vector<double>& rates,
           const std::map<std::string, F32Array>& weights, std::uint32_t tasks, std::uint32_t dtype) {
    Weights copies;
    for (const auto& [name, array] : weights) {
        for (const Parameter& parameter : network.parameters())
            if (parameter.name == name) expect_shape("values of '" + name + "'", array, parameter.shape);
        copies[name] = {array.data(), array.data() + array.size()};
    }
    const py::gil_scoped_release release;
    backend.build(network, {optimizer, attributes, rates}, std::move(copies), tasks,
                  static_cast<tt_dtype>(dtype));
}

const char* type_code(std::uint32_t dtype) { return dtype == TT_F32 ? "f4" : dtype == TT_F64 ? "f8" : "i8"; }

py::array as_type(const py::handle& values, std::uint32_t dtype) {
    return py::array(
        values.attr("astype")(type_code(dtype), py::arg("order") = "C", py::arg("copy") = false));
}

// `below` 0: they are not looked up.
void check_below(const std::string& name, const void* values, std::size_t n, std::int64_t least,
                 std::int64_t below) {
    if (below == 0) return;
    const auto* integers = static_cast<const std::int64_t*>(values);
    const std::int64_t at = first_index_outside(integers, n, below, least);
    if (at >= 0)
        raise_input_error("'" + name + "' have " + std::to_string(integers[at]) + " at " +
                          std::to_string(at) + "; expected " + std::to_string(least) + " to " +
                          std::to_string(below - 1));
}

// Tensors of the batch, by name; those that are not given stay.
void load_batch(BackendSession& backend, const std::map<std::string, py::array>& tensors) {
    Session& session = backend.session();
    const Network& network = session.network();
    for (const auto& [name, values] : tensors) {
        const std::uint32_t index = network.index_of(name);
        const Node& node = network.node(index);
        if (!node.is_input()) raise_input_error("'" + name + "' is a layer of the network, no input");
        const tt_tensor& tensor = session.batch().tensors()[index];
        expect_shape("'" + name + "'", values, node.shape);
        const py::array copy = as_type(values, tensor.dtype);
        const auto n = static_cast<std::size_t>(copy.size());
        check_below(name, copy.data(), n, network.values_from(index), network.values_below(index));
        std::memcpy(tensor.data, copy.data(), n * dtype_bytes(static_cast<tt_dtype>(tensor.dtype)));
    }
}

py::array_t<float> evaluate(BackendSession& backend) {
    std::vector<float> prediction;
    {
        const py::gil_scoped_release release;
        prediction = backend.session().predict();
    }
    const Network& network = backend.session().network();
    return py::array_t<float>(network.node(network.output()).shape, prediction.data());
}

std::map<std::string, std::string> facts(BackendSession& backend) {
    backend.session().network();  // says so where there is none yet
    std::map<std::string, std::string> found;
    for (Fact& fact : backend.session().context().facts()) found[fact.name] = std::move(fact.value);
    return found;
}

std::vector<std::tuple<std::string, std::string, std::uint64_t>> profile(BackendSession& backend) {
    std::vector<ProfiledTime> times;
    {
        const py::gil_scoped_release release;
        times = backend.session().profile();
    }
    std::vector<std::tuple<std::string, std::string, std::uint64_t>> found;
    for (ProfiledTime& time : times)
        found.emplace_back(std::move(time.node), tt_direction_word(time.direction), time.ns);
    return found;
}

std::map<std::string, py::array> tensors(BackendSession& backend, std::uint32_t role) {
    std::map<std::string, py::array> found;
    for (const TensorInfo& info : backend.session().tensors(static_cast<tt_role>(role))) {
        py::array values(py::dtype(type_code(info.dtype)), info.shape);
        backend.session().context().read_tensor(info, values.mutable_data());
        found[info.name] = values;
    }
    return found;
}

// By name; the list of all is asked for once, since of hundreds it takes as long as writing one.
void write_tensors(BackendSession& backend, std::uint32_t role,
                   const std::map<std::string, py::array>& values) {
    if (values.empty()) return;  // a backend need not know the role
    std::map<std::string, TensorInfo> known;
    std::vector<std::string> names;
    for (TensorInfo& info : backend.session().tensors(static_cast<tt_role>(role))) {
        names.push_back(info.name);
        known.emplace(names.back(), std::move(info));
    }
    for (const auto& [name, array] : values) {
        const auto found = known.find(name);
        if (found == known.end())
            raise_input_error("the backend has no tensor '" + name + "' of that role." +
                              nearest(name, names));
        expect_shape("values of '" + name + "'", array, found->second.shape);
    }
    for (const auto& [name, array] : values) {
        const TensorInfo& info = known.at(name);
        const py::array copy = as_type(array, info.dtype);
        backend.session().context().write_tensor(info, copy.data());
    }
}

// A data set in an order; keeps its arrays.
class ArrayStream {
  public:
    ArrayStream(BackendSession& backend, const std::map<std::string, py::array>& arrays, I64Array order)
        : order_(std::move(order)) {
        const Session& session = backend.session();
        std::map<std::string, Samples> samples;
        for (const tt_tensor& tensor : session.batch().tensors()) {
            const auto found = arrays.find(tensor.name);
            if (found == arrays.end()) continue;
            arrays_.push_back(as_type(found->second, tensor.dtype));
            samples.emplace(tensor.name,
                            samples_of(tensor.name, static_cast<tt_dtype>(tensor.dtype), arrays_.back()));
        }
        for (const auto& [name, array] : arrays)  // of no input: refused by name
            if (!samples.contains(name)) samples.emplace(name, samples_of(name, TT_F32, array));
        const Samples order_samples{"the order", TT_I64, shape_of(order_), order_.data()};
        stream_.emplace(session.network(), session.batch(), samples, &order_samples, true);
        stream_->check();
    }
    Gather& gather() { return stream_->gather(); }

  private:
    static Samples samples_of(const std::string& name, tt_dtype dtype, const py::array& array) {
        return {"'" + name + "'", dtype, shape_of(array), array.data()};
    }

    std::vector<py::array> arrays_;
    I64Array order_;
    std::optional<Stream> stream_;
};

std::map<std::string, std::uint64_t> run(BackendSession& backend, Recorder& recorder, std::uint32_t task,
                                         bool in_parts, std::optional<ArrayStream*> stream,
                                         std::uint32_t max_steps, std::uint64_t max_ns) {
    if (in_parts && (task != TT_TRAIN || !backend.session().has_parts()))
        throw BackendError(TT_UNSUPPORTED, task == TT_TRAIN ? "the backend has fused steps only"
                                                            : "only a train step has parts");
    SegmentSpec asked;
    asked.task = static_cast<tt_task>(task);
    asked.in_parts = in_parts;
    asked.gather = stream ? &(*stream)->gather() : nullptr;
    asked.max_steps = max_steps;
    asked.max_ns = max_ns;
    Passes none;
    const tt_segment segment = backend.session().run(recorder, asked, none);
    return {{"steps", segment.steps}, {"stamps", segment.stamps}, {"window_bytes", segment.window_bytes}};
}

std::map<std::string, std::vector<std::string>> description_lists(const BackendSession& backend) {
    const tt_description& is = backend.session().description();
    return {{"devices", word_list(is.devices)},
            {"dtypes", word_list(is.dtypes)},
            {"layers", word_list(is.layers)},
            {"optimizers", word_list(is.optimizers)},
            {"settings", word_list(is.settings)}};
}

std::map<std::string, std::string> description_words(const BackendSession& backend) {
    const tt_description& is = backend.session().description();
    return {{"name", is.name}, {"version", is.version}, {"library", is.library}, {"isa", is.isa}};
}

std::map<std::string, std::uint32_t> description_masks(const BackendSession& backend) {
    const tt_description& is = backend.session().description();
    return {{"tasks", is.tasks}, {"parts", is.parts}, {"flags", is.flags}};
}

}  // namespace

void register_backend(py::module_& module) {
    using release_gil = py::call_guard<py::gil_scoped_release>;
    // Both classes before the functions whose signatures name them.
    py::class_<BackendSession> session_class(module, "BackendSession");
    py::class_<ArrayStream>(module, "Stream")
        .def(py::init<BackendSession&, const std::map<std::string, py::array>&, I64Array>(),
             py::arg("session"), py::arg("arrays"), py::arg("order"), py::keep_alive<1, 2>())
        .def("rewind", [](ArrayStream& stream) { stream.gather().next = 0; });
    session_class
        .def(py::init<const std::string&, const std::vector<std::string>&>(), py::arg("path"),
             py::arg("preload"))
        .def("description_words", &description_words)
        .def("description_masks", &description_masks)
        .def("description_lists", &description_lists)
        .def(
            "configure",
            [](BackendSession& backend, const std::string& name, const std::string& value) {
                backend.session().context().configure(name, value);
            },
            py::arg("name"), py::arg("value"))
        .def(
            "read_setting",
            [](BackendSession& backend, const std::string& name) {
                const SettingReading reading = backend.session().context().read_setting(name);
                return std::pair(reading.effective, reading.how_read);
            },
            py::arg("name"))
        .def("build", &build, py::arg("network"), py::arg("optimizer"), py::arg("attributes"),
             py::arg("rates"), py::arg("weights"), py::arg("tasks"), py::arg("dtype"))
        .def("load_batch", &load_batch, py::arg("tensors"))
        .def(
            "step",
            [](BackendSession& backend, std::uint32_t task) {
                return backend.session().step(static_cast<tt_task>(task));
            },
            py::arg("task"), release_gil())
        .def(
            "part",
            [](BackendSession& backend, std::uint32_t part) {
                return backend.session().part(static_cast<tt_part>(part));
            },
            py::arg("part"), release_gil())
        .def("evaluate", &evaluate)
        .def("facts", &facts)
        .def("profile", &profile)
        .def("reset", [](BackendSession& backend) { backend.session().reset(); })
        .def("tensors", &tensors, py::arg("role"))
        .def("write_tensors", &write_tensors, py::arg("role"), py::arg("values"))
        .def("run", &run, py::arg("recorder"), py::arg("task"), py::arg("in_parts"), py::arg("stream"),
             py::arg("max_steps"), py::arg("max_ns"), release_gil());
}

}  // namespace timetrial::bindings
