// The native contender: one plug-in, one network, and what can be asked of them.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "data.h"
#include "job.h"
#include "npy/npy.h"
#include "recorder/recorder.h"
#include "session/session.h"

namespace timetrial {

class Contender {
  public:
    using Json = nlohmann::ordered_json;

    // Reads the job's network and opens the recorder. The plug-in comes with load().
    Contender(Job job, int recorder_fd);

    // In this order, once each.
    void load();            // the plug-in and its library; how this thread treats subnormals before it
    void apply_settings();  // asked ones, before build
    void build();           // the network with its initial weights
    Json read_settings();   // after build: what is in force when steps run
    Json facts();           // what the backend says about what it built
    Json description() const;

    // Commands. Each returns the fields of its `done`.
    Json run(std::uint32_t steps, std::uint64_t max_ns, std::uint32_t window, bool in_parts);
    Json profile(std::uint32_t steps);
    Json use_stream(const std::string& name);
    Json reset();
    Json use_passes(std::uint32_t steps);
    Json gradient();
    Json write_outputs(const std::string& file);
    Json write_predicted(const std::string& file);
    // Of the test stream: accuracy and loss, and every prediction as `file`.
    Json evaluate(const std::string& file);
    Json dump(const std::string& role, const std::string& folder);
    // What the layers make of the batch that comes next, in a step without update, as files: the samples at
    // these places of the batch, or all. Nothing that a step sees is different behind it.
    Json show(const std::optional<std::vector<std::size_t>>& places, const std::string& folder);

  private:
    void apply_float_mode() const;
    void check_wants() const;
    ParameterValues map_parameters();
    FileStream* files(const std::string& name);
    Stream* stream(const std::string& name);
    std::optional<std::uint64_t> steps_computed();
    Stream* current_stream() { return stream(stream_name_); }

    Job job_;
    Network network_;
    Recorder recorder_;
    std::vector<NpyArray> parameters_;
    Passes passes_;
    std::string stream_name_ = "train";
    std::optional<Session> session_;  // goes before what it points to, and after the streams into its batch
    std::map<std::string, FileStream> streams_;
};

}  // namespace timetrial
