// For how many steps a layer along time has primitives, and which a batch takes: the setting `lengths`.
// oneDNN's recurrent primitives are made for a number of steps, so there is one for each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "onednn/sequences.h"
#include "timetrial/lengths.hpp"

namespace timetrial::onednn {

class StepCounts {
  public:
    StepCounts(Way way, const Inputs& inputs, const Steps& of) : lengths_(inputs, of), of_(of) {
        all_.push_back(of.steps);
        if (way != Way::kRounded || inputs.size() < 2) return;
        for (std::int64_t longest = of.steps; longest > 0; --longest)
            if (const std::int64_t count = rounded_steps(longest, of.steps); count < all_.back())
                all_.push_back(count);
    }

    // All steps there are, and less and less.
    const std::vector<std::int64_t>& all() const { return all_; }

    // By the lengths of the batch that is there.
    void choose() {
        std::int64_t longest = 0;
        for (std::int64_t n = 0; n < of_.batch; ++n) longest = std::max(longest, lengths_.of(n));
        chosen_ = all_.size() - 1;
        while (all_[chosen_] < longest) --chosen_;
    }
    std::size_t chosen() const { return chosen_; }
    std::int64_t steps() const { return all_[chosen_]; }

  private:
    Lengths lengths_;
    Steps of_;
    std::vector<std::int64_t> all_;
    std::size_t chosen_ = 0;
};

}  // namespace timetrial::onednn
