#include "job.h"

#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "npy/npy.h"
#include "process/small_file.h"
#include "text/text.h"

namespace timetrial {
namespace {

using Json = nlohmann::ordered_json;

constexpr int protocol = 2;

AttributeValue attribute_value(const Json& value) {
    if (value.is_boolean()) return value.get<bool>();
    if (value.is_number()) return value.get<double>();
    if (value.is_string()) return value.get<std::string>();
    return value.get<std::vector<double>>();
}

InputSpec read_input(const Json& node) {
    InputSpec input;
    input.name = node.at("name");
    const auto shape = node.at("shape").get<Shape>();
    if (shape.empty()) throw JobError("network.nodes: the input '" + input.name + "' has an empty shape");
    input.sample.assign(shape.begin() + 1, shape.end());
    input.dtype = parse_dtype(node.at("dtype"));
    input.role = input_role(node.at("role"));
    return input;
}

// What the parent inferred of a layer, in case that only the parent knows its kind.
StatedNode stated_node(const Json& node) {
    StatedNode stated;
    stated.shape = node.at("shape").get<Shape>();
    for (const Json& given : node.at("parameters")) {
        Parameter parameter;
        parameter.name = given.at("name");
        parameter.shape = given.at("shape").get<Shape>();
        parameter.role = given.at("role") == "state" ? TT_STATE : TT_PARAMETER;
        parameter.decays = given.at("decays");
        stated.parameters.push_back(std::move(parameter));
    }
    stated.integers_below = node.value("integers_below", std::int64_t{0});
    return stated;
}

void read_network(const Json& network, Job& job) {
    job.output = network.at("output");
    job.loss = network.at("loss");
    for (const Json& node : network.at("nodes")) {
        NodeSpec spec;
        spec.name = node.at("name");
        spec.kind = node.at("kind");
        spec.inputs = node.at("inputs").get<std::vector<std::string>>();
        for (const auto& [name, value] : node.at("attributes").items()) {
            spec.attributes[name] = attribute_value(value);
        }
        if (spec.kind == "input") {
            job.inputs.push_back(read_input(node));
            continue;
        }
        spec.stated = stated_node(node);
        for (const Json& parameter : node.at("parameters")) {
            if (parameter.contains("file")) job.parameter_files[parameter.at("name")] = parameter.at("file");
        }
        job.nodes.push_back(std::move(spec));
    }
}

void read_optimizer(const Json& optimizer, Job& job) {
    for (const auto& [name, value] : optimizer.items()) {
        if (name == "name") {
            job.optimizer.name = value;
        } else if (name == "options") {
            job.optimizer_options = value.get<std::vector<std::string>>();
        } else if (name == "rates") {
            job.rates_file = value;
        } else {
            const bool is_flag = value.is_boolean();
            job.optimizer.attributes[name] = is_flag ? value.get<bool>() : value.get<double>();
        }
    }
}

void read_streams(const Json& streams, Job& job) {
    for (const auto& [name, files] : streams.items()) {
        using Files = std::map<std::string, std::string>;
        job.streams[name] = {files.at("tensors").get<Files>(), files.value("drawn", Files()),
                             files.value("order", "")};
    }
}

Job parse(const Json& json) {
    if (const int theirs = json.at("protocol"); theirs != protocol) {
        throw JobError("protocol is " + std::to_string(theirs) + ", this program speaks " +
                       std::to_string(protocol));
    }
    Job job;
    job.plugin = json.at("backend").at("plugin");
    job.preload = json.at("backend").value("preload", std::vector<std::string>());
    job.task_name = json.at("task");
    job.task = parse_task(job.task_name);
    job.device = json.at("device");
    job.dtype = json.at("dtype");
    job.batch_size = json.at("batch_size");
    for (const auto& [name, value] : json.at("settings").items()) job.settings.emplace_back(name, value);
    read_network(json.at("network"), job);
    if (json.contains("optimizer")) read_optimizer(json.at("optimizer"), job);
    if (json.contains("streams")) read_streams(json.at("streams"), job);
    return job;
}

}  // namespace

tt_task parse_task(const std::string& name) {
    const std::map<std::string, tt_task> tasks = {
        {"train", TT_TRAIN}, {"gradient", TT_GRADIENT}, {"forward", TT_FORWARD}};
    const auto found = tasks.find(name);
    if (found == tasks.end())
        throw JobError("task '" + name + "'." + nearest(name, {"train", "gradient", "forward"}));
    return found->second;
}

Job read_job(const std::string& path) {
    struct stat file{};
    if (stat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode))
        throw JobError("there is no job file '" + path + "'");
    try {
        return parse(Json::parse(read_small_file(path)));
    } catch (const Json::exception& error) {  // names the key or the place
        throw JobError("job file '" + path + "': " + error.what());
    } catch (const JobError& error) {
        throw JobError("job file '" + path + "': " + error.what());
    }
}

}  // namespace timetrial
