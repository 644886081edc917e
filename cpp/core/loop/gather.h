// Gathers a batch: copies the rows that an order names from a data set into the batch's tensors. The same
// code serves timetrial-child and the runtime of every interpreter, so the data part costs the same
// everywhere.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace timetrial {

// destination row i = source row indices[i], for i < n. No row may be outside the source.
inline void gather_rows(void* destination, const void* source, std::size_t row_bytes,
                        const std::int64_t* indices, std::size_t n) noexcept {
    auto* to = static_cast<char*>(destination);
    const auto* from = static_cast<const char*>(source);
    for (std::size_t i = 0; i < n; ++i)
        std::memcpy(to + i * row_bytes, from + static_cast<std::size_t>(indices[i]) * row_bytes, row_bytes);
}

// destination row i = source row (first + i) mod rows, for i < n.
inline void take_rows(void* destination, const void* source, std::size_t row_bytes, std::size_t rows,
                      std::size_t first, std::size_t n) noexcept {
    auto* to = static_cast<char*>(destination);
    for (std::size_t done = 0, at = first % rows; done < n; at = 0) {
        const std::size_t count = std::min(n - done, rows - at);
        std::memcpy(to + done * row_bytes, static_cast<const char*>(source) + at * row_bytes,
                    count * row_bytes);
        done += count;
    }
}

// One tensor of a batch and the array it is filled from.
struct GatheredTensor {
    const void* source;
    void* destination;
    std::size_t row_bytes;
    // Rows of a source that belong to no sample and are taken one after the other; 0: those of the order.
    std::size_t drawn_rows = 0;
};

// A stream of batches: step k uses row k mod batches of the order (i64, batches x batch_size).
struct Gather {
    std::vector<GatheredTensor> tensors;
    const std::int64_t* order = nullptr;
    std::size_t batches = 0;
    std::size_t batch_size = 0;
    std::size_t next = 0;  // the row of the order that the next batch uses

    // Fills every tensor with the current batch and does not advance.
    void fill() const noexcept {
        const std::int64_t* row = order + next * batch_size;
        for (const GatheredTensor& tensor : tensors) {
            if (tensor.drawn_rows > 0)
                take_rows(tensor.destination, tensor.source, tensor.row_bytes, tensor.drawn_rows,
                          next * batch_size, batch_size);
            else
                gather_rows(tensor.destination, tensor.source, tensor.row_bytes, row, batch_size);
        }
    }
    void advance() noexcept { next = next + 1 == batches ? 0 : next + 1; }

    // For tt_loop_part: user is the Gather.
    static int call(void* user, double*) {
        auto* gather = static_cast<Gather*>(user);
        gather->fill();
        gather->advance();
        return 0;
    }
};

// The first index of an order that is not a row of `rows`, or -1: to be checked once, before the loop.
// `least`: where other numbers may be smaller than an index.
inline std::int64_t first_index_outside(const std::int64_t* order, std::size_t n, std::int64_t rows,
                                        std::int64_t least = 0) noexcept {
    for (std::size_t i = 0; i < n; ++i)
        if (order[i] < least || order[i] >= rows) return static_cast<std::int64_t>(i);
    return -1;
}

}  // namespace timetrial
