// The job file: what this contender computes and with what. processes/PROTOCOL.md has the form.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "network/node.h"
#include "session/session.h"
#include "timetrial/backend.h"

namespace timetrial {

// A job that cannot be read: names the file, the key and what was expected.
class JobError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

struct StreamFiles {
    std::map<std::string, std::string> tensors;  // a file for each input of the network, by its name
    std::map<std::string, std::string> drawn;    // of inputs whose rows belong to no sample
    std::string order;                           // "" for a stream in the data's own order
};

struct Job {
    std::string plugin;
    std::vector<std::string> preload;  // libraries that the plug-in needs, opened before it
    std::string task_name;
    tt_task task = TT_TRAIN;
    std::string device;
    std::string dtype;
    std::int64_t batch_size = 0;
    std::vector<std::pair<std::string, std::string>> settings;  // in the order given

    std::vector<InputSpec> inputs;
    std::vector<NodeSpec> nodes;
    std::string output;
    std::string loss;
    std::map<std::string, std::string> parameter_files;  // only of parameters that have one

    OptimizerSpec optimizer;                     // without the rates: they are in their file
    std::vector<std::string> optimizer_options;  // that the backend must have beside the rule
    std::string rates_file;                      // "" without a schedule

    std::map<std::string, StreamFiles> streams;
};

// Throws JobError.
Job read_job(const std::string& path);

// "train", "gradient", "forward".
tt_task parse_task(const std::string& name);

}  // namespace timetrial
