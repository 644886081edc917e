#include "network/c_network.h"

#include <algorithm>

#include "text/text.h"

namespace timetrial {

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
            arrays.attributes.push_back({sizeof(tt_attribute), attribute.name.c_str(),
                                         static_cast<double>(attribute.value), nullptr});
        for (const Parameter& parameter : node.parameters) {
            const auto found = values.find(parameter.name);
            // The ABI has one tensor struct for reading and writing; a backend only reads initial values.
            auto* data = found == values.end() ? nullptr : const_cast<float*>(found->second);
            arrays.parameters.push_back(
                c_tensor(parameter.name, TT_PARAMETER, TT_F32, parameter.shape, data));
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
        nodes_.push_back(entry);
    }
    network_.size = sizeof network_;
    network_.n_nodes = static_cast<std::uint32_t>(nodes_.size());
    network_.nodes = nodes_.data();
    network_.output = network.output();
    network_.loss = network.loss();
}

}  // namespace timetrial
