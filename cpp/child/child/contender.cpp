#include "contender.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

#include "clock/clock.h"
#include "events.h"
#include "loop/loop.h"
#include "process/float_mode.h"
#include "text/text.h"
#include "timetrial/float_mode.h"
#include "words.h"

namespace timetrial {
namespace {

constexpr char float_mode_setting[] = "flush_to_zero";
constexpr std::uint32_t all_parts = TT_PART_FORWARD | TT_PART_LOSS | TT_PART_BACKWARD | TT_PART_UPDATE;

Network make_network(const Job& job) {
    Network network(job.nodes, job.batch_size, job.input_shape);
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

Contender::Contender(Job job, int recorder_fd)
    : job_(std::move(job)), network_(make_network(job_)), batch_(network_) {
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
    plugin_.emplace(job_.plugin);
    check_wants();
    context_.emplace(*plugin_);
}

void Contender::check_wants() const {
    const tt_description& has = plugin_->description();
    expect_word("task", job_.task_name, task_words(has.tasks));
    expect_word("device", job_.device, word_list(has.devices));
    expect_word("dtype", job_.dtype, word_list(has.dtypes));
    if ((has.flags & TT_UNPROVABLE) != 0) return;  // computes no network, so any will do
    for (const Node& node : network_.nodes()) {
        if (node.kind != "input") expect_word("layer", node.kind, word_list(has.layers));
    }
    if (job_.task == TT_TRAIN) expect_word("optimizer", job_.optimizer, word_list(has.optimizers));
}

void Contender::apply_settings() {
    for (const auto& [name, value] : job_.settings) {
        if (name != float_mode_setting) context_->configure(name, value);
    }
}

void Contender::build() {
    open_streams();
    ParameterValues values;
    for (const Parameter& parameter : network_.parameters()) {
        const auto file = job_.parameter_files.find(parameter.name);
        if (file == job_.parameter_files.end()) {
            if (!reads_no_data()) throw JobError("parameter '" + parameter.name + "' has no file");
            continue;
        }
        NpyArray& array = parameters_.emplace_back(file->second);
        array.expect_shape(parameter.shape);
        values[parameter.name] = array.f32();
    }
    c_network_.emplace(network_, values);
    for (const auto& [name, number] : job_.optimizer_attributes) {
        optimizer_attributes_.push_back({sizeof(tt_attribute), name.c_str(), number, nullptr});
    }
    optimizer_ = {sizeof(tt_optimizer), job_.optimizer.c_str(),
                  static_cast<std::uint32_t>(optimizer_attributes_.size()), optimizer_attributes_.data()};
    std::uint32_t tasks = job_.task;
    // What is timed is what is proven: gradients can be asked of every contender that trains.
    if (job_.task == TT_TRAIN) tasks |= plugin_->description().tasks & TT_GRADIENT;
    tt_build build{};
    build.size = sizeof build;
    build.tasks = tasks;
    build.batch_size = job_.batch_size;
    build.network = c_network_->get();
    build.optimizer = job_.optimizer.empty() ? nullptr : &optimizer_;
    build.dtype = job_.dtype == "f64" ? TT_F64 : TT_F32;  // check_wants() knows that the backend has it
    context_->build(build);
    apply_float_mode();  // a library may have changed it
}

void Contender::open_streams() {
    if (reads_no_data()) return;
    for (const auto& [name, files] : job_.streams) streams_.try_emplace(name, files, network_, batch_);
}

Contender::Json Contender::read_settings() {
    std::vector<std::string> names = word_list(plugin_->description().settings);
    Json readings = Json::object();
    for (const auto& [name, value] : job_.settings) {
        const bool is_known = std::find(names.begin(), names.end(), name) != names.end();
        if (!is_known && name != float_mode_setting) names.push_back(name);
    }
    for (const std::string& name : names) {
        try {
            const SettingReading reading = context_->read_setting(name);
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
    for (const Fact& fact : context_->facts()) facts[fact.name] = fact.value;
    return facts;
}

Contender::Json Contender::description() const { return short_description(plugin_->description()); }

// Null where the backend reads no data.
Stream* Contender::stream(const std::string& name) {
    if (reads_no_data()) return nullptr;
    const auto found = streams_.find(name);
    if (found == streams_.end()) {
        std::vector<std::string> known;
        for (const auto& [known_name, files] : job_.streams) known.push_back(known_name);
        throw JobError("the job has no stream '" + name + "'." + nearest(name, known));
    }
    if (!checked_[name]) found->second.check(network_.classes());
    checked_[name] = true;
    return &found->second;
}

Stream* Contender::current_stream() { return stream(stream_name_); }

std::vector<tt_loop_part> Contender::fused_parts() {
    calls_ = {{&plugin_->table(), context_->get(), job_.task, &batch_.c_form()}};
    std::vector<tt_loop_part> parts;
    if (Stream* data = current_stream()) parts.push_back({TT_SEGMENT, Gather::call, &data->gather()});
    parts.push_back({TT_STEP, PluginCall::step, &calls_.front()});
    return parts;
}

// A backend whose steps are fused, and a task that is not training, have the parts data and step.
std::vector<tt_loop_part> Contender::separate_parts() {
    std::vector<tt_loop_part> parts = fused_parts();
    if (parts.size() > 1) parts.front().boundary = TT_DATA;
    if (job_.task != TT_TRAIN || plugin_->description().parts != all_parts) return parts;
    parts.pop_back();
    const PluginCall like = calls_.front();
    calls_.clear();
    for (const std::uint32_t part : {TT_PART_FORWARD, TT_PART_LOSS, TT_PART_BACKWARD, TT_PART_UPDATE}) {
        calls_.push_back({like.table, like.context, part, like.batch});
    }
    const std::uint32_t boundaries[] = {TT_FORWARD_END, TT_LOSS_END, TT_BACKWARD_END, TT_STEP};
    for (std::size_t i = 0; i < calls_.size(); ++i)
        parts.push_back({boundaries[i], PluginCall::part, &calls_[i]});
    return parts;
}

Contender::Json Contender::run(std::uint32_t steps, std::uint64_t max_ns, std::uint32_t window,
                               bool in_parts) {
    const std::vector<tt_loop_part> parts = in_parts ? separate_parts() : fused_parts();
    tt_segment segment{};
    segment.size = sizeof segment;
    segment.window = window;
    segment.max_steps = steps;
    segment.max_ns = max_ns;
    segment.stop_at_nan = job_.task != TT_FORWARD;
    passes_.call = calls_.front();
    if (Stream* data = current_stream()) passes_.gather = &data->gather();
    const tt_loop_part reset{TT_RESET, Passes::reset, &passes_};
    segment.pass_steps = passes_.steps;
    segment.pass_done = passes_.done;
    segment.reset = &reset;
    const std::uint64_t cpu_before = process_cpu_ns();
    const int error = run_segment(recorder_, parts.data(), static_cast<std::uint32_t>(parts.size()), segment);
    const std::uint64_t cpu_ns = process_cpu_ns() - cpu_before - segment.reset_cpu_ns;
    passes_.done = segment.pass_done;
    if (segment.call_status != 0) context_->fail(static_cast<tt_status>(segment.call_status));
    if (error == ENOMEM) throw std::bad_alloc();
    if (error != 0) {
        throw std::system_error(
            error, std::generic_category(),
            "segment of " + std::to_string(steps) + " steps in window " + std::to_string(window));
    }
    return {{"steps", segment.steps}, {"stamps", segment.stamps},
            {"window", window},       {"window_bytes", segment.window_bytes},
            {"cpu_ns", cpu_ns},       {"rss_bytes", resident_bytes()}};
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
        for (const ProfiledTime& time : context_->profile(batch_.c_form())) {
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
    context_->reset();
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
    return {{"loss", context_->step(TT_GRADIENT, batch_.c_form())}};
}

// Of the batch as it stands.
void Contender::predict(std::vector<float>& predictions) {
    const Node& output = network_.node(network_.output());
    predictions.resize(static_cast<std::size_t>(element_count(output.shape)));
    tt_tensor tensor = c_tensor(output.name, TT_ACTIVATION, TT_F32, output.shape, predictions.data());
    context_->evaluate(batch_.c_form(), tensor);
    context_->wait();
}

}  // namespace timetrial
