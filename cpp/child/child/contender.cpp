#include "contender.h"

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "clock/clock.h"
#include "events.h"
#include "process/float_mode.h"
#include "text/text.h"
#include "timetrial/float_mode.h"
#include "timetrial/sequence_steps.h"
#include "words.h"

namespace timetrial {
namespace {

constexpr char float_mode_setting[] = "flush_to_zero";

Network make_network(const Job& job) {
    Network network(job.nodes, job.batch_size, job.inputs);
    // The core finds loss and output by itself; a job that says otherwise was written by someone else.
    if (network.index_of(job.output) != network.output() || network.index_of(job.loss) != network.loss()) {
        throw JobError("network: output '" + job.output + "' and loss '" + job.loss + "' should be '" +
                       network.node(network.output()).name + "' and '" + network.node(network.loss()).name +
                       "'");
    }
    return network;
}

void expect_word(const std::string& what, const std::string& word, const std::vector<std::string>& has) {
    if (std::find(has.begin(), has.end(), word) == has.end()) {
        throw BackendError(TT_UNSUPPORTED,
                           "the backend has no " + what + " '" + word + "'; it has: " + join(has));
    }
}

}  // namespace

Contender::Contender(Job job, int recorder_fd) : job_(std::move(job)), network_(make_network(job_)) {
    if (const int error = recorder_.open(recorder_fd, 0)) {
        throw std::system_error(error, std::generic_category(),
                                "descriptor " + std::to_string(recorder_fd) + " is no recorder file");
    }
}

// Threads inherit it: those that the plug-in starts have it too, unless they set their own.
void Contender::apply_float_mode() const {
    for (const auto& [name, value] : job_.settings) {
        if (name != float_mode_setting) continue;
        if (value != "on" && value != "off") {
            throw JobError(name + " = '" + value + "'; expected on or off");
        }
        set_float_mode(value == "on" ? TT_FLUSH_TO_ZERO | TT_DENORMALS_ARE_ZERO : 0);
    }
}

void Contender::load() {
    apply_float_mode();
    for (const std::string& library : job_.preload) preload_library(library);
    session_.emplace(Plugin(job_.plugin));
    check_wants();
}

void Contender::check_wants() const {
    const tt_description& has = session_->description();
    expect_word("task", job_.task_name, task_words(has.tasks));
    expect_word("device", job_.device, word_list(has.devices));
    expect_word("dtype", job_.dtype, word_list(has.dtypes));
    if ((has.flags & TT_UNPROVABLE) != 0) return;  // computes no network, so any will do
    for (const Node& node : network_.nodes()) {
        if (!node.is_input()) expect_word("layer", node.kind, word_list(has.layers));
    }
    if (job_.task != TT_TRAIN) return;
    expect_word("optimizer", job_.optimizer.name, word_list(has.optimizers));
    for (const std::string& option : job_.optimizer_options)
        expect_word("optimizer option", option, word_list(has.optimizers));
}

void Contender::apply_settings() {
    for (const auto& [name, value] : job_.settings) {
        if (name != float_mode_setting) session_->context().configure(name, value);
    }
}

ParameterValues Contender::map_parameters() {
    ParameterValues values;
    for (const Parameter& parameter : network_.parameters()) {
        const auto file = job_.parameter_files.find(parameter.name);
        if (file == job_.parameter_files.end()) continue;  // Session::build() says what may be missing
        NpyArray& array = parameters_.emplace_back(file->second);
        array.expect_shape(parameter.shape);
        values[parameter.name] = array.f32();
    }
    return values;
}

void Contender::build() {
    const ParameterValues values = map_parameters();
    std::uint32_t tasks = job_.task;
    // What is timed is what is proven: gradients can be asked of every contender that trains.
    if (job_.task == TT_TRAIN) tasks |= session_->description().tasks & TT_GRADIENT;
    OptimizerSpec optimizer = job_.optimizer;
    if (!job_.rates_file.empty()) {
        const NpyArray rates(job_.rates_file);
        optimizer.rates.assign(rates.f64(), rates.f64() + rates.elements());
    }
    session_->build(network_, values, std::move(optimizer), tasks, parse_dtype(job_.dtype));
    apply_float_mode();  // a library may have changed it
    if (session_->reads_no_data()) return;
    for (const auto& [name, files] : job_.streams)
        streams_.try_emplace(name, files, network_, session_->batch(), job_.task);
}

Contender::Json Contender::read_settings() {
    std::vector<std::string> names = word_list(session_->description().settings);
    Json readings = Json::object();
    for (const auto& [name, value] : job_.settings) {
        const bool is_known = std::find(names.begin(), names.end(), name) != names.end();
        if (!is_known && name != float_mode_setting) names.push_back(name);
    }
    for (const std::string& name : names) {
        try {
            const SettingReading reading = session_->context().read_setting(name);
            readings[name] = {{"effective", reading.effective}, {"how_read", reading.how_read}};
        } catch (const BackendError& error) {  // no getter: the parent looks elsewhere
            readings[name] = {{"effective", nullptr}, {"how_read", error.what()}};
        }
    }
    readings[float_mode_setting] = {{"effective", float_mode_word(float_mode())},
                                    {"how_read", "MXCSR of the thread that runs the steps"}};
    return readings;
}

Contender::Json Contender::facts() {
    Json facts = Json::object();
    for (const Fact& fact : session_->context().facts()) facts[fact.name] = fact.value;
    return facts;
}

Contender::Json Contender::description() const { return short_description(session_->description()); }

// Null where the backend reads no data.
FileStream* Contender::files(const std::string& name) {
    if (session_->reads_no_data()) return nullptr;
    const auto found = streams_.find(name);
    if (found != streams_.end()) return &found->second;
    std::vector<std::string> known;
    for (const auto& [known_name, files] : job_.streams) known.push_back(known_name);
    throw JobError("the job has no stream '" + name + "'." + nearest(name, known));
}

Stream* Contender::stream(const std::string& name) {
    FileStream* found = files(name);
    return found == nullptr ? nullptr : &found->checked();
}

Contender::Json Contender::run(std::uint32_t steps, std::uint64_t max_ns, std::uint32_t window,
                               bool in_parts) {
    Stream* data = current_stream();
    Gather* gather = data == nullptr ? nullptr : &data->gather();
    const std::optional<std::uint64_t> computed_before = steps_computed();
    const std::uint64_t cpu_before = process_cpu_ns();
    const tt_segment segment =
        session_->run(recorder_, {job_.task, in_parts, gather, steps, max_ns, window}, passes_);
    const std::uint64_t cpu_ns = process_cpu_ns() - cpu_before - segment.reset_cpu_ns;
    Json done = {{"steps", segment.steps}, {"stamps", segment.stamps},
                 {"window", window},       {"window_bytes", segment.window_bytes},
                 {"cpu_ns", cpu_ns},       {"rss_bytes", resident_bytes()}};
    if (const auto computed = steps_computed())
        done["sequence_steps"] = *computed - computed_before.value_or(0);
    return done;
}

// By the backend's own count; none before the first, and of a network that reads no lengths.
std::optional<std::uint64_t> Contender::steps_computed() {
    const auto& nodes = network_.nodes();
    if (std::none_of(nodes.begin(), nodes.end(), [](const Node& node) { return node.role == TT_LENGTHS; }))
        return std::nullopt;
    for (const Fact& fact : session_->context().facts())
        if (fact.name == TT_SEQUENCE_STEPS_FACT) return std::strtoull(fact.value.c_str(), nullptr, 10);
    return std::nullopt;
}

// Node and direction stand in the order in which the backend first named them; each has one time per step.
Contender::Json Contender::profile(std::uint32_t steps) {
    if (job_.task != TT_TRAIN) throw BackendError(TT_UNSUPPORTED, "only a train step can be profiled");
    std::vector<std::pair<std::string, tt_direction>> order;
    std::map<std::pair<std::string, tt_direction>, std::vector<std::uint64_t>> times;
    for (std::uint32_t step = 0; step < steps; ++step) {
        if (passes_.steps != 0 && passes_.done >= passes_.steps) reset();
        ++passes_.done;
        if (Stream* data = current_stream()) Gather::call(&data->gather(), nullptr);
        std::map<std::pair<std::string, tt_direction>, std::uint64_t> sums;  // a node may come more than once
        for (const ProfiledTime& time : session_->profile()) {
            const std::pair key(time.node, time.direction);
            if (!times.contains(key) && !sums.contains(key)) order.push_back(key);
            sums[key] += time.ns;
        }
        for (const auto& [key, ns] : sums) times[key].push_back(ns);
    }
    Json layers = Json::array();
    for (const auto& key : order)
        layers.push_back(
            {{"node", key.first}, {"direction", tt_direction_word(key.second)}, {"ns", times[key]}});
    return {{"steps", steps}, {"layers", layers}};
}

Contender::Json Contender::use_stream(const std::string& name) {
    if (Stream* data = stream(name)) data->gather().next = 0;
    stream_name_ = name;
    passes_.done = 0;
    return Json::object();
}

Contender::Json Contender::reset() {
    session_->reset();
    if (Stream* data = current_stream()) data->gather().next = 0;
    passes_.done = 0;
    return Json::object();
}

Contender::Json Contender::use_passes(std::uint32_t steps) {
    passes_.steps = steps;
    return Json::object();
}

Contender::Json Contender::gradient() {
    if (Stream* data = current_stream()) data->gather().fill();
    return {{"loss", session_->step(TT_GRADIENT)}};
}

}  // namespace timetrial
