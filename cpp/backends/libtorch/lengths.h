// Ways of ATen's recurrent functions through sequences of unequal lengths: the setting `lengths`. It is the
// process's, as ATen's own settings are.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/_pack_padded_sequence.h>
#include <ATen/ops/_pad_packed_sequence.h>
#include <ATen/ops/constant_pad_nd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "operation.h"
#include "timetrial/lengths.hpp"

namespace timetrial::libtorch {

struct AlongTime {
    Way way = Way::kPadded;
    std::vector<std::shared_ptr<int64_t>> counts;  // of each layer, the steps that it has computed

    int64_t most() const {
        int64_t found = 0;
        for (const auto& count : counts) found = std::max(found, *count);
        return found;
    }
    void clear_counts() {
        for (const auto& count : counts) *count = 0;
    }
};

inline AlongTime& along_time() {
    static AlongTime one;
    return one;
}

// What a layer along time goes over of its input (N, T, F), and what that gives in the order of the input.
// Without lengths it is all there is.
class Cut {
  public:
    Cut(const at::Tensor& x, const at::Tensor& lengths, int64_t& count) : steps_(x.size(1)), data(x) {
        if (!lengths.defined()) return;
        const Way way = along_time().way;
        if (way == Way::kTrimmed) data = x.narrow(1, 0, lengths.max().item<int64_t>());
        if (way == Way::kPacked) {
            const auto [sorted, order] = lengths.sort(0, true);
            std::tie(data, batch_sizes) = at::_pack_padded_sequence(x.index_select(0, order), sorted, true);
            back_ = order.argsort();
        }
        count += batch_sizes.defined() ? data.size(0) : data.size(0) * data.size(1);
    }

    bool is_packed() const { return batch_sizes.defined(); }
    // (1, N, H) of the last steps that were computed.
    at::Tensor last(const at::Tensor& found) const {
        return is_packed() ? found.index_select(1, back_) : found;
    }
    // (N, T, H), zeros behind what was computed.
    at::Tensor all(const at::Tensor& found) const {
        if (is_packed())
            return std::get<0>(at::_pad_packed_sequence(found, batch_sizes, true, 0.0, steps_))
                .index_select(0, back_);
        const int64_t missing = steps_ - found.size(1);
        const std::array<int64_t, 4> borders{0, 0, 0, missing};
        return missing == 0 ? found : at::constant_pad_nd(found, borders, 0);
    }

  private:
    int64_t steps_;
    at::Tensor back_;

  public:
    at::Tensor data;         // (N, S, F), or the rows of steps that count
    at::Tensor batch_sizes;  // undefined: it is not packed
};

}  // namespace timetrial::libtorch
