// What the record is told of sequences: how many steps were computed, useful or not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace timetrial::onednn {

// How many steps layers along time have computed of all samples, since they were built.
class StepTally {
  public:
    // Another layer. It counts where it reads lengths, or no layer does.
    std::shared_ptr<std::int64_t> add(bool reads_lengths) {
        layers_.push_back({std::make_shared<std::int64_t>(0), reads_lengths});
        return layers_.back().computed;
    }
    // By the layer that computed most.
    std::int64_t most() const {
        const bool any_reads = std::ranges::any_of(layers_, &One::reads_lengths);
        std::int64_t most = 0;
        for (const One& one : layers_)
            if (one.reads_lengths || !any_reads) most = std::max(most, *one.computed);
        return most;
    }

    void clear() {
        for (const One& one : layers_) *one.computed = 0;
    }

  private:
    struct One {
        std::shared_ptr<std::int64_t> computed;
        bool reads_lengths;
    };
    std::vector<One> layers_;
};

}  // namespace timetrial::onednn
