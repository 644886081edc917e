#include "data.h"

namespace timetrial {
namespace {

Samples samples_of(const NpyArray& array) {
    return {"'" + array.path() + "'", array.dtype(), array.shape(), array.data(), /*is_file=*/true};
}

}  // namespace

FileStream::FileStream(const StreamFiles& files, const Network& network, const Batch& batch) {
    std::map<std::string, Samples> samples;
    for (const auto& [name, file] : files.tensors)
        samples.emplace(name, samples_of(arrays_.emplace(name, NpyArray(file)).first->second));
    if (files.order.empty()) {
        stream_.emplace(network, batch, samples, nullptr);
        return;
    }
    order_.emplace(files.order);
    const Samples order = samples_of(*order_);
    stream_.emplace(network, batch, samples, &order);
}

Stream& FileStream::checked() {
    if (!is_checked_) stream_->check();
    is_checked_ = true;
    return *stream_;
}

}  // namespace timetrial
