// The data sets of a job: mapped files, and the streams that batches are gathered from.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "job.h"
#include "npy/npy.h"
#include "session/batch.h"

namespace timetrial {

// Files are mapped: a sample that no batch asks for is never read.
class FileStream {
  public:
    // Throws NpyError for a file that cannot be read, DataError for one that does not fit the network.
    FileStream(const StreamFiles& files, const Network& network, const Batch& batch, tt_task task);

    // The stream, read through once and checked the first time it is asked for. DataError.
    Stream& checked();
    // Of the tensor of that name; all samples, in the data's own order.
    const NpyArray& array(const std::string& name) const { return arrays_.at(name); }

  private:
    std::map<std::string, NpyArray> arrays_;
    std::optional<NpyArray> order_;
    std::optional<Stream> stream_;
    bool is_checked_ = false;
};

}  // namespace timetrial
