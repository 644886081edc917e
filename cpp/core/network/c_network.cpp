#include "network/c_network.h"

#include <algorithm>

#include "network/layers.h"
#include "text/text.h"

namespace timetrial {
namespace {

// Points into `attribute`.
tt_attribute c_attribute(const Attribute& attribute) {
    tt_attribute c{};
    c.size = sizeof c;
    c.name = attribute.name.c_str();
    if (const auto* whole = std::get_if<std::int64_t>(&attribute.value)) {
        c.number = static_cast<double>(*whole);
    } else if (const auto* real = std::get_if<double>(&attribute.value)) {
        c.number = *real;
    } else if (const auto* word = std::get_if<std::string>(&attribute.value)) {
        c.text = word->c_str();
    } else {
        static constexpr double none = 0;  // an empty list is a list too
        const auto& numbers = std::get<std::vector<double>>(attribute.value);
        c.n_numbers = numbers.size();
        c.numbers = numbers.empty() ? &none : numbers.data();
    }
    return c;
}

}  // namespace

tt_tensor c_tensor(const std::string& name, tt_role role, tt_dtype dtype, const Shape& shape, void* data) {
    if (shape.size() > TT_MAX_RANK)
        throw NetworkError("tensor '" + name + "' of shape " + shape_text(shape) +
                           " has more than 6 extents");
    tt_tensor tensor{};
    tensor.size = sizeof tensor;
    tensor.dtype = dtype;
    tensor.role = role;
    tensor.rank = static_cast<std::uint32_t>(shape.size());
    std::copy(shape.begin(), shape.end(), tensor.shape);
    tensor.name = name.c_str();
    tensor.data = data;
    return tensor;
}

CNetwork::CNetwork(const Network& network, const ParameterValues& values) : arrays_(network.nodes().size()) {
    for (std::size_t index = 0; index < arrays_.size(); ++index) {
        const Node& node = network.nodes()[index];
        Arrays& arrays = arrays_[index];
        for (const Attribute& attribute : node.attributes)
            arrays.attributes.push_back(c_attribute(attribute));
        for (const Parameter& parameter : node.parameters) {
            const auto found = values.find(parameter.name);
            // The ABI has one tensor struct for reading and writing; a backend only reads initial values.
            auto* data = found == values.end() ? nullptr : const_cast<float*>(found->second);
            arrays.parameters.push_back(
                c_tensor(parameter.name, parameter.role, TT_F32, parameter.shape, data));
            arrays.flags.push_back(parameter.decays ? 0 : std::uint32_t{TT_UNDECAYED});
        }
        tt_node entry{};
        entry.size = sizeof entry;
        entry.name = node.name.c_str();
        entry.kind = node.kind.c_str();
        entry.n_inputs = static_cast<std::uint32_t>(node.inputs.size());
        entry.inputs = node.inputs.data();
        entry.n_attributes = static_cast<std::uint32_t>(arrays.attributes.size());
        entry.attributes = arrays.attributes.data();
        entry.output = c_tensor(node.name, node.role, node.dtype, node.shape, nullptr);
        entry.n_parameters = static_cast<std::uint32_t>(arrays.parameters.size());
        entry.parameters = arrays.parameters.data();
        entry.parameter_flags = arrays.flags.data();
        nodes_.push_back(entry);
        const auto has_its_kind = [&](const tt_definition& one) { return node.kind == one.kind; };
        if (node.definition && std::none_of(definitions_.begin(), definitions_.end(), has_its_kind))
            definitions_.push_back(node.definition->c_form);
    }
    network_.size = sizeof network_;
    network_.n_nodes = static_cast<std::uint32_t>(nodes_.size());
    network_.nodes = nodes_.data();
    network_.output = network.output();
    network_.loss = network.loss();
}

}  // namespace timetrial
