// Memory of a layer: 64-byte aligned (a cache line, an AVX-512 register), zeroed, never grown.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace timetrial::layers {

template <typename T>
class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(int64_t size) : size_(size) {
        const auto bytes = (static_cast<size_t>(size) * sizeof(T) + 63) / 64 * 64;
        data_.reset(static_cast<T*>(std::aligned_alloc(64, bytes == 0 ? 64 : bytes)));
        if (!data_) throw std::bad_alloc();
        zero();
    }

    T* data() { return data_.get(); }
    const T* data() const { return data_.get(); }
    int64_t size() const { return size_; }
    void zero() { std::memset(data_.get(), 0, static_cast<size_t>(size_) * sizeof(T)); }

  private:
    struct Free {
        void operator()(T* data) const { std::free(data); }
    };
    std::unique_ptr<T, Free> data_;
    int64_t size_ = 0;
};

}  // namespace timetrial::layers
