// One use of a plug-in: its context, with exceptions instead of statuses.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "loader/plugin.h"

namespace timetrial {

// A call that did not return TT_OK, with the plug-in's own words.
class BackendError : public std::runtime_error {
  public:
    BackendError(tt_status status, const std::string& words) : std::runtime_error(words), status_(status) {}
    tt_status status() const { return status_; }

  private:
    tt_status status_;
};

// What a setting has in force, and the source.
struct SettingReading {
    std::string effective;
    std::string how_read;
};

// A tensor of the backend by name; its values are copied out and in.
struct TensorInfo {
    std::string name;
    tt_role role;
    tt_dtype dtype;
    std::vector<std::int64_t> shape;

    std::size_t elements() const;
    std::size_t bytes() const;
};

// A fact that the backend states about itself (tt_backend::facts).
struct Fact {
    std::string name;
    std::string value;
};

// Time of one layer in one direction of a profiled step.
struct ProfiledTime {
    std::string node;
    tt_direction direction;
    std::uint64_t ns;
};

// What the timed loop passes to a plug-in: `what` is a task for step(), a part for part().
struct PluginCall {
    const tt_backend* table;
    tt_context* context;
    std::uint32_t what;
    const tt_batch* batch;

    // For tt_loop_part::call; `user` is a PluginCall. Return when the work is done.
    static int step(void* user, double* loss);
    static int part(void* user, double* loss);
};

class PluginContext {
  public:
    explicit PluginContext(const Plugin& plugin);
    PluginContext(const PluginContext&) = delete;
    PluginContext& operator=(const PluginContext&) = delete;
    ~PluginContext();

    const Plugin& plugin() const { return plugin_; }

    void configure(const std::string& name, const std::string& value);
    SettingReading read_setting(const std::string& name);
    // Everything that `build` points to must outlive the context.
    void build(const tt_build& build);
    // Mean loss over the batch; NaN for TT_FORWARD. Returns when it is computed.
    double step(tt_task task, const tt_batch& batch);
    double part(tt_part part, const tt_batch& batch);
    // N x classes, f32, into `prediction`.
    void evaluate(const tt_batch& batch, tt_tensor& prediction);
    void wait();
    void reset();

    std::vector<TensorInfo> tensors(tt_role role);
    // `data` has info.bytes() bytes.
    void read_tensor(const TensorInfo& info, void* data);
    void write_tensor(const TensorInfo& info, const void* data);

    // Empty for a backend that states none.
    std::vector<Fact> facts();
    // One training step, timed layer by layer. BackendError for a backend that cannot.
    std::vector<ProfiledTime> profile(const tt_batch& batch);

    // For the timed loop, which calls the table itself and comes back here when a call fails.
    tt_context* get() const { return context_; }
    [[noreturn]] void fail(tt_status status);

  private:
    void check(tt_status status) {
        if (status != TT_OK) fail(status);
    }

    Plugin plugin_;
    tt_context* context_ = nullptr;
};

}  // namespace timetrial
