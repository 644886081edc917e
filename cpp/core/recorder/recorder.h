// The recorder behind tt_recorder_*: stamps in a mapped file that survive the death of their writer.
// The file's layout and the meaning of a stamp are in timetrial/recorder.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "clock/clock.h"
#include "timetrial/recorder.h"

namespace timetrial {

// A stretch of a file, mapped shared and writable. `first` is the wanted byte; the mapping begins at its
// page.
class MappedRange {
  public:
    MappedRange() = default;
    MappedRange(const MappedRange&) = delete;
    MappedRange& operator=(const MappedRange&) = delete;
    ~MappedRange() { unmap(); }

    // 0 or an errno value.
    int map(int fd, std::uint64_t first, std::size_t bytes) noexcept;
    void unmap() noexcept;
    void* data() const noexcept { return data_; }
    std::size_t mapped_bytes() const noexcept { return mapped_bytes_; }

  private:
    void* base_ = nullptr;
    void* data_ = nullptr;
    std::size_t mapped_bytes_ = 0;
};

class Recorder {
  public:
    // Opens the recorder on `fd`, which stays the caller's. `capacity` 0 takes the file's own (for a file
    // without header: TT_WINDOW_CAPACITY). Returns 0 or an errno value: EBADMSG if the file is no recorder
    // file, EPROTO if it has another version, EINVAL if it has another capacity.
    int open(int fd, std::uint32_t capacity) noexcept;

    // The functions of the same name in timetrial/recorder.h. EBUSY: a window is open already; EBADF: none
    // is.
    int begin(std::uint32_t window, std::uint32_t entries) noexcept;
    int end(std::uint32_t* written, std::uint64_t* bytes) noexcept;
    int stamp_at(std::uint32_t boundary, std::uint64_t time_ns) noexcept;
    int stamp(std::uint32_t boundary) noexcept {
        if (next_ == limit_ || boundary > 0xff) [[unlikely]]
            return refusal(boundary);
        stamp_unchecked(boundary);
        return 0;
    }

    bool has_room() const noexcept { return next_ != limit_; }
    // For the loop, which has looked at has_room(): returns the time of the stamp.
    std::uint64_t stamp_unchecked(std::uint32_t boundary) noexcept {
        const std::uint64_t time_ns = now_ns();
        *next_++ = time_ns << 8 | boundary;
        return time_ns;
    }

    std::uint32_t capacity() const noexcept { return capacity_; }
    std::uint32_t written() const noexcept { return static_cast<std::uint32_t>(next_ - stamps()); }
    double* losses() const noexcept { return static_cast<double*>(loss_range_.data()); }
    std::uint64_t mapped_bytes() const noexcept {
        return stamp_range_.mapped_bytes() + loss_range_.mapped_bytes();
    }

  private:
    std::uint64_t* stamps() const noexcept { return static_cast<std::uint64_t*>(stamp_range_.data()); }
    int refusal(std::uint32_t boundary) const noexcept;

    std::uint64_t* next_ = nullptr;   // where the next stamp goes
    std::uint64_t* limit_ = nullptr;  // equal to next_ when there is no room or no window
    int fd_ = -1;
    std::uint32_t capacity_ = 0;
    MappedRange stamp_range_;
    MappedRange loss_range_;
};

// Byte of the file at which a window's stamps (its losses) start.
inline std::uint64_t window_offset(std::uint32_t window, std::uint32_t capacity) noexcept {
    return TT_RECORDER_PAGE + std::uint64_t{window} * 16 * capacity;
}
inline std::uint64_t losses_offset(std::uint32_t window, std::uint32_t capacity) noexcept {
    return window_offset(window, capacity) + std::uint64_t{8} * capacity;
}

// A memfd with a header and all its room reserved, so that no later write can fail; its size is sealed.
// Returns the descriptor, or minus an errno value (ENOSPC, ENOMEM: not enough memory for it).
int create_recorder_file(std::uint32_t windows, std::uint32_t capacity) noexcept;

// What a window holds now: the stamps before the first zero word, and one loss for each TT_STEP among
// them. Safe while the writer writes, and after it was killed.
struct WindowContent {
    std::vector<std::uint64_t> stamps;
    std::vector<double> losses;
};
// 0 or an errno value; the same ones as Recorder::open, and EINVAL for a window that the file does not have.
int read_window(int fd, std::uint32_t window, WindowContent& content);

}  // namespace timetrial
