#include "npy/npy.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "npy/header.h"
#include "text/text.h"

namespace timetrial {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxRank = 32;

struct DtypeEntry {
    tt_dtype dtype;
    const char* descr;
    const char* name;
    std::size_t bytes;
};
constexpr DtypeEntry kDtypes[] = {
    {TT_F32, "<f4", "f32", 4}, {TT_F64, "<f8", "f64", 8}, {TT_I64, "<i8", "i64", 8}};

const DtypeEntry& entry_of(tt_dtype dtype) noexcept {
    for (const DtypeEntry& entry : kDtypes)
        if (entry.dtype == dtype) return entry;
    return kDtypes[0];
}

[[noreturn]] void fail(const std::string& path, const std::string& why) { throw NpyError(path + ": " + why); }

// Elements of a shape, or nothing if they cannot be counted.
bool count_elements(const std::vector<std::int64_t>& shape, std::size_t& count) noexcept {
    count = 1;
    for (const std::int64_t extent : shape)
        if (__builtin_mul_overflow(count, static_cast<std::size_t>(extent), &count)) return false;
    return true;
}

bool write_all(int fd, const void* data, std::size_t bytes) noexcept {
    const auto* next = static_cast<const char*>(data);
    while (bytes > 0) {
        const ssize_t written = write(fd, next, bytes);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        next += written;
        bytes -= static_cast<std::size_t>(written);
    }
    return true;
}

}  // namespace

std::size_t dtype_bytes(tt_dtype dtype) noexcept { return entry_of(dtype).bytes; }
const char* dtype_name(tt_dtype dtype) noexcept { return entry_of(dtype).name; }
tt_dtype parse_dtype(const std::string& name) {
    std::vector<std::string> known;
    for (const DtypeEntry& entry : kDtypes) {
        if (name == entry.name) return entry.dtype;
        known.emplace_back(entry.name);
    }
    throw std::invalid_argument("there is no dtype '" + name + "'." + nearest(name, known));
}

NpyArray::NpyArray(const std::string& path) : path_(path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) fail(path, std::strerror(errno));
    struct stat status;
    int error = fstat(fd, &status) != 0 ? errno : 0;
    if (error == 0 && !S_ISREG(status.st_mode)) error = EINVAL;
    if (error == 0 && status.st_size > 0) {
        mapped_bytes_ = static_cast<std::size_t>(status.st_size);
        base_ = mmap(nullptr, mapped_bytes_, PROT_READ, MAP_SHARED, fd, 0);
        if (base_ == MAP_FAILED) {
            error = errno;
            base_ = nullptr;
        }
    }
    close(fd);
    if (error != 0) fail(path, error == EINVAL ? "not a regular file" : std::strerror(error));
    try {
        parse();
    } catch (...) {
        if (base_ != nullptr) munmap(base_, mapped_bytes_);
        throw;
    }
}

NpyArray::NpyArray(NpyArray&& other) noexcept
    : path_(std::move(other.path_)),
      base_(std::exchange(other.base_, nullptr)),
      mapped_bytes_(other.mapped_bytes_),
      dtype_(other.dtype_),
      shape_(std::move(other.shape_)),
      data_(other.data_) {}

NpyArray::~NpyArray() {
    if (base_ != nullptr) munmap(base_, mapped_bytes_);
}

void NpyArray::parse() {
    const std::string_view file(static_cast<const char*>(base_), base_ == nullptr ? 0 : mapped_bytes_);
    if (file.size() < 10 || file.substr(0, kMagic.size()) != kMagic) fail(path_, "not a .npy file");
    const auto byte = [&](std::size_t at) {
        return static_cast<std::size_t>(static_cast<unsigned char>(file[at]));
    };
    const std::size_t version = byte(6);
    if (version < 1 || version > 3)
        fail(path_, ".npy version " + std::to_string(version) + "; expected 1 to 3");
    const std::size_t prefix = version == 1 ? 10 : 12;
    if (file.size() < prefix) fail(path_, "truncated: the header is incomplete");
    const std::size_t header_bytes =
        version == 1 ? byte(8) | byte(9) << 8 : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
    if (file.size() - prefix < header_bytes) fail(path_, "truncated: the header is incomplete");
    const auto header = parse_npy_header(file.substr(prefix, header_bytes));
    if (!header) fail(path_, "the header is not that of a plain array");
    const DtypeEntry* entry = nullptr;
    for (const DtypeEntry& known : kDtypes)
        if (header->descr == known.descr) entry = &known;
    if (entry == nullptr)
        fail(path_, "dtype '" + header->descr + "'; expected '<f4' (f32), '<f8' (f64) or '<i8' (i64)");
    if (header->fortran_order && header->shape.size() > 1)
        fail(path_, "column-major (Fortran) order; expected row-major: save numpy.ascontiguousarray(array)");
    std::size_t count = 0;
    std::size_t bytes = 0;
    if (header->shape.size() > kMaxRank || !count_elements(header->shape, count) ||
        __builtin_mul_overflow(count, entry->bytes, &bytes))
        fail(path_, "shape " + shape_text(header->shape) + " is too large");
    const std::size_t available = file.size() - prefix - header_bytes;
    if (available != bytes)
        fail(path_, (available < bytes ? "truncated: " : "too long: ") + std::to_string(available) +
                        " bytes of data; shape " + shape_text(header->shape) + " of " + entry->name +
                        " needs " + std::to_string(bytes));
    // The format leaves alignment to the writer; numpy aligns to 64 bytes, very old versions to 16.
    if ((prefix + header_bytes) % entry->bytes != 0) fail(path_, "the data is not aligned to its elements");
    dtype_ = entry->dtype;
    shape_ = header->shape;
    data_ = file.data() + prefix + header_bytes;
}

std::size_t NpyArray::elements() const {
    std::size_t count = 0;
    count_elements(shape_, count);  // parse() has seen that it can be counted
    return count;
}

std::size_t NpyArray::row_bytes() const {
    std::size_t bytes = dtype_bytes(dtype_);
    for (std::size_t axis = 1; axis < shape_.size(); ++axis) bytes *= static_cast<std::size_t>(shape_[axis]);
    return bytes;
}

const float* NpyArray::f32() const {
    if (dtype_ != TT_F32) fail(path_, std::string("holds ") + dtype_name(dtype_) + "; expected f32");
    return static_cast<const float*>(data_);
}

const double* NpyArray::f64() const {
    if (dtype_ != TT_F64) fail(path_, std::string("holds ") + dtype_name(dtype_) + "; expected f64");
    return static_cast<const double*>(data_);
}

const std::int64_t* NpyArray::i64() const {
    if (dtype_ != TT_I64) fail(path_, std::string("holds ") + dtype_name(dtype_) + "; expected i64");
    return static_cast<const std::int64_t*>(data_);
}

void NpyArray::expect_shape(const std::vector<std::int64_t>& shape) const {
    if (shape != shape_) fail(path_, "shape " + shape_text(shape_) + "; expected " + shape_text(shape));
}

void write_npy(const std::string& path, tt_dtype dtype, const std::vector<std::int64_t>& shape,
               const void* data) {
    const DtypeEntry& entry = entry_of(dtype);
    const std::string header = format_npy_header({entry.descr, false, shape}, 10);
    std::string start(kMagic);
    start += '\x01';
    start += '\x00';
    start += static_cast<char>(header.size() & 0xff);
    start += static_cast<char>(header.size() >> 8);
    start += header;
    std::size_t count = 0;
    if (!count_elements(shape, count)) fail(path, "shape " + shape_text(shape) + " is too large");
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) fail(path, std::strerror(errno));
    int error =
        write_all(fd, start.data(), start.size()) && write_all(fd, data, count * entry.bytes) ? 0 : errno;
    struct stat status;
    const bool regular = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    if (close(fd) != 0 && error == 0) error = errno;
    if (error != 0) {
        if (regular) unlink(path.c_str());  // never a device or a pipe that someone named
        fail(path, std::string("could not be written: ") + std::strerror(error));
    }
}

}  // namespace timetrial
