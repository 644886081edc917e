#include "recorder/recorder.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace timetrial {
namespace {

constexpr std::uint64_t kMaxTimeNs = (std::uint64_t{1} << 56) - 1;

// Reads exactly `bytes` at `offset`; 0, an errno value, or EBADMSG where the file ends too early.
int read_at(int fd, void* target, std::size_t bytes, std::uint64_t offset) noexcept {
    auto* next = static_cast<char*>(target);
    while (bytes > 0) {
        const ssize_t got = pread(fd, next, bytes, static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno;
        if (got == 0) return EBADMSG;
        next += got;
        offset += static_cast<std::uint64_t>(got);
        bytes -= static_cast<std::size_t>(got);
    }
    return 0;
}

int write_header(int fd, std::uint32_t capacity) noexcept {
    tt_recorder_header header{};
    std::memcpy(header.magic, TT_RECORDER_MAGIC, sizeof header.magic);
    header.version = TT_RECORDER_VERSION;
    header.capacity = capacity;
    const ssize_t written = pwrite(fd, &header, sizeof header, 0);
    if (written < 0) return errno;
    return written == static_cast<ssize_t>(sizeof header) ? 0 : ENOSPC;
}

int check_header(const tt_recorder_header& header) noexcept {
    if (std::memcmp(header.magic, TT_RECORDER_MAGIC, sizeof header.magic) != 0) return EBADMSG;
    if (header.version != TT_RECORDER_VERSION) return EPROTO;
    if (header.capacity == 0 || header.capacity > TT_WINDOW_CAPACITY) return EBADMSG;
    return 0;
}

int reserve(int fd, std::uint64_t first, std::uint64_t bytes) noexcept {
    int error = 0;
    do {
        error = posix_fallocate(fd, static_cast<off_t>(first), static_cast<off_t>(bytes));
    } while (error == EINTR);
    return error;
}

}  // namespace

int MappedRange::map(int fd, std::uint64_t first, std::size_t bytes) noexcept {
    const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    const std::uint64_t start = first / page * page;
    const std::size_t length = static_cast<std::size_t>((first + bytes + page - 1) / page * page - start);
    void* base = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(start));
    if (base == MAP_FAILED) return errno;
    base_ = base;
    data_ = static_cast<char*>(base) + (first - start);
    mapped_bytes_ = length;
    return 0;
}

void MappedRange::unmap() noexcept {
    if (base_ != nullptr) munmap(base_, mapped_bytes_);
    base_ = data_ = nullptr;
    mapped_bytes_ = 0;
}

int Recorder::open(int fd, std::uint32_t capacity) noexcept {
    if (capacity > TT_WINDOW_CAPACITY) return EINVAL;
    struct stat status;
    if (fstat(fd, &status) != 0) return errno;
    tt_recorder_header header{};
    if (status.st_size == 0) {
        header.capacity = capacity == 0 ? static_cast<std::uint32_t>(TT_WINDOW_CAPACITY) : capacity;
        if (const int error = write_header(fd, header.capacity)) return error;
    } else {
        if (const int error = read_at(fd, &header, sizeof header, 0)) return error;
        if (const int error = check_header(header)) return error;
        if (capacity != 0 && capacity != header.capacity) return EINVAL;
    }
    fd_ = fd;
    capacity_ = header.capacity;
    return 0;
}

int Recorder::begin(std::uint32_t window, std::uint32_t entries) noexcept {
    if (next_ != nullptr) return EBUSY;
    if (fd_ < 0) return EBADF;
    if (entries == 0 || entries > capacity_) return EINVAL;
    // One word more than asked: the zero behind the last stamp, where an earlier segment may have written.
    const std::size_t words = std::min(entries + 1, capacity_);
    const std::uint64_t stamps_at = window_offset(window, capacity_);
    const std::uint64_t losses_at = losses_offset(window, capacity_);
    // The whole window is reserved at once: a reader may then map it without a look at the file's size.
    if (const int error = reserve(fd_, stamps_at, std::uint64_t{16} * capacity_)) return error;
    if (const int error = stamp_range_.map(fd_, stamps_at, words * 8)) return error;
    if (const int error = loss_range_.map(fd_, losses_at, std::size_t{entries} * 8)) {
        stamp_range_.unmap();
        return error;
    }
    std::memset(stamp_range_.data(), 0, words * 8);
    std::memset(loss_range_.data(), 0, std::size_t{entries} * 8);
    next_ = stamps();
    limit_ = next_ + entries;
    return 0;
}

int Recorder::end(std::uint32_t* written_stamps, std::uint64_t* bytes) noexcept {
    if (next_ == nullptr) return EBADF;
    if (written_stamps != nullptr) *written_stamps = written();
    if (bytes != nullptr) *bytes = mapped_bytes();
    stamp_range_.unmap();
    loss_range_.unmap();
    next_ = limit_ = nullptr;
    return 0;
}

int Recorder::stamp_at(std::uint32_t boundary, std::uint64_t time_ns) noexcept {
    if (next_ == limit_ || boundary > 0xff) return refusal(boundary);
    // A stamp of zero would read as the end of the window.
    if (time_ns == 0 || time_ns > kMaxTimeNs) return EINVAL;
    *next_++ = time_ns << 8 | boundary;
    return 0;
}

int Recorder::refusal(std::uint32_t boundary) const noexcept {
    if (next_ == nullptr) return EBADF;
    return boundary > 0xff ? EINVAL : ENOSPC;
}

int create_recorder_file(std::uint32_t windows, std::uint32_t capacity) noexcept {
    if (windows == 0 || capacity == 0 || capacity > TT_WINDOW_CAPACITY) return -EINVAL;
    const int fd = memfd_create("timetrial-recorder", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return -errno;
    int error = reserve(fd, 0, window_offset(windows, capacity));
    if (error == 0) error = write_header(fd, capacity);
    // Its size is agreed: a writer that changed it would end a reader that has it mapped.
    if (error == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) error = errno;
    if (error == 0) return fd;
    close(fd);
    return -error;
}

int read_window(int fd, std::uint32_t window, WindowContent& content) {
    tt_recorder_header header{};
    if (const int error = read_at(fd, &header, sizeof header, 0)) return error;
    if (const int error = check_header(header)) return error;
    content.stamps.assign(header.capacity, 0);
    const int stamps_error = read_at(fd, content.stamps.data(), std::size_t{8} * header.capacity,
                                     window_offset(window, header.capacity));
    if (stamps_error != 0) return stamps_error == EBADMSG ? EINVAL : stamps_error;
    content.stamps.erase(std::find(content.stamps.begin(), content.stamps.end(), 0u), content.stamps.end());
    const auto steps = std::count_if(content.stamps.begin(), content.stamps.end(),
                                     [](std::uint64_t stamp) { return tt_stamp_boundary(stamp) == TT_STEP; });
    content.losses.assign(static_cast<std::size_t>(steps), 0.0);
    return read_at(fd, content.losses.data(), 8 * content.losses.size(),
                   losses_offset(window, header.capacity));
}

}  // namespace timetrial
