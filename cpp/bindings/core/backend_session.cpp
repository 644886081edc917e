#include "backend_session.h"

#include <stdexcept>
#include <utility>

#include "text/text.h"

namespace timetrial::bindings {
namespace {

Plugin open_plugin(const std::string& path, const std::vector<std::string>& preload) {
    for (const std::string& library : preload) preload_library(library);
    return Plugin(path);
}

}  // namespace

BackendSession::BackendSession(const std::string& path, const std::vector<std::string>& preload)
    : session_(open_plugin(path, preload)) {}

void BackendSession::build(const Network& network, OptimizerSpec optimizer, Weights weights,
                           std::uint32_t tasks, tt_dtype dtype) {
    for (const Parameter& parameter : network.parameters()) {
        const auto found = weights.find(parameter.name);
        if (found != weights.end() &&
            found->second.size() != static_cast<std::size_t>(element_count(parameter.shape)))
            throw std::invalid_argument("weight '" + parameter.name + "' has " +
                                        std::to_string(found->second.size()) + " numbers; expected shape " +
                                        shape_text(parameter.shape));
    }
    ParameterValues values;
    for (const auto& [name, numbers] : weights) values[name] = numbers.data();  // moved vectors keep theirs
    weights_ = std::move(weights);
    session_.build(network, values, std::move(optimizer), tasks, dtype);
}

}  // namespace timetrial::bindings
