#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "attribute_value.h"
#include "bindings.h"
#include "network/layers.h"
#include "network/network.h"
#include "npy/npy.h"
#include "text/text.h"

namespace py = pybind11;

namespace timetrial::bindings {
namespace {

// Written out for the stub: list[dict[str, object]].
using NodeDicts = py::typing::List<py::typing::Dict<py::str, py::object>>;

std::string text_of(const std::string& where, py::handle value) {
    if (!py::isinstance<py::str>(value))
        throw NetworkError(where + " = " + py::repr(value).cast<std::string>() + "; expected a text");
    return value.cast<std::string>();
}

NodeSpec node_spec(const py::dict& node) {
    if (!node.contains("name"))
        throw NetworkError("node " + py::repr(node).cast<std::string>() + " has no 'name'");
    NodeSpec spec;
    spec.name = text_of("'name' of a node", node["name"]);
    const std::string where = "node '" + spec.name + "'";
    if (!node.contains("kind")) throw NetworkError(where + " has no 'kind'");
    for (const auto& [key_object, value] : node) {
        const std::string key = text_of("a key of " + where, key_object);
        if (key == "kind") {
            spec.kind = text_of("'kind' of " + where, value);
        } else if (key == "inputs") {
            if (!py::isinstance<py::list>(value) && !py::isinstance<py::tuple>(value))
                throw NetworkError("'inputs' of " + where + " = " + py::repr(value).cast<std::string>() +
                                   "; expected a list of names");
            spec.inputs.emplace();
            for (const py::handle input : value)
                spec.inputs->push_back(text_of("an input of " + where, input));
        } else if (key == "attributes") {
            if (!py::isinstance<py::dict>(value))
                throw NetworkError("'attributes' of " + where + " = " + py::repr(value).cast<std::string>() +
                                   "; expected a table");
            for (const auto& [name, attribute] : value.cast<py::dict>())
                spec.attributes[text_of("an attribute of " + where, name)] =
                    attribute_value(where + ": " + py::str(name).cast<std::string>(), attribute);
        } else if (key != "name" && key != "shape" && key != "dtype" && key != "role" &&
                   key != "parameters" && key != "definition" && key != "integers_below") {
            throw NetworkError(where + " has no '" + key + "'." +
                               nearest(key, {"name", "kind", "inputs", "attributes"}));
        }
    }
    return spec;
}

py::list shape_list(const Shape& shape) {
    py::list extents;
    for (const std::int64_t extent : shape) extents.append(extent);
    return extents;
}

py::dict parameter_dict(const Parameter& parameter) {
    py::dict entry;
    entry["name"] = parameter.name;
    entry["shape"] = shape_list(parameter.shape);
    entry["role"] = parameter.role == TT_STATE ? "state" : "parameter";
    entry["decays"] = parameter.decays;
    entry["initializer"] = parameter.initializer.name;
    entry["fan_in"] = parameter.initializer.fan_in;
    entry["fan_out"] = parameter.initializer.fan_out;
    return entry;
}

// The form of PROTOCOL.md.
NodeDicts node_dicts(const Network& network) {
    NodeDicts nodes;
    for (const Node& node : network.nodes()) {
        py::list inputs;
        for (const std::uint32_t index : node.inputs) inputs.append(network.node(index).name);
        py::dict attributes;
        for (const Attribute& attribute : node.attributes)
            attributes[py::str(attribute.name)] = py::cast(attribute.value);
        py::list parameters;
        for (const Parameter& parameter : node.parameters) parameters.append(parameter_dict(parameter));
        py::dict entry;
        entry["name"] = node.name;
        entry["kind"] = node.kind;
        entry["inputs"] = inputs;
        entry["attributes"] = attributes;
        entry["shape"] = shape_list(node.shape);
        if (node.is_input()) {
            entry["dtype"] = dtype_name(node.dtype);
            entry["role"] = role_word(node.role);
        }
        entry["parameters"] = parameters;
        if (node.definition) {
            entry["definition"] = node.definition->digest;
            entry["integers_below"] = node.integers_below;
        }
        nodes.append(entry);
    }
    return nodes;
}

// Name, dtype, shape of a sample, role.
using InputTuple = std::tuple<std::string, std::string, Shape, std::string>;

Network make_network(const py::typing::List<py::object>& nodes, std::int64_t batch_size,
                     const std::vector<InputTuple>& inputs) {
    std::vector<NodeSpec> specs;
    for (const py::handle node : nodes) {
        if (!py::isinstance<py::dict>(node))
            throw NetworkError("node " + py::repr(node).cast<std::string>() +
                               "; expected a table with name and kind");
        specs.push_back(node_spec(node.cast<py::dict>()));
    }
    std::vector<InputSpec> input_specs;
    for (const auto& [name, dtype, sample, role] : inputs)
        input_specs.push_back({name, parse_dtype(dtype), sample, input_role(role)});
    return {specs, batch_size, input_specs};
}

// By the names of the passes.
std::map<std::string, std::int64_t> work_by_pass(const PassWork& work) {
    return {{"forward", work.forward},
            {"backward_data", work.backward_data},
            {"backward_weights", work.backward_weights}};
}

}  // namespace

void register_network(py::module_& module) {
    py::class_<Network>(module, "Network")
        .def(py::init(&make_network), py::arg("nodes"), py::arg("batch_size"), py::arg("inputs"))
        .def("nodes", &node_dicts)
        .def("parameter_count", &Network::parameter_count)
        .def("activation_bytes", &Network::activation_bytes)
        .def("batch_size", &Network::batch_size)
        .def("output", [](const Network& network) { return network.node(network.output()).name; })
        .def("couples_batch", &Network::couples_batch)
        .def("check_training", &Network::check_training)
        .def("loss", [](const Network& network) { return network.node(network.loss()).name; })
        .def("output_loss", [](const Network& network) { return network.node(network.output_loss()).name; })
        .def(
            "values_below",
            [](const Network& network, const std::string& input) {
                return network.values_below(network.index_of(input));
            },
            py::arg("input"))
        .def(
            "values_from",
            [](const Network& network, const std::string& input) {
                return network.values_from(network.index_of(input));
            },
            py::arg("input"))
        .def(
            "multiply_accumulates",
            [](const Network& network, const std::string& node) {
                return work_by_pass(network.multiply_accumulates(network.index_of(node)));
            },
            py::arg("node"))
        .def(
            "bytes",
            [](const Network& network, const std::string& node) {
                return work_by_pass(network.bytes(network.index_of(node)));
            },
            py::arg("node"));
}

}  // namespace timetrial::bindings
