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

// Name, attributes, shapes of the inputs, shape of the output (() while that is not known); not at work.
py::tuple layer_tuple(const LayerView& layer) {
    std::vector<Shape> inputs;
    for (const Node* input : layer.inputs) inputs.push_back(input->shape);
    return py::make_tuple(layer.node.name, attribute_dict(layer.node.attributes), inputs, layer.node.shape,
                          false, py::list());
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

// The user's functions, as C calls them.
class PythonDefinition {
  public:
    PythonDefinition(std::string kind, py::object functions)
        : kind_(std::move(kind)), functions_(std::move(functions)) {}

    tt_definition c_form() {
        return {sizeof(tt_definition), kind_.c_str(), this, forward, backward, next_states};
    }

  private:
    // What a call is about.
    struct View {
        const tt_layer_call& call;
        const tt_node& node = call.network->nodes[call.node];

        const tt_tensor& input(std::uint32_t i) const { return call.network->nodes[node.inputs[i]].output; }
        const tt_tensor& parameter(std::uint32_t i) const { return node.parameters[i]; }
        // Of its parameters, how many are trained; the others are states.
        std::uint32_t trained() const {
            std::uint32_t count = 0;
            while (count < node.n_parameters && node.parameters[count].role == TT_PARAMETER) ++count;
            return count;
        }
        py::list inputs() const {
            py::list views;
            for (std::uint32_t i = 0; i < node.n_inputs; ++i) views.append(view(input(i), call.inputs[i]));
            return views;
        }
        py::list parameters(std::uint32_t from, std::uint32_t to) const {
            py::list views;
            for (std::uint32_t i = from; i < to; ++i) views.append(view(parameter(i), call.parameters[i]));
            return views;
        }
    };

    // The layer, its inputs and its parameters: what every function of a definition is given.
    py::tuple arguments(const View& of) const {
        std::vector<Shape> shapes;
        for (std::uint32_t i = 0; i < of.node.n_inputs; ++i) shapes.push_back(shape_of(of.input(i)));
        const py::object layer = functions_.attr("layer")(of.node.name, attribute_dict(of.node), shapes,
                                                          shape_of(of.node.output), of.call.training != 0,
                                                          of.parameters(of.trained(), of.node.n_parameters));
        return py::make_tuple(layer, of.inputs(), of.parameters(0, of.trained()));
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

    static void expect_count(const char* what, const py::sequence& given, std::size_t count) {
        if (given.size() != count)
            throw NetworkError(std::string(what) + ": " + std::to_string(given.size()) +
                               " were given; expected " + std::to_string(count));
    }

    void add(const py::handle& given, const tt_tensor& tensor, double* gradient) const {
        if (gradient == nullptr) return;  // of whole numbers, or a mask
        const Doubles values = checked(std::string("the gradient of '") + tensor.name + "'", given, tensor);
        for (std::size_t k = 0; k < size_of(tensor); ++k) gradient[k] += values.data()[k];
    }

    // Runs `work` under Python's lock; its exception in words.
    template <class Work>
    static const char* guarded(void* user, const tt_layer_call* call, Work&& work) {
        auto* self = static_cast<PythonDefinition*>(user);
        const View of{*call};
        const py::gil_scoped_acquire acquire;
        try {
            work(*self, of);
            return nullptr;
        } catch (const std::exception& error) {  // an exception of Python's too
            self->words_ = "layer '" + std::string(of.node.name) + "' (" + self->kind_ + "): " + error.what();
        }
        return self->words_.c_str();
    }

    static const char* forward(void* user, const tt_layer_call* call, double* output) {
        return guarded(user, call, [&](const PythonDefinition& self, const View& of) {
            const py::object given = self.functions_.attr("forward")(*self.arguments(of));
            const Doubles values = self.checked("what forward gave", given, of.node.output);
            std::copy_n(values.data(), size_of(of.node.output), output);
        });
    }

    static const char* backward(void* user, const tt_layer_call* call, const double* output,
                                const double* output_gradient, double* const* input_gradients,
                                double* const* parameter_gradients) {
        return guarded(user, call, [&](const PythonDefinition& self, const View& of) {
            const py::object given = self.functions_.attr("backward")(
                *self.arguments(of), view(of.node.output, output), view(of.node.output, output_gradient));
            const auto [of_inputs, of_parameters] = given.cast<std::pair<py::sequence, py::sequence>>();
            expect_count("gradients of inputs", of_inputs, of.node.n_inputs);
            expect_count("gradients of parameters", of_parameters, of.trained());
            for (std::uint32_t i = 0; i < of.node.n_inputs; ++i)
                self.add(of_inputs[i], of.input(i), input_gradients[i]);
            for (std::uint32_t i = 0; i < of.trained(); ++i)
                self.add(of_parameters[i], of.parameter(i), parameter_gradients[i]);
        });
    }

    static const char* next_states(void* user, const tt_layer_call* call, double* const* states) {
        return guarded(user, call, [&](const PythonDefinition& self, const View& of) {
            const py::object given = self.functions_.attr("next_states")(*self.arguments(of));
            const auto found = given.cast<py::sequence>();
            expect_count("states", found, of.node.n_parameters - of.trained());
            for (std::uint32_t i = of.trained(); i < of.node.n_parameters; ++i) {
                const tt_tensor& state = of.parameter(i);
                const std::size_t number = i - of.trained();
                const Doubles values =
                    self.checked(std::string("the state '") + state.name + "'", found[number], state);
                std::copy_n(values.data(), size_of(state), states[number]);
            }
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

// Name behind the node's, shape, initializer, its fans, whether it is a state, whether it decays.
using ParameterTuple = std::tuple<std::string, Shape, std::string, std::int64_t, std::int64_t, bool, bool>;

// `functions`: _Functions in own_kinds.py.
void register_kind(const std::string& name, bool several, bool reads_integers,
                   const std::vector<RuleTuple>& rules, const std::vector<double>& kinks,
                   const std::string& mask_rate, bool couples_batch, const std::string& formula,
                   const std::string& source, const std::string& digest, py::object functions) {
    LayerKind kind;
    kind.name = name;
    kind.takes = several ? Takes::kSeveral : Takes::kOne;
    kind.backward_reads = BackwardReads::kInput;
    for (const RuleTuple& rule : rules) kind.attributes.push_back(attribute_rule(rule));
    kind.formula = formula;
    kind.source = source;
    kind.kinks = kinks;
    kind.mask_rate = mask_rate;
    kind.couples_batch = couples_batch;

    const std::shared_ptr<py::object> held = shared<py::object>(functions);
    kind.infer_shape = [held](const LayerView& layer) {
        const py::gil_scoped_acquire acquire;
        return held->attr("shape")(held->attr("layer")(*layer_tuple(layer))).cast<Shape>();
    };
    kind.parameters = [held](const LayerView& layer) {
        const py::gil_scoped_acquire acquire;
        std::vector<Parameter> parameters;
        const py::object given = held->attr("parameters")(held->attr("layer")(*layer_tuple(layer)));
        for (const auto& [word, shape, initializer, fan_in, fan_out, is_state, decays] :
             given.cast<std::vector<ParameterTuple>>())
            parameters.push_back({layer.node.name + "." + word,
                                  shape,
                                  {initializer, fan_in, fan_out},
                                  is_state ? TT_STATE : TT_PARAMETER,
                                  decays});
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

// In the order of LayerTraits in network.py; nothing of a kind that is not known here.
std::optional<std::tuple<std::vector<double>, bool, bool, bool, std::string, bool, bool>> layer_traits(
    const std::string& name) {
    const LayerKind* kind = find_layer_kind(name);
    if (kind == nullptr) return std::nullopt;
    return std::tuple{kind->kinks,     kind->picks_largest, kind->moves_nothing, kind->keeps_places,
                      kind->mask_rate, kind->couples_batch, kind->carries_state};
}

}  // namespace

void register_layer_kinds(py::module_& module) {
    module.def("layer_kinds", &layer_kind_words);
    module.def("layer_traits", &layer_traits, py::arg("name"));
    module.def("register_layer_kind", &register_kind, py::arg("name"), py::arg("several"),
               py::arg("reads_integers"), py::arg("attributes"), py::arg("kinks"), py::arg("mask_rate"),
               py::arg("couples_batch"), py::arg("formula"), py::arg("source"), py::arg("digest"),
               py::arg("functions"));
}

}  // namespace timetrial::bindings
