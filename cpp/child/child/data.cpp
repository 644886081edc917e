#include "data.h"

namespace timetrial {
namespace {

Samples samples_of(const NpyArray& array) {
    return {"'" + array.path() + "'", array.dtype(), array.shape(), array.data(), /*is_file=*/true};
}

}  // namespace

FileStream::FileStream(const StreamFiles& files, const Network& network, const Batch& batch, tt_task task) {
    std::map<std::string, Samples> samples;
    for (const auto* group : {&files.tensors, &files.drawn})
        for (const auto& [name, file] : *group) {
            Samples array = samples_of(arrays_.emplace(name, NpyArray(file)).first->second);
            array.is_drawn = group == &files.drawn;
            samples.emplace(name, array);
        }
    if (files.order.empty()) {
        stream_.emplace(network, batch, samples, nullptr, false);
        return;
    }
    order_.emplace(files.order);
    const Samples order = samples_of(*order_);
    stream_.emplace(network, batch, samples, &order, task != TT_FORWARD);
}

Stream& FileStream::checked() {
    if (!is_checked_) stream_->check();
    is_checked_ = true;
    return *stream_;
}

}  // namespace timetrial
