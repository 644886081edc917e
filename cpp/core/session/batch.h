// The tensors of one batch, and the data sets that fill it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "loop/gather.h"
#include "network/network.h"
#include "timetrial/backend.h"

namespace timetrial {

// Data that do not fit the network: the text names the array, what it has and what was expected.
class DataError : public std::invalid_argument {
  public:
    using std::invalid_argument::invalid_argument;
};

// One tensor for each input of a network, in the network's order. Memory is reserved and untouched until
// something is written into it.
class Batch {
  public:
    explicit Batch(const Network& network);
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

    const tt_batch& c_form() const { return batch_; }
    const std::vector<tt_tensor>& tensors() const { return tensors_; }

  private:
    struct Free {
        void operator()(void* data) const;
    };
    std::vector<std::unique_ptr<void, Free>> memory_;
    std::vector<tt_tensor> tensors_;
    tt_batch batch_{};
};

// An array of a data set, samples along its first extent. `where` names it in messages.
struct Samples {
    std::string where;
    tt_dtype dtype;
    Shape shape;
    const void* data;
    bool is_file = false;  // mapped, so that pages can be given back
    bool is_drawn =
        false;  // its rows belong to no sample: step k has the rows from k * batch_size on, mod rows
};

// A data set in a given order, row by row of it into a batch. Arrays belong to the caller and outlive it.
class Stream {
  public:
    // `arrays`: one for each input of the network, by name; others are refused. `order` (i64, batches x
    // batch_size) names samples; NULL: 0, 1, 2 ..., beginning anew to fill the last batch. Inference reads no
    // masks, so without `needs_masks` they may be left out. DataError.
    Stream(const Network& network, const Batch& batch, std::map<std::string, Samples> arrays,
           const Samples* order, bool needs_masks);

    // DataError for an order that points outside the data or an integer that its input does not allow
    // (Network::values_from and values_below). Reads everything once.
    void check() const;

    Gather& gather() { return gather_; }
    std::size_t samples() const { return samples_; }

  private:
    struct Limited {
        Samples array;
        std::int64_t least;
        std::int64_t below;
        const char* what;
    };
    void use_own_order();

    std::vector<Limited> limited_;
    std::size_t samples_ = 0;
    std::vector<std::int64_t> own_order_;
    Gather gather_;
};

}  // namespace timetrial
