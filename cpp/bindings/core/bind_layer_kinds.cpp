// Kinds of layers that Python registers: what the core asks about a layer, and what a judge computes, are
// calls of the user's functions. The contract is in python/timetrial/core/own_kinds.py.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "attribute_value.h"
#include "bindings.h"
#include "network/layers.h"
#include "text/text.h"

namespace py = pybind11;

namespace timetrial::bindings {
namespace {

using Doubles = py::array_t<double, py::array::c_style | py::array::forcecast>;

// What holds objects of Python's is let go under its lock, whoever lets go of it last.
template <class Held>
std::shared_ptr<Held> shared(Held held) {
    return {new Held(std::move(held)), [](Held* last) {
                if (Py_IsInitialized() == 0) return;  // at the interpreter's end nothing is freed any more
                const py::gil_scoped_acquire acquire;
                delete last;
            }};
}

py::dict attribute_dict(const std::vector<Attribute>& attributes) {
    py::dict found;
    for (const Attribute& attribute : attributes) found[py::str(attribute.name)] = py::cast(attribute.value);
    return found;
}

// (name, attributes, shapes of the inputs, shape of the output): () while that is not known.
py::tuple layer_tuple(const LayerView& layer) {
    std::vector<Shape> inputs;
    for (const Node* input : layer.inputs) inputs.push_back(input->shape);
    return py::make_tuple(layer.node.name, attribute_dict(layer.node.attributes), inputs, layer.node.shape);
}

// Whole numbers of the ABI are doubles; the user's side knows by the rules which of them are whole.
py::dict attribute_dict(const tt_node& node) {
    py::dict found;
    for (std::uint32_t i = 0; i < node.n_attributes; ++i) {
        const tt_attribute& attribute = node.attributes[i];
        const py::str name(attribute.name);
        if (attribute.text != nullptr)
            found[name] = attribute.text;
        else if (attribute.numbers != nullptr)
            found[name] = std::vector<double>(attribute.numbers, attribute.numbers + attribute.n_numbers);
        else
            found[name] = attribute.number;
    }
    return found;
}

Shape shape_of(const tt_tensor& tensor) { return {tensor.shape, tensor.shape + tensor.rank}; }

std::size_t size_of(const tt_tensor& tensor) {
    return static_cast<std::size_t>(element_count(shape_of(tensor)));
}

// The judge's own memory, not to be written to.
py::array view(const tt_tensor& tensor, const double* values) {
    const py::capsule borrowed(values, [](void*) {});
    py::array_t<double> array(shape_of(tensor), values, borrowed);
    array.attr("setflags")(py::arg("write") = false);
    return array;
}

// The user's forward and backward, as C calls them.
class PythonDefinition {
  public:
    PythonDefinition(std::string kind, py::object functions)
        : kind_(std::move(kind)), functions_(std::move(functions)) {}

    tt_definition c_form() {
        return {sizeof(tt_definition), kind_.c_str(), this, &PythonDefinition::forward,
                &PythonDefinition::backward};
    }

  private:
    struct Call {
        const tt_network* network;
        const tt_node& node;
        const double* const* inputs;
        const double* const* parameters;

        const tt_tensor& input(std::uint32_t i) const { return network->nodes[node.inputs[i]].output; }
    };

    py::object layer(const Call& call) const {
        std::vector<Shape> shapes;
        for (std::uint32_t i = 0; i < call.node.n_inputs; ++i) shapes.push_back(shape_of(call.input(i)));
        return functions_.attr("layer")(call.node.name, attribute_dict(call.node), shapes,
                                        shape_of(call.node.output));
    }

    static py::list input_views(const Call& call) {
        py::list views;
        for (std::uint32_t i = 0; i < call.node.n_inputs; ++i)
            views.append(view(call.input(i), call.inputs[i]));
        return views;
    }

    static py::list parameter_views(const Call& call) {
        py::list views;
        for (std::uint32_t i = 0; i < call.node.n_parameters; ++i)
            views.append(view(call.node.parameters[i], call.parameters[i]));
        return views;
    }

    // What a function gave for a tensor, checked.
    Doubles checked(const std::string& what, const py::handle& given, const tt_tensor& tensor) const {
        const Doubles values = Doubles::ensure(given);
        if (!values) {
            PyErr_Clear();
            throw NetworkError(what + " is " + py::repr(given).cast<std::string>() +
                               "; expected an array of numbers");
        }
        const Shape shape(values.shape(), values.shape() + values.ndim());
        if (shape != shape_of(tensor))
            throw NetworkError(what + " has shape " + shape_text(shape) + "; expected " +
                               shape_text(shape_of(tensor)));
        return values;
    }

    void add_each(const Call& call, const char* what, const py::sequence& given, std::uint32_t count,
                  double* const* gradients, bool of_inputs) const {
        if (given.size() != count)
            throw NetworkError("backward gave " + std::to_string(given.size()) + " gradients of " + what +
                               "; expected " + std::to_string(count));
        for (std::uint32_t i = 0; i < count; ++i) {
            if (gradients[i] == nullptr) continue;  // of whole numbers
            const tt_tensor& tensor = of_inputs ? call.input(i) : call.node.parameters[i];
            const Doubles values =
                checked(std::string("the gradient of '") + tensor.name + "'", given[i], tensor);
            for (std::size_t k = 0; k < size_of(tensor); ++k) gradients[i][k] += values.data()[k];
        }
    }

    // Runs `work` under Python's lock; its exception in words.
    template <class Work>
    const char* guarded(const Call& call, Work&& work) {
        const py::gil_scoped_acquire acquire;
        try {
            work();
            return nullptr;
        } catch (const std::exception& error) {  // an exception of Python's too
            words_ = "layer '" + std::string(call.node.name) + "' (" + kind_ + "): " + error.what();
        }
        return words_.c_str();
    }

    static const char* forward(void* user, const tt_network* network, std::uint32_t node,
                               const double* const* inputs, const double* const* parameters, double* output) {
        auto* self = static_cast<PythonDefinition*>(user);
        const Call call{network, network->nodes[node], inputs, parameters};
        return self->guarded(call, [&] {
            const py::object given =
                self->functions_.attr("forward")(self->layer(call), input_views(call), parameter_views(call));
            const Doubles values = self->checked("what forward gave", given, call.node.output);
            std::copy_n(values.data(), size_of(call.node.output), output);
        });
    }

    static const char* backward(void* user, const tt_network* network, std::uint32_t node,
                                const double* const* inputs, const double* const* parameters,
                                const double* output, const double* output_gradient,
                                double* const* input_gradients, double* const* parameter_gradients) {
        auto* self = static_cast<PythonDefinition*>(user);
        const Call call{network, network->nodes[node], inputs, parameters};
        return self->guarded(call, [&] {
            const py::object given = self->functions_.attr("backward")(
                self->layer(call), input_views(call), parameter_views(call), view(call.node.output, output),
                view(call.node.output, output_gradient));
            const auto [of_inputs, of_parameters] = given.cast<std::pair<py::sequence, py::sequence>>();
            self->add_each(call, "inputs", of_inputs, call.node.n_inputs, input_gradients, true);
            self->add_each(call, "parameters", of_parameters, call.node.n_parameters, parameter_gradients,
                           false);
        });
    }

    std::string kind_;
    py::object functions_;
    std::string words_;
};

// Name, type, default, smallest number, words.
using RuleTuple = std::tuple<std::string, std::string, std::optional<py::object>, std::optional<double>,
                             std::vector<std::string>>;

AttributeRule attribute_rule(const RuleTuple& rule) {
    const auto& [name, type, otherwise, least, words] = rule;
    AttributeRule made{name, attribute_type(type)};
    if (otherwise) made.otherwise = attribute_value("the default of '" + name + "'", *otherwise);
    made.words = words;
    if (least) made.least = *least;
    return made;
}

// Name behind the node's, shape, initializer, its fans.
using ParameterTuple = std::tuple<std::string, Shape, std::string, std::int64_t, std::int64_t>;

// `functions` has layer(), shape(), parameters(), multiply_accumulates(), integers_below(), forward() and
// backward().
void register_kind(const std::string& name, bool several, bool reads_integers,
                   const std::vector<RuleTuple>& rules, const std::string& formula, const std::string& source,
                   const std::string& digest, py::object functions) {
    LayerKind kind;
    kind.name = name;
    kind.takes = several ? Takes::kSeveral : Takes::kOne;
    kind.backward_reads = BackwardReads::kInput;
    for (const RuleTuple& rule : rules) kind.attributes.push_back(attribute_rule(rule));
    kind.formula = formula;
    kind.source = source;

    const std::shared_ptr<py::object> held = shared<py::object>(functions);
    kind.infer_shape = [held](const LayerView& layer) {
        const py::gil_scoped_acquire acquire;
        return held->attr("shape")(held->attr("layer")(*layer_tuple(layer))).cast<Shape>();
    };
    kind.parameters = [held](const LayerView& layer) {
        const py::gil_scoped_acquire acquire;
        std::vector<Parameter> parameters;
        const py::object given = held->attr("parameters")(held->attr("layer")(*layer_tuple(layer)));
        for (auto& [word, shape, initializer, fan_in, fan_out] : given.cast<std::vector<ParameterTuple>>())
            parameters.push_back({layer.node.name + "." + word, shape, {initializer, fan_in, fan_out}});
        return parameters;
    };
    const auto whole = [held](const char* what) {
        return [held, what](const LayerView& layer) {
            const py::gil_scoped_acquire acquire;
            return held->attr(what)(held->attr("layer")(*layer_tuple(layer))).cast<std::int64_t>();
        };
    };
    kind.multiply_accumulates = whole("multiply_accumulates");
    if (reads_integers) kind.integers_below = whole("integers_below");

    auto definition = std::make_shared<Definition>();
    const std::shared_ptr<PythonDefinition> own = shared(PythonDefinition(name, std::move(functions)));
    definition->c_form = own->c_form();
    definition->digest = digest;
    definition->owner = own;
    kind.definition = definition;
    register_layer_kind(std::move(kind));
}

// Name, attributes, formula, source: for the documentation.
std::vector<std::array<std::string, 4>> layer_kind_words() {
    std::vector<std::array<std::string, 4>> words;
    for (const LayerKind& kind : layer_kinds())
        words.push_back({kind.name, attribute_words(kind.attributes), kind.formula, kind.source});
    return words;
}

}  // namespace

void register_layer_kinds(py::module_& module) {
    module.def("layer_kinds", &layer_kind_words);
    module.def("register_layer_kind", &register_kind, py::arg("name"), py::arg("several"),
               py::arg("reads_integers"), py::arg("attributes"), py::arg("formula"), py::arg("source"),
               py::arg("digest"), py::arg("functions"));
}

}  // namespace timetrial::bindings
