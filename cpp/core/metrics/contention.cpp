#include "metrics/contention.h"

#include <time.h>

#include <array>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "clock/clock.h"

namespace timetrial {
namespace {

constexpr std::uint64_t window_ns = 2'000'000;
constexpr std::size_t hops = 256;  // between two looks at the clock
constexpr std::uint64_t least_bytes = 4096;

// Of this thread: where others have the CPU, it stands still.
std::uint64_t cpu_ns() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(time.tv_nsec);
}

// A cache line: where the next one is, and numbers to add up.
struct alignas(64) Line {
    std::uint64_t next = 0;
    std::array<std::uint64_t, 7> numbers{};
};

class Array {
  public:
    explicit Array(std::uint64_t bytes)
        : count_(bytes / sizeof(Line)), lines_(std::make_unique<Line[]>(count_)) {
        link();
    }

    double run(bool is_chase) {
        std::uint64_t lines = 0;
        const std::uint64_t start_ns = now_ns(), cpu_start_ns = cpu_ns();
        do {
            if (is_chase) {
                chase();
            } else {
                sweep();
            }
            lines += hops;
        } while (now_ns() - start_ns < window_ns);
        return static_cast<double>(cpu_ns() - cpu_start_ns) / static_cast<double>(lines);
    }

  private:
    // One ring through all lines, in an order that no prefetcher guesses (Sattolo 1986). The random numbers
    // are Marsaglia's xorshift (2003): good enough, and always the same.
    void link() {
        for (std::size_t i = 0; i < count_; ++i) lines_[i].next = i;
        std::uint64_t random = 88172645463325252u;
        for (std::size_t i = count_ - 1; i > 0; --i) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            std::swap(lines_[i].next, lines_[random % i].next);
        }
    }

    void chase() {
        for (std::size_t hop = 0; hop < hops; ++hop) place_ = lines_[place_].next;
        keep(place_);
    }

    void sweep() {
        std::uint64_t sum = 0;
        for (std::size_t line = 0; line < hops; ++line) {
            const Line& read = lines_[swept_];
            for (const std::uint64_t number : read.numbers) sum += number;
            swept_ = swept_ + 1 == count_ ? 0 : swept_ + 1;
        }
        keep(sum);
    }

    // Nobody may leave out what makes this number.
    static void keep(std::uint64_t number) { asm volatile("" : : "r"(number) : "memory"); }

    std::size_t count_;
    std::unique_ptr<Line[]> lines_;
    std::uint64_t place_ = 0;
    std::size_t swept_ = 0;
};

}  // namespace

std::vector<Reads> read_evenly(const std::vector<std::uint64_t>& sizes, double seconds) {
    if (sizes.empty())
        throw std::invalid_argument("sizes is empty; expected the bytes of at least one array");
    for (const std::uint64_t size : sizes) {
        if (size < least_bytes)
            throw std::invalid_argument("a size of " + std::to_string(size) + " bytes; expected at least " +
                                        std::to_string(least_bytes));
    }
    if (!(seconds > 0 && seconds <= 60)) {
        throw std::invalid_argument("seconds = " + std::to_string(seconds) +
                                    "; expected more than 0, at most 60");
    }
    std::vector<Array> arrays;
    std::vector<Reads> found;
    for (const std::uint64_t size : sizes) {
        arrays.emplace_back(size);
        for (const bool is_chase : {true, false}) found.push_back({size, is_chase, {}});
    }
    const std::uint64_t start_ns = now_ns();
    const auto limit_ns = static_cast<std::uint64_t>(seconds * 1e9);
    bool is_first = true;  // it brings the arrays into the caches, and does not count
    do {
        for (std::size_t i = 0; i < found.size(); ++i) {
            const double ns = arrays[i / 2].run(found[i].is_chase);
            if (!is_first) found[i].ns_per_line.push_back(ns);
        }
        is_first = false;
    } while (now_ns() - start_ns < limit_ns || found.front().ns_per_line.empty());
    return found;
}

}  // namespace timetrial
