// Streams of batches from mapped files, and the batch that a backend sees.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "job.h"
#include "loop/gather.h"
#include "network/network.h"
#include "npy/npy.h"
#include "timetrial/backend.h"

namespace timetrial {

// The tensors of one batch. Memory is reserved and untouched until something is gathered into it.
class Batch {
  public:
    explicit Batch(const Network& network);
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

    const tt_batch& c_form() const { return batch_; }
    void* images() const { return images_.get(); }
    std::int64_t* labels() const { return static_cast<std::int64_t*>(labels_.get()); }

  private:
    struct Free {
        void operator()(void* data) const;
    };
    std::unique_ptr<void, Free> images_;
    std::unique_ptr<void, Free> labels_;
    std::vector<tt_tensor> tensors_;
    tt_batch batch_{};
};

// A data set in a given order, row by row of it into the batch. Files are mapped: a sample that no batch
// asks for is never read.
class Stream {
  public:
    // Throws NpyError for files that do not fit the network: shape, type, an order of another batch size.
    Stream(const StreamFiles& files, const Network& network, Batch& batch);

    // NpyError for a label that is no class or an order that points outside the data. Reads both files
    // through once and gives the memory back.
    void check(std::int64_t classes) const;

    Gather& gather() { return gather_; }
    std::size_t samples() const { return static_cast<std::size_t>(labels_.shape().at(0)); }

  private:
    void use_own_order(std::size_t batch_size);

    NpyArray images_;
    NpyArray labels_;
    std::unique_ptr<NpyArray> order_file_;
    std::vector<std::int64_t> own_order_;  // 0, 1, 2 ...; begins anew to fill the last batch
    Gather gather_;
};

}  // namespace timetrial
