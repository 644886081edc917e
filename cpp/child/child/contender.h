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
#include "loader/context.h"
#include "network/c_network.h"
#include "network/network.h"
#include "npy/npy.h"
#include "passes.h"
#include "recorder/recorder.h"

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

  private:
    bool reads_no_data() const { return (plugin_->description().flags & TT_READS_NO_DATA) != 0; }
    void apply_float_mode() const;
    void check_wants() const;
    void open_streams();
    Stream* stream(const std::string& name);
    Stream* current_stream();
    std::vector<tt_loop_part> fused_parts();
    std::vector<tt_loop_part> separate_parts();
    void predict(std::vector<float>& predictions);

    Job job_;
    Network network_;
    Recorder recorder_;
    std::vector<NpyArray> parameters_;
    std::optional<CNetwork> c_network_;
    std::vector<tt_attribute> optimizer_attributes_;
    tt_optimizer optimizer_{};
    Batch batch_;
    std::map<std::string, Stream> streams_;
    std::map<std::string, bool> checked_;
    std::string stream_name_ = "train";
    std::optional<Plugin> plugin_;
    std::vector<PluginCall> calls_;
    Passes passes_;
    std::optional<PluginContext> context_;  // last: it goes before all that it points to
};

}  // namespace timetrial
