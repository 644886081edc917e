// Philox4x32-10, a counter-based generator: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011. A number depends on its seed, its stream's name and its place, on nothing else: the same
// on every machine and in every language.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace timetrial {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

// The bare function: ten rounds.
PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) noexcept;

// 64-bit FNV-1a (Fowler, Noll, Vo) of the bytes of a name.
std::uint64_t fnv1a_64(std::string_view name) noexcept;

// Numbers of one stream, in order. The key is the seed, the upper half of the counter the hash of the
// stream's name, the lower half counts blocks of four words (all little end first): two streams never
// meet unless their names' 64-bit hashes are equal.
class PhiloxStream {
  public:
    PhiloxStream(std::uint64_t seed, std::string_view stream) noexcept;

    std::uint32_t next_u32() noexcept;
    // The earlier word is the lower half.
    std::uint64_t next_u64() noexcept;
    // In [0, 1), a multiple of 2^-24: the upper 24 bits of a word, so exact in f32.
    double next_unit() noexcept { return static_cast<double>(next_u32() >> 8) * 0x1p-24; }
    // Uniform in [0, n), n > 0, without bias: words below 2^64 mod n are thrown away, the rest taken mod n.
    std::uint64_t next_below(std::uint64_t n) noexcept;

  private:
    PhiloxKey key_;
    std::uint64_t stream_;
    std::uint64_t block_ = 0;
    PhiloxCounter words_{};
    unsigned used_ = 4;
};

}  // namespace timetrial
