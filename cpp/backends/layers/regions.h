// What a step does, as a list: operations in order, with a barrier where the threads have to meet.
#pragma once

#include <algorithm>
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
enum class Shared { kImages, kChannels, kParameters, kElements };

class Regions {
  public:
    // `work` is called on every thread, and does that thread's share. `phases`: one of Phase, or several.
    void add(uint32_t phases, Shared shared, std::function<void(int thread)> work) {
        region(shared, 0, 0).add({phases, std::move(work), {}});
    }

    // `work` on a thread's share of so many channels, `step` of them at a time: all the operations of a
    // region on these, then on the next ones, so that each finds in the cache what the one before it wrote.
    void add_by_channel(uint32_t phases, int64_t channels, int64_t step,
                        std::function<void(int thread, Share channels)> work) {
        region(Shared::kChannels, channels, step).add({phases, {}, std::move(work)});
    }

    // All threads meet in front of what is added next.
    void meet() { meets_ = true; }

    // The operations of these phases. Within a region no thread waits for another: where all share the work
    // alike, each reads only what it has written itself.
    void run(ThreadPool& pool, uint32_t phases) const {
        for (const Region& region : regions_) {
            if ((region.phases & phases) == 0) continue;
            pool.run([&region, &pool, phases](int thread) { region.run(thread, pool.size(), phases); });
        }
    }

  private:
    struct Operation {
        uint32_t phases;
        std::function<void(int)> work;
        std::function<void(int, Share)> on_channels;
    };
    struct Region {
        Shared shared;
        int64_t channels, step;
        uint32_t phases = 0;
        std::vector<Operation> operations{};

        void add(Operation operation) {
            phases |= operation.phases;
            operations.push_back(std::move(operation));
        }
        void run(int thread, int threads, uint32_t asked) const {
            if (shared != Shared::kChannels) {
                for (const Operation& operation : operations)
                    if (operation.phases & asked) operation.work(thread);
                return;
            }
            const Share mine = share_of(channels, thread, threads);
            for (int64_t c = mine.begin; c < mine.end; c += step)
                for (const Operation& operation : operations)
                    if (operation.phases & asked)
                        operation.on_channels(thread, {c, std::min(c + step, mine.end)});
        }
    };

    Region& region(Shared shared, int64_t channels, int64_t step) {
        const bool goes_on = !meets_ && !regions_.empty() && regions_.back().shared == shared &&
                             regions_.back().channels == channels && regions_.back().step == step;
        meets_ = false;
        if (!goes_on) regions_.push_back({shared, channels, step});
        return regions_.back();
    }

    std::vector<Region> regions_;
    bool meets_ = false;
};

}  // namespace timetrial::layers
