// A backend at work: plug-in, network, initial values and one batch; its steps, alone and in the timed loop.
// timetrial-child obeys its commands with one, and Python's `Backend` holds one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "loader/context.h"
#include "network/c_network.h"
#include "recorder/recorder.h"
#include "session/batch.h"
#include "timetrial/recorder.h"

namespace timetrial {

// As in tt_optimizer; no name: none.
struct OptimizerSpec {
    std::string name;
    std::map<std::string, double> attributes;
    std::vector<double> rates;  // of the steps since a reset, then the last; empty: always learning_rate
};

// Passes: the same steps again and again, each from the initial state and the first batch.
struct Passes {
    std::uint32_t steps = 0;  // of a pass; 0: none ends
    std::uint32_t done = 0;   // since the last reset
};

// A segment that is asked for; the loop ends it early when the window is full.
struct SegmentSpec {
    tt_task task = TT_TRAIN;
    bool in_parts = false;     // a stamp behind each part, where the steps have parts, and behind the data
    Gather* gather = nullptr;  // each step gathers its batch first; NULL: the batch stays
    std::uint32_t max_steps = 0;
    std::uint64_t max_ns = 0;
    std::uint32_t window = 0;
};

class Session {
  public:
    explicit Session(const Plugin& plugin) : plugin_(plugin), context_(plugin_) {}

    const tt_description& description() const { return plugin_.description(); }
    bool reads_no_data() const { return (description().flags & TT_READS_NO_DATA) != 0; }
    // Whether a train step can be run part by part.
    bool has_parts() const;
    PluginContext& context() { return context_; }

    // Once. `values` outlive the session; of each parameter, unless the backend reads no data. `dtype` as the
    // description has them. std::invalid_argument for values that are missing or nobody's.
    void build(Network network, const ParameterValues& values, OptimizerSpec optimizer, std::uint32_t tasks,
               tt_dtype dtype);

    // Everything below needs build() before it: otherwise std::invalid_argument.
    const Network& network() const;
    const Batch& batch() const;
    double step(tt_task task) { return context_.step(task, batch().c_form()); }
    double part(tt_part part) { return context_.part(part, batch().c_form()); }
    std::vector<ProfiledTime> profile() { return context_.profile(batch().c_form()); }
    void reset();
    // The prediction for the batch as it stands, in the shape of the output node.
    std::vector<float> predict();
    std::vector<TensorInfo> tensors(tt_role role);

    // Passes begin anew where `passes` says; the gather begins with them. BackendError for a step that
    // failed, std::bad_alloc, std::system_error for a window that cannot be.
    tt_segment run(Recorder& recorder, const SegmentSpec& asked, Passes& passes);

  private:
    struct Reset;
    void check_values(const Network& network, const ParameterValues& values) const;
    std::vector<tt_loop_part> loop_parts(const SegmentSpec& asked);

    Plugin plugin_;
    // What build() hands over must outlive the context, so it stands before it.
    std::optional<Network> network_;
    std::optional<CNetwork> c_network_;
    std::optional<Batch> batch_;
    OptimizerSpec optimizer_;
    std::vector<tt_attribute> optimizer_attributes_;
    tt_optimizer c_optimizer_{};
    std::vector<PluginCall> calls_;  // of the segment under way: its parts point to them
    PluginContext context_;
};

}  // namespace timetrial
