// The machine's f32 peak: measured, because nominal clock rates are wishes.
#pragma once

#include <cstdint>
#include <string>

namespace timetrial {

struct Peak {
    std::string isa;  // "avx512", "avx2", "sse2": the fastest here, which need not be the widest
    int threads = 0;
    double flops_per_s = 0;  // of all threads together; a multiply-add counts as two
};

// n threads, pinned nowhere, run independent multiply-adds in registers at the same time, for `seconds` in
// all; the best of several short windows counts, because everything that disturbs one only takes away. Each
// ISA of this CPU has windows, in turn: the widest vectors may run at a lower clock than narrower ones.
// Throws std::invalid_argument unless threads >= 1 and seconds > 0.
Peak measure_peak_flops(int threads, double seconds);

// The loops, one per ISA: `rounds` times one multiply-add on each lane of each accumulator. They return the
// floating-point operations done. Calling one that the CPU does not have ends in SIGILL.
std::uint64_t multiply_add_avx512(std::uint64_t rounds);
std::uint64_t multiply_add_avx2(std::uint64_t rounds);
std::uint64_t multiply_add_sse2(std::uint64_t rounds);

}  // namespace timetrial
