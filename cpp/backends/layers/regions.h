// What a step does, as a list: operations in order, with a barrier where the threads have to meet.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "layers/threads.h"

namespace timetrial::layers {

// Which runs an operation takes part in.
enum Phase : uint32_t {
    kForward = 1,  // of a step that learns
    kLoss = 2,
    kBackward = 4,   // gradients of the values, and those of the parameters that are cheaper per image
    kGradients = 8,  // of the parameters
    kDescend = 16,   // the same, and the update of each piece while it is in the cache
    kUpdate = 32,    // alone
    kInfer = 64,     // forward where nothing is learned
};

// By what the threads share the work of an operation.
enum class Shared { kImages, kParameters, kElements };

class Regions {
  public:
    // `work` is called on every thread, and does that thread's share. `phases`: one of Phase, or several.
    void add(uint32_t phases, Shared shared, std::function<void(int thread)> work) {
        if (regions_.empty() || regions_.back().shared != shared) regions_.push_back({shared, 0, {}});
        regions_.back().phases |= phases;
        regions_.back().operations.push_back({phases, std::move(work)});
    }

    // The operations of these phases. Within a region no thread waits for another: where all share the work
    // alike, each reads only what it has written itself.
    void run(ThreadPool& pool, uint32_t phases) const {
        for (const Region& region : regions_) {
            if ((region.phases & phases) == 0) continue;
            pool.run([&region, phases](int thread) {
                for (const Operation& operation : region.operations)
                    if (operation.phases & phases) operation.work(thread);
            });
        }
    }

  private:
    struct Operation {
        uint32_t phases;
        std::function<void(int)> work;
    };
    struct Region {
        Shared shared;
        uint32_t phases;
        std::vector<Operation> operations;
    };
    std::vector<Region> regions_;
};

}  // namespace timetrial::layers
