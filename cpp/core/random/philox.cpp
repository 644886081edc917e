#include "random/philox.h"

namespace timetrial {
namespace {

constexpr std::uint32_t kMultiplier0 = 0xD2511F53;
constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9;  // golden ratio
constexpr std::uint32_t kWeyl1 = 0xBB67AE85;  // sqrt(3) - 1

constexpr std::uint32_t low(std::uint64_t word) noexcept { return static_cast<std::uint32_t>(word); }
constexpr std::uint32_t high(std::uint64_t word) noexcept { return static_cast<std::uint32_t>(word >> 32); }

}  // namespace

PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) noexcept {
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t product0 = std::uint64_t{kMultiplier0} * counter[0];
        const std::uint64_t product1 = std::uint64_t{kMultiplier1} * counter[2];
        counter = {high(product1) ^ counter[1] ^ key[0], low(product1), high(product0) ^ counter[3] ^ key[1],
                   low(product0)};
        key[0] += kWeyl0;
        key[1] += kWeyl1;
    }
    return counter;
}

std::uint64_t fnv1a_64(std::string_view name) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char character : name) {
        hash ^= static_cast<unsigned char>(character);
        hash *= 0x100000001b3;
    }
    return hash;
}

PhiloxStream::PhiloxStream(std::uint64_t seed, std::string_view stream) noexcept
    : key_{low(seed), high(seed)}, stream_(fnv1a_64(stream)) {}

std::uint32_t PhiloxStream::next_u32() noexcept {
    if (used_ == words_.size()) {
        words_ = philox4x32({low(block_), high(block_), low(stream_), high(stream_)}, key_);
        ++block_;
        used_ = 0;
    }
    return words_[used_++];
}

std::uint64_t PhiloxStream::next_u64() noexcept {
    const std::uint64_t lower = next_u32();
    return lower | std::uint64_t{next_u32()} << 32;
}

std::uint64_t PhiloxStream::next_below(std::uint64_t n) noexcept {
    const std::uint64_t rejected = (0 - n) % n;  // 2^64 mod n
    std::uint64_t word = next_u64();
    while (word < rejected) word = next_u64();
    return word % n;
}

}  // namespace timetrial
