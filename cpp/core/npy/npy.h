// NumPy's .npy files (numpy.lib.format): f32, f64 and i64, little-endian, row-major.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "timetrial/backend.h"

namespace timetrial {

// A file that cannot be read or written, or holds something else: the text names the file.
class NpyError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Bytes of one element.
std::size_t dtype_bytes(tt_dtype dtype) noexcept;
// "f32", "f64", "i64".
const char* dtype_name(tt_dtype dtype) noexcept;
// The other way; std::invalid_argument for another word.
tt_dtype parse_dtype(const std::string& name);

// An array in a file, mapped read-only: pages are read when touched and shared between processes.
class NpyArray {
  public:
    explicit NpyArray(const std::string& path);
    NpyArray(NpyArray&& other) noexcept;
    NpyArray(const NpyArray&) = delete;
    NpyArray& operator=(const NpyArray&) = delete;
    ~NpyArray();

    const std::string& path() const { return path_; }
    tt_dtype dtype() const { return dtype_; }
    const std::vector<std::int64_t>& shape() const { return shape_; }
    std::size_t elements() const;
    // Bytes of one row: of everything behind the first extent.
    std::size_t row_bytes() const;
    const void* data() const { return data_; }
    // The data as f32 (f64, i64); NpyError if the file holds another type.
    const float* f32() const;
    const double* f64() const;
    const std::int64_t* i64() const;
    // NpyError unless the shape is that.
    void expect_shape(const std::vector<std::int64_t>& shape) const;

  private:
    void parse();

    std::string path_;
    void* base_ = nullptr;
    std::size_t mapped_bytes_ = 0;
    tt_dtype dtype_ = TT_F32;
    std::vector<std::int64_t> shape_;
    const void* data_ = nullptr;
};

// Writes format version 1.0. Throws NpyError; a regular file that could not be finished is removed.
void write_npy(const std::string& path, tt_dtype dtype, const std::vector<std::int64_t>& shape,
               const void* data);

}  // namespace timetrial
