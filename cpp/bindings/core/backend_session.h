// A backend in one's own process: plug-in, network, weights and one batch, and the timed loop over them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "loader/context.h"
#include "loop/gather.h"
#include "network/c_network.h"
#include "recorder/recorder.h"

namespace timetrial::bindings {

using Weights = std::map<std::string, std::vector<float>>;
using OptimizerAttributes = std::map<std::string, double>;

class BackendSession {
  public:
    // `preload`: libraries to open before the plug-in.
    BackendSession(const std::string& path, const std::vector<std::string>& preload);

    const tt_description& description() const { return plugin_.description(); }
    // For what needs no network: settings.
    PluginContext& context() { return context_; }

    // Once. `optimizer` is empty where no task trains. Throws std::invalid_argument for weights that are not
    // the network's parameters.
    void build(const Network& network, const std::string& optimizer, const OptimizerAttributes& attributes,
               Weights weights, std::uint32_t tasks, std::uint32_t dtype);

    // Everything below needs build() before it: otherwise std::invalid_argument.
    const Network& network() const;
    std::vector<float>& images() { return images_; }
    std::vector<std::int64_t>& labels() { return labels_; }
    double step(tt_task task);
    double part(tt_part part);
    std::vector<float> evaluate();
    std::vector<ProfiledTime> profile();
    PluginContext& built_context();

    // A segment of fused steps, or of parts with a stamp after each. Every step gathers its batch first
    // (gather may be NULL: the batch stays).
    tt_segment run(Recorder& recorder, tt_task task, bool in_parts, Gather* gather, std::uint32_t max_steps,
                   std::uint64_t max_ns);

  private:
    void check_weights(const Network& network, const Weights& weights) const;

    Plugin plugin_;
    // What build() hands over must outlive the context, so it stands before it.
    std::optional<Network> network_;
    Weights weights_;
    std::optional<CNetwork> c_network_;
    std::string optimizer_name_;
    OptimizerAttributes optimizer_values_;
    std::vector<tt_attribute> optimizer_attributes_;
    tt_optimizer optimizer_{};
    tt_build build_{};
    std::vector<float> images_;
    std::vector<std::int64_t> labels_;
    std::vector<tt_tensor> tensors_;
    tt_batch batch_{};
    bool built_ = false;
    PluginContext context_;
};

}  // namespace timetrial::bindings
