#include "session/session.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "loop/loop.h"
#include "text/text.h"

namespace timetrial {
namespace {

struct PartStamp {
    tt_part part;
    std::uint32_t boundary;
};
constexpr PartStamp part_stamps[] = {{TT_PART_FORWARD, TT_FORWARD_END},
                                     {TT_PART_LOSS, TT_LOSS_END},
                                     {TT_PART_BACKWARD, TT_BACKWARD_END},
                                     {TT_PART_UPDATE, TT_STEP}};

constexpr std::uint32_t all_parts() {
    std::uint32_t mask = 0;
    for (const PartStamp& stamp : part_stamps) mask |= stamp.part;
    return mask;
}

}  // namespace

// Initial weights, empty optimizer, first batch.
struct Session::Reset {
    PluginContext& context;
    Gather* gather;

    static int call(void* user, double*) {
        auto* reset = static_cast<Reset*>(user);
        if (reset->gather != nullptr) reset->gather->next = 0;
        const tt_backend& table = reset->context.plugin().table();
        const tt_status status = table.reset(reset->context.get());
        return status != TT_OK ? status : table.wait(reset->context.get());
    }
};

bool Session::has_parts() const { return description().parts == all_parts(); }

void Session::check_values(const Network& network, const ParameterValues& values) const {
    std::vector<std::string> names;
    for (const Parameter& parameter : network.parameters()) {
        names.push_back(parameter.name);
        if (!values.contains(parameter.name) && !reads_no_data())
            throw std::invalid_argument("there are no initial values of the parameter '" + parameter.name +
                                        "'");
    }
    for (const auto& [name, data] : values)
        if (std::find(names.begin(), names.end(), name) == names.end())
            throw std::invalid_argument("the network has no parameter '" + name + "'." +
                                        nearest(name, names));
}

void Session::build(Network network, const ParameterValues& values, OptimizerSpec optimizer,
                    std::uint32_t tasks, tt_dtype dtype) {
    if (network_) throw std::invalid_argument("the backend is built already: open another one");
    check_values(network, values);
    network_.emplace(std::move(network));
    c_network_.emplace(*network_, values);
    optimizer_ = std::move(optimizer);
    for (const auto& [name, number] : optimizer_.attributes)
        optimizer_attributes_.push_back({sizeof(tt_attribute), name.c_str(), number, nullptr, 0, nullptr});
    c_optimizer_ = {sizeof(tt_optimizer),
                    optimizer_.name.c_str(),
                    static_cast<std::uint32_t>(optimizer_attributes_.size()),
                    optimizer_attributes_.data(),
                    optimizer_.rates.size(),
                    optimizer_.rates.data()};
    tt_build build{};
    build.size = sizeof build;
    build.tasks = tasks;
    build.batch_size = network_->batch_size();
    build.network = c_network_->get();
    build.optimizer = optimizer_.name.empty() ? nullptr : &c_optimizer_;
    build.dtype = dtype;
    build.n_definitions = static_cast<std::uint32_t>(c_network_->definitions().size());
    build.definitions = c_network_->definitions().data();
    context_.build(build);
    batch_.emplace(*network_);
}

const Network& Session::network() const {
    batch();
    return *network_;
}

const Batch& Session::batch() const {
    if (!batch_) throw std::invalid_argument("the backend has no network yet: call build() first");
    return *batch_;
}

void Session::reset() {
    batch();
    context_.reset();
}

std::vector<float> Session::predict() {
    const Node& output = network().node(network().output());
    std::vector<float> prediction(static_cast<std::size_t>(element_count(output.shape)));
    tt_tensor tensor = c_tensor(output.name, TT_ACTIVATION, TT_F32, output.shape, prediction.data());
    context_.evaluate(batch().c_form(), tensor);
    context_.wait();
    return prediction;
}

std::vector<TensorInfo> Session::tensors(tt_role role) {
    batch();
    return context_.tensors(role);
}

// A task that is not training, and a backend whose steps are fused, have the parts data and step.
std::vector<tt_loop_part> Session::loop_parts(const SegmentSpec& asked) {
    const tt_backend& table = plugin_.table();
    const tt_batch* batch = &this->batch().c_form();
    const bool separate = asked.in_parts && asked.task == TT_TRAIN && has_parts();
    std::vector<tt_loop_part> parts;
    calls_.clear();
    calls_.reserve(std::size(part_stamps));  // parts point to calls
    if (asked.gather != nullptr)
        parts.push_back({asked.in_parts ? static_cast<std::uint32_t>(TT_DATA) : std::uint32_t{TT_SEGMENT},
                         Gather::call, asked.gather});
    if (!separate) {
        calls_.push_back({&table, context_.get(), static_cast<std::uint32_t>(asked.task), batch});
        parts.push_back({TT_STEP, PluginCall::step, &calls_.back()});
        return parts;
    }
    for (const PartStamp& stamp : part_stamps) {
        calls_.push_back({&table, context_.get(), static_cast<std::uint32_t>(stamp.part), batch});
        parts.push_back({stamp.boundary, PluginCall::part, &calls_.back()});
    }
    return parts;
}

tt_segment Session::run(Recorder& recorder, const SegmentSpec& asked, Passes& passes) {
    const std::vector<tt_loop_part> parts = loop_parts(asked);
    Reset again{context_, asked.gather};
    const tt_loop_part reset{TT_RESET, Reset::call, &again};
    tt_segment segment{};
    segment.size = sizeof segment;
    segment.window = asked.window;
    segment.max_steps = asked.max_steps;
    segment.max_ns = asked.max_ns;
    segment.stop_at_nan = asked.task == TT_FORWARD ? 0 : 1;
    segment.pass_steps = passes.steps;
    segment.pass_done = passes.done;
    segment.reset = &reset;
    const int error = run_segment(recorder, parts.data(), static_cast<std::uint32_t>(parts.size()), segment);
    passes.done = segment.pass_done;
    if (segment.call_status != 0) context_.fail(static_cast<tt_status>(segment.call_status));
    if (error == ENOMEM) throw std::bad_alloc();
    if (error != 0)
        throw std::system_error(error, std::generic_category(),
                                "segment of " + std::to_string(asked.max_steps) + " steps in window " +
                                    std::to_string(asked.window));
    return segment;
}

}  // namespace timetrial
