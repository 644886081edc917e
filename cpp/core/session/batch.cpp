#include "session/batch.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "network/c_network.h"
#include "npy/npy.h"
#include "text/text.h"

namespace timetrial {
namespace {

constexpr std::size_t alignment = 64;  // a cache line and the widest vector

void* reserve(std::size_t bytes) {
    void* data = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (data == nullptr) throw std::bad_alloc();
    return data;
}

std::size_t bytes_of(const tt_tensor& tensor) {
    return static_cast<std::size_t>(element_count({tensor.shape, tensor.shape + tensor.rank})) *
           dtype_bytes(static_cast<tt_dtype>(tensor.dtype));
}

void expect(const Samples& array, tt_dtype dtype, const Shape& shape) {
    if (array.dtype != dtype)
        throw DataError(array.where + " holds " + dtype_name(array.dtype) + ", expected " +
                        dtype_name(dtype));
    if (array.shape != shape)
        throw DataError(array.where + " has shape " + shape_text(array.shape) + ", expected " +
                        shape_text(shape));
}

// Piece by piece; the pages of a file's piece are given back before the next, so that a large file does not
// count as memory of the contender.
void check_range(const Samples& array, std::int64_t least, std::int64_t below, const char* what) {
    constexpr std::size_t piece = 1 << 16;
    constexpr std::uintptr_t page = 4096;
    const auto* values = static_cast<const std::int64_t*>(array.data);
    const auto n = static_cast<std::size_t>(element_count(array.shape));
    for (std::size_t from = 0; from < n; from += piece) {
        const std::size_t count = std::min(piece, n - from);
        const std::int64_t outside = first_index_outside(values + from, count, below, least);
        if (outside >= 0) {
            const std::size_t at = from + static_cast<std::size_t>(outside);
            throw DataError(array.where + ": " + what + " " + std::to_string(values[at]) + " is not in " +
                            std::to_string(least) + " to " + std::to_string(below - 1) + " (place " +
                            std::to_string(at) + ")");
        }
        if (!array.is_file) continue;
        const auto first = reinterpret_cast<std::uintptr_t>(values + from) & ~(page - 1);
        const auto last = reinterpret_cast<std::uintptr_t>(values + from + count);
        madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
    }
}

}  // namespace

void Batch::Free::operator()(void* data) const { std::free(data); }

Batch::Batch(const Network& network) {
    for (const std::uint32_t index : network.inputs()) {
        const Node& node = network.node(index);
        tt_tensor tensor = c_tensor(node.name, node.role, node.dtype, node.shape, nullptr);
        memory_.emplace_back(reserve(bytes_of(tensor)));
        tensor.data = memory_.back().get();
        tensors_.push_back(tensor);
    }
    batch_ = {sizeof(tt_batch), static_cast<std::uint32_t>(tensors_.size()), tensors_.data()};
}

Stream::Stream(const Network& network, const Batch& batch, std::map<std::string, Samples> arrays,
               const Samples* order, bool needs_masks) {
    gather_.batch_size = static_cast<std::size_t>(network.batch_size());
    std::vector<std::string> names;
    for (const tt_tensor& tensor : batch.tensors()) names.emplace_back(tensor.name);
    for (const auto& [name, array] : arrays)
        if (std::find(names.begin(), names.end(), name) == names.end())
            throw DataError(array.where + " is for '" + name + "', which is no input of the network." +
                            nearest(name, names));
    std::int64_t samples = -1;
    for (const tt_tensor& tensor : batch.tensors()) {
        const auto found = arrays.find(tensor.name);
        if (found == arrays.end() && tensor.role == TT_MASK && !needs_masks) continue;
        if (found == arrays.end())
            throw DataError(std::string("the data have nothing for the input '") + tensor.name + "'");
        const Samples& array = found->second;
        const std::int64_t rows = array.shape.empty() ? 0 : array.shape.front();
        if (rows == 0) throw DataError(array.where + " has no " + (array.is_drawn ? "rows" : "samples"));
        if (samples < 0 && !array.is_drawn) samples = rows;
        Shape shape(tensor.shape, tensor.shape + tensor.rank);
        shape.front() = array.is_drawn ? rows : samples;
        expect(array, static_cast<tt_dtype>(tensor.dtype), shape);
        gather_.tensors.push_back({array.data, tensor.data, bytes_of(tensor) / gather_.batch_size,
                                   array.is_drawn ? static_cast<std::size_t>(rows) : 0});
        const std::uint32_t index = network.index_of(tensor.name);
        const std::int64_t below = network.values_below(index);
        if (below > 0)
            limited_.push_back({array, network.values_from(index), below,
                                tensor.role == TT_TARGET ? "the label" : "the value"});
    }
    samples_ = static_cast<std::size_t>(std::max<std::int64_t>(samples, 0));
    if (order == nullptr) {
        use_own_order();
        return;
    }
    expect(*order, TT_I64, {order->shape.empty() ? 0 : order->shape.front(), network.batch_size()});
    if (order->shape.front() == 0) throw DataError(order->where + " has no batches");
    gather_.order = static_cast<const std::int64_t*>(order->data);
    gather_.batches = static_cast<std::size_t>(order->shape.front());
    limited_.push_back({*order, 0, samples, "the index"});
}

void Stream::use_own_order() {
    gather_.batches = (samples_ + gather_.batch_size - 1) / gather_.batch_size;
    own_order_.resize(gather_.batches * gather_.batch_size);
    for (std::size_t i = 0; i < own_order_.size(); ++i)
        own_order_[i] = static_cast<std::int64_t>(i % samples_);
    gather_.order = own_order_.data();
}

void Stream::check() const {
    for (const Limited& limited : limited_)
        check_range(limited.array, limited.least, limited.below, limited.what);
}

}  // namespace timetrial
