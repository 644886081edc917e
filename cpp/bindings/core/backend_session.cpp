#include "backend_session.h"

#include <algorithm>
#include <stdexcept>
#include <system_error>

#include "loop/loop.h"
#include "text/text.h"

namespace timetrial::bindings {

namespace {

Plugin open_plugin(const std::string& path, const std::vector<std::string>& preload) {
    for (const std::string& library : preload) preload_library(library);
    return Plugin(path);
}

}  // namespace

BackendSession::BackendSession(const std::string& path, const std::vector<std::string>& preload)
    : plugin_(open_plugin(path, preload)), context_(plugin_) {}

void BackendSession::check_weights(const Network& network, const Weights& weights) const {
    std::vector<std::string> names;
    const bool reads_data = (description().flags & TT_READS_NO_DATA) == 0;
    for (const Parameter& parameter : network.parameters()) {
        names.push_back(parameter.name);
        const auto found = weights.find(parameter.name);
        if (found == weights.end()) {
            if (reads_data) throw std::invalid_argument("weights have no '" + parameter.name + "'");
        } else if (found->second.size() != static_cast<std::size_t>(element_count(parameter.shape))) {
            throw std::invalid_argument("weight '" + parameter.name + "' has " +
                                        std::to_string(found->second.size()) + " numbers; expected shape " +
                                        shape_text(parameter.shape));
        }
    }
    for (const auto& [name, values] : weights)
        if (std::find(names.begin(), names.end(), name) == names.end())
            throw std::invalid_argument("the network has no parameter '" + name + "'." +
                                        nearest(name, names));
}

void BackendSession::build(const Network& network, const std::string& optimizer,
                           const OptimizerAttributes& attributes, Weights weights, std::uint32_t tasks,
                           std::uint32_t dtype) {
    if (network_) throw std::invalid_argument("the backend is built already: open another one");
    check_weights(network, weights);
    network_.emplace(network);
    weights_ = std::move(weights);
    ParameterValues values;
    for (const auto& [name, numbers] : weights_) values[name] = numbers.data();
    c_network_.emplace(*network_, values);
    optimizer_name_ = optimizer;
    optimizer_values_ = attributes;
    for (const auto& [name, number] : optimizer_values_)
        optimizer_attributes_.push_back({sizeof(tt_attribute), name.c_str(), number, nullptr});
    optimizer_ = {sizeof(tt_optimizer), optimizer_name_.c_str(),
                  static_cast<std::uint32_t>(optimizer_attributes_.size()), optimizer_attributes_.data()};
    build_.size = sizeof build_;
    build_.dtype = dtype;
    build_.tasks = tasks;
    build_.batch_size = network_->batch_size();
    build_.network = c_network_->get();
    build_.optimizer = optimizer_name_.empty() ? nullptr : &optimizer_;
    const Node& images = network_->node(0);
    const Node& labels = network_->node(1);
    images_.assign(static_cast<std::size_t>(element_count(images.shape)), 0.0f);
    labels_.assign(static_cast<std::size_t>(network_->batch_size()), 0);
    tensors_ = {c_tensor(images.name, TT_INPUT, TT_F32, images.shape, images_.data()),
                c_tensor(labels.name, TT_INPUT, TT_I64, labels.shape, labels_.data())};
    batch_ = {sizeof(tt_batch), static_cast<std::uint32_t>(tensors_.size()), tensors_.data()};
    context_.build(build_);
    built_ = true;
}

const Network& BackendSession::network() const {
    if (!built_) throw std::invalid_argument("the backend has no network yet: call build() first");
    return *network_;
}

PluginContext& BackendSession::built_context() {
    network();
    return context_;
}

double BackendSession::step(tt_task task) { return built_context().step(task, batch_); }

double BackendSession::part(tt_part part) { return built_context().part(part, batch_); }

std::vector<ProfiledTime> BackendSession::profile() { return built_context().profile(batch_); }

std::vector<float> BackendSession::evaluate() {
    const Shape shape{network().batch_size(), network().classes()};
    std::vector<float> prediction(static_cast<std::size_t>(element_count(shape)));
    const std::string name = network().node(network().output()).name;
    tt_tensor tensor = c_tensor(name, TT_ACTIVATION, TT_F32, shape, prediction.data());
    context_.evaluate(batch_, tensor);
    return prediction;
}

tt_segment BackendSession::run(Recorder& recorder, tt_task task, bool in_parts, Gather* gather,
                               std::uint32_t max_steps, std::uint64_t max_ns) {
    PluginContext& context = built_context();
    const tt_backend& table = plugin_.table();
    if (in_parts && (table.part == nullptr || task != TT_TRAIN))
        throw BackendError(TT_UNSUPPORTED, task == TT_TRAIN ? "the backend has fused steps only"
                                                            : "only a train step has parts");
    struct PartStamp {
        tt_part part;
        std::uint32_t boundary;
    };
    std::vector<PluginCall> calls;
    std::vector<tt_loop_part> parts;
    calls.reserve(4);  // parts point to calls
    if (gather != nullptr)
        parts.push_back({in_parts ? static_cast<std::uint32_t>(TT_DATA) : std::uint32_t{TT_SEGMENT},
                         Gather::call, gather});
    if (in_parts) {
        for (const PartStamp& stamp :
             {PartStamp{TT_PART_FORWARD, TT_FORWARD_END}, PartStamp{TT_PART_LOSS, TT_LOSS_END},
              PartStamp{TT_PART_BACKWARD, TT_BACKWARD_END}, PartStamp{TT_PART_UPDATE, TT_STEP}}) {
            calls.push_back({&table, context.get(), static_cast<std::uint32_t>(stamp.part), &batch_});
            parts.push_back({stamp.boundary, PluginCall::part, &calls.back()});
        }
    } else {
        calls.push_back({&table, context.get(), static_cast<std::uint32_t>(task), &batch_});
        parts.push_back({TT_STEP, PluginCall::step, &calls.back()});
    }
    tt_segment segment{};
    segment.size = sizeof segment;
    segment.max_steps = max_steps;
    segment.max_ns = max_ns;
    segment.stop_at_nan = task == TT_FORWARD ? 0 : 1;
    const int error = run_segment(recorder, parts.data(), static_cast<std::uint32_t>(parts.size()), segment);
    if (segment.call_status != 0) context.fail(static_cast<tt_status>(segment.call_status));
    if (error != 0) throw std::system_error(error, std::generic_category(), "the recorder's window");
    return segment;
}

}  // namespace timetrial::bindings
