#include "data.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "network/c_network.h"
#include "text/text.h"

namespace timetrial {
namespace {

constexpr std::size_t alignment = 64;  // a cache line and the widest vector

void* reserve(std::size_t bytes) {
    void* data = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (data == nullptr) throw std::bad_alloc();
    return data;
}

// The lowest and highest of many numbers, piece by piece; the pages of a piece are given back before the
// next, so that a large file does not count as memory of the contender.
void check_range(const NpyArray& array, std::int64_t limit, const std::string& what) {
    constexpr std::size_t piece = 1 << 16;
    constexpr std::uintptr_t page = 4096;
    const std::int64_t* values = array.i64();
    const std::size_t n = array.elements();
    for (std::size_t from = 0; from < n; from += piece) {
        const std::size_t count = std::min(piece, n - from);
        const std::int64_t outside = first_index_outside(values + from, count, limit);
        if (outside >= 0) {
            const std::int64_t value = values[from + static_cast<std::size_t>(outside)];
            throw NpyError("'" + array.path() + "': " + what + " " + std::to_string(value) +
                           " is not in 0 to " + std::to_string(limit - 1));
        }
        const auto first = reinterpret_cast<std::uintptr_t>(values + from) & ~(page - 1);
        const auto last = reinterpret_cast<std::uintptr_t>(values + from + count);
        madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
    }
}

}  // namespace

void Batch::Free::operator()(void* data) const { std::free(data); }

Batch::Batch(const Network& network) {
    const Node& images = network.node(network.index_of("images"));
    const Node& labels = network.node(network.index_of("labels"));
    images_.reset(reserve(static_cast<std::size_t>(element_count(images.shape)) * sizeof(float)));
    labels_.reset(reserve(static_cast<std::size_t>(element_count(labels.shape)) * sizeof(std::int64_t)));
    for (const Node& node : network.nodes()) {  // in the order of the network's input nodes
        if (node.kind != "input") continue;
        void* data = node.name == "labels" ? labels_.get() : images_.get();
        tensors_.push_back(c_tensor(node.name, TT_INPUT, node.dtype, node.shape, data));
    }
    batch_ = {sizeof(tt_batch), static_cast<std::uint32_t>(tensors_.size()), tensors_.data()};
}

Stream::Stream(const StreamFiles& files, const Network& network, Batch& batch)
    : images_(files.images), labels_(files.labels) {
    const Shape& batch_shape = network.node(network.index_of("images")).shape;
    Shape images_shape = batch_shape;
    images_shape.front() = images_.shape().empty() ? 0 : images_.shape().front();
    images_.f32();
    images_.expect_shape(images_shape);
    labels_.i64();
    labels_.expect_shape({images_shape.front()});
    if (images_shape.front() == 0) throw NpyError("'" + files.images + "' has no samples");

    const auto batch_size = static_cast<std::size_t>(network.batch_size());
    gather_.tensors = {{images_.data(), batch.images(), images_.row_bytes()},
                       {labels_.data(), batch.labels(), sizeof(std::int64_t)}};
    gather_.batch_size = batch_size;
    if (files.order.empty()) {
        use_own_order(batch_size);
        return;
    }
    order_file_ = std::make_unique<NpyArray>(files.order);
    const Shape& order = order_file_->shape();
    order_file_->expect_shape({order.empty() ? 0 : order.front(), network.batch_size()});
    if (order.front() == 0) throw NpyError("'" + files.order + "' has no batches");
    gather_.order = order_file_->i64();
    gather_.batches = static_cast<std::size_t>(order.front());
}

void Stream::use_own_order(std::size_t batch_size) {
    gather_.batches = (samples() + batch_size - 1) / batch_size;
    own_order_.resize(gather_.batches * batch_size);
    for (std::size_t i = 0; i < own_order_.size(); ++i) {
        own_order_[i] = static_cast<std::int64_t>(i % samples());
    }
    gather_.order = own_order_.data();
}

void Stream::check(std::int64_t classes) const {
    check_range(labels_, classes, "the label");
    if (order_file_) check_range(*order_file_, static_cast<std::int64_t>(samples()), "the index");
}

}  // namespace timetrial
