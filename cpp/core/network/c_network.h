// A network as the plain structs of timetrial/backend.h, for plug-ins.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "network/network.h"

namespace timetrial {

// Initial values (f32) by parameter name. A parameter that is not there gets NULL: backends that read no
// data.
using ParameterValues = std::map<std::string, const float*>;

// Owns the structs; the network and the values must outlive it.
class CNetwork {
  public:
    CNetwork(const Network& network, const ParameterValues& values);
    CNetwork(const CNetwork&) = delete;
    CNetwork& operator=(const CNetwork&) = delete;

    const tt_network* get() const { return &network_; }
    // Of the registered kinds among its nodes.
    const std::vector<tt_definition>& definitions() const { return definitions_; }

  private:
    struct Arrays {
        std::vector<tt_attribute> attributes;
        std::vector<tt_tensor> parameters;
        std::vector<std::uint32_t> flags;  // of the parameters
    };
    std::vector<Arrays> arrays_;
    std::vector<tt_definition> definitions_;
    std::vector<tt_node> nodes_;
    tt_network network_{};
};

// A dense tensor in the C form. At most TT_MAX_RANK extents.
tt_tensor c_tensor(const std::string& name, tt_role role, tt_dtype dtype, const Shape& shape, void* data);

}  // namespace timetrial
