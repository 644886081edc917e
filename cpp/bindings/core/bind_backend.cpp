#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "backend_session.h"
#include "bindings.h"
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

void check_labels(const I64Array& labels, std::int64_t classes) {
    for (py::ssize_t i = 0; i < labels.size(); ++i)
        if (labels.data()[i] < 0 || labels.data()[i] >= classes)
            raise_input_error("label " + std::to_string(labels.data()[i]) + " at " + std::to_string(i) +
                              "; expected 0 to " + std::to_string(classes - 1));
}

void build(BackendSession& session, const Network& network, const std::string& optimizer,
           const OptimizerAttributes& attributes, const std::map<std::string, F32Array>& weights,
           std::uint32_t tasks, std::uint32_t dtype) {
    Weights copies;
    for (const auto& [name, array] : weights) {
        for (const Parameter& parameter : network.parameters())
            if (parameter.name == name) expect_shape("values of '" + name + "'", array, parameter.shape);
        copies[name] = {array.data(), array.data() + array.size()};
    }
    const py::gil_scoped_release release;
    session.build(network, optimizer, attributes, std::move(copies), tasks, dtype);
}

void load_images(BackendSession& session, const F32Array& images) {
    expect_shape("images", images, session.network().node(0).shape);
    std::copy_n(images.data(), images.size(), session.images().begin());
}

void load_labels(BackendSession& session, const I64Array& labels) {
    expect_shape("labels", labels, session.network().node(1).shape);
    check_labels(labels, session.network().classes());
    std::copy_n(labels.data(), labels.size(), session.labels().begin());
}

py::array_t<float> evaluate(BackendSession& session) {
    std::vector<float> prediction;
    {
        const py::gil_scoped_release release;
        prediction = session.evaluate();
    }
    return py::array_t<float>({session.network().batch_size(), session.network().classes()},
                              prediction.data());
}

std::map<std::string, std::string> facts(BackendSession& session) {
    std::map<std::string, std::string> found;
    for (Fact& fact : session.built_context().facts()) found[fact.name] = std::move(fact.value);
    return found;
}

std::vector<std::tuple<std::string, std::string, std::uint64_t>> profile(BackendSession& session) {
    std::vector<ProfiledTime> times;
    {
        const py::gil_scoped_release release;
        times = session.profile();
    }
    std::vector<std::tuple<std::string, std::string, std::uint64_t>> found;
    for (ProfiledTime& time : times)
        found.emplace_back(std::move(time.node), tt_direction_word(time.direction), time.ns);
    return found;
}

py::array read_tensor(PluginContext& context, const TensorInfo& info) {
    const char* type = info.dtype == TT_F32 ? "f4" : info.dtype == TT_F64 ? "f8" : "i8";
    py::array values(py::dtype(type), info.shape);
    context.read_tensor(info, values.mutable_data());
    return values;
}

std::map<std::string, py::array> tensors(BackendSession& session, std::uint32_t role) {
    PluginContext& context = session.built_context();
    std::map<std::string, py::array> found;
    for (const TensorInfo& info : context.tensors(static_cast<tt_role>(role)))
        found[info.name] = read_tensor(context, info);
    return found;
}

void write_tensor(BackendSession& session, std::uint32_t role, const std::string& name,
                  const py::array& values) {
    PluginContext& context = session.built_context();
    std::vector<std::string> known;
    for (const TensorInfo& info : context.tensors(static_cast<tt_role>(role))) {
        known.push_back(info.name);
        if (info.name != name) continue;
        expect_shape("values of '" + name + "'", values, info.shape);
        const char* type = info.dtype == TT_F32 ? "f4" : info.dtype == TT_F64 ? "f8" : "i8";
        const py::array copy = values.attr("astype")(type, py::arg("order") = "C");
        context.write_tensor(info, copy.data());
        return;
    }
    raise_input_error("the backend has no tensor '" + name + "' of that role." + nearest(name, known));
}

// A data set in an order; keeps its arrays.
class Stream {
  public:
    Stream(BackendSession& session, F32Array images, I64Array labels, I64Array order)
        : images_(std::move(images)), labels_(std::move(labels)), order_(std::move(order)) {
        const Network& network = session.network();
        Shape expected = network.node(0).shape;
        expected[0] = images_.ndim() > 0 ? images_.shape(0) : 0;
        expect_shape("images", images_, expected);
        expect_shape("labels", labels_, {expected[0]});
        check_labels(labels_, network.classes());
        if (order_.ndim() != 2 || order_.shape(0) < 1 || order_.shape(1) != network.batch_size())
            raise_input_error("the order has shape " + shape_text(shape_of(order_)) +
                              "; expected (batches, " + std::to_string(network.batch_size()) + ")");
        const auto entries = static_cast<std::size_t>(order_.size());
        if (const std::int64_t at = first_index_outside(order_.data(), entries, expected[0]); at >= 0)
            raise_input_error("the order has " + std::to_string(order_.data()[at]) + " at " +
                              std::to_string(at) + "; expected 0 to " + std::to_string(expected[0] - 1));
        const std::size_t image_bytes = session.images().size() * sizeof(float) / session.labels().size();
        gather_ = {{{images_.data(), session.images().data(), image_bytes},
                    {labels_.data(), session.labels().data(), sizeof(std::int64_t)}},
                   order_.data(),
                   static_cast<std::size_t>(order_.shape(0)),
                   session.labels().size()};
    }
    Gather& gather() { return gather_; }

  private:
    F32Array images_;
    I64Array labels_;
    I64Array order_;
    Gather gather_;
};

std::map<std::string, std::uint64_t> run(BackendSession& session, Recorder& recorder, std::uint32_t task,
                                         bool in_parts, std::optional<Stream*> stream,
                                         std::uint32_t max_steps, std::uint64_t max_ns) {
    const tt_segment segment = session.run(recorder, static_cast<tt_task>(task), in_parts,
                                           stream ? &(*stream)->gather() : nullptr, max_steps, max_ns);
    return {{"steps", segment.steps}, {"stamps", segment.stamps}, {"window_bytes", segment.window_bytes}};
}

std::map<std::string, std::vector<std::string>> description_lists(const BackendSession& session) {
    const tt_description& is = session.description();
    return {{"devices", word_list(is.devices)},
            {"dtypes", word_list(is.dtypes)},
            {"layers", word_list(is.layers)},
            {"optimizers", word_list(is.optimizers)},
            {"settings", word_list(is.settings)}};
}

std::map<std::string, std::string> description_words(const BackendSession& session) {
    const tt_description& is = session.description();
    return {{"name", is.name}, {"version", is.version}, {"library", is.library}, {"isa", is.isa}};
}

std::map<std::string, std::uint32_t> description_masks(const BackendSession& session) {
    const tt_description& is = session.description();
    return {{"tasks", is.tasks}, {"parts", is.parts}, {"flags", is.flags}};
}

}  // namespace

void register_backend(py::module_& module) {
    using release_gil = py::call_guard<py::gil_scoped_release>;
    // Both classes before the functions whose signatures name them.
    py::class_<BackendSession> session_class(module, "BackendSession");
    py::class_<Stream>(module, "Stream")
        .def(py::init<BackendSession&, F32Array, I64Array, I64Array>(), py::arg("session"), py::arg("images"),
             py::arg("labels"), py::arg("order"), py::keep_alive<1, 2>())
        .def("rewind", [](Stream& stream) { stream.gather().next = 0; });
    session_class
        .def(py::init<const std::string&, const std::vector<std::string>&>(), py::arg("path"),
             py::arg("preload"))
        .def("description_words", &description_words)
        .def("description_masks", &description_masks)
        .def("description_lists", &description_lists)
        .def(
            "configure",
            [](BackendSession& session, const std::string& name, const std::string& value) {
                session.context().configure(name, value);
            },
            py::arg("name"), py::arg("value"))
        .def(
            "read_setting",
            [](BackendSession& session, const std::string& name) {
                const SettingReading reading = session.context().read_setting(name);
                return std::pair(reading.effective, reading.how_read);
            },
            py::arg("name"))
        .def("build", &build, py::arg("network"), py::arg("optimizer"), py::arg("attributes"),
             py::arg("weights"), py::arg("tasks"), py::arg("dtype"))
        .def("load_images", &load_images, py::arg("images"))
        .def("load_labels", &load_labels, py::arg("labels"))
        .def(
            "step",
            [](BackendSession& session, std::uint32_t task) {
                return session.step(static_cast<tt_task>(task));
            },
            py::arg("task"), release_gil())
        .def(
            "part",
            [](BackendSession& session, std::uint32_t part) {
                return session.part(static_cast<tt_part>(part));
            },
            py::arg("part"), release_gil())
        .def("evaluate", &evaluate)
        .def("facts", &facts)
        .def("profile", &profile)
        .def("reset", [](BackendSession& session) { session.built_context().reset(); })
        .def("tensors", &tensors, py::arg("role"))
        .def("write_tensor", &write_tensor, py::arg("role"), py::arg("name"), py::arg("values"))
        .def("run", &run, py::arg("recorder"), py::arg("task"), py::arg("in_parts"), py::arg("stream"),
             py::arg("max_steps"), py::arg("max_ns"), release_gil());
}

}  // namespace timetrial::bindings
