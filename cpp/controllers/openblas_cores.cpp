#include "controllers/openblas_cores.h"

#include <strings.h>

namespace timetrial {
namespace {

struct Core {
    const char* name;
    const char* needs;  // of the CPU
    bool (*can_run)();
};

// __builtin_cpu_supports() takes literals only.
const Core cores[] = {
    {"Prescott", "sse3", [] { return __builtin_cpu_supports("sse3") != 0; }},
    {"Core2", "ssse3", [] { return __builtin_cpu_supports("ssse3") != 0; }},
    {"Nehalem", "sse4.2", [] { return __builtin_cpu_supports("sse4.2") != 0; }},
    {"Sandybridge", "avx", [] { return __builtin_cpu_supports("avx") != 0; }},
    {"Haswell", "avx2 and fma",
     [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }},
    {"Zen", "avx2 and fma", [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }},
    {"SkylakeX", "avx512f, dq, bw and vl",
     [] {
         return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
     }},
    {"Cooperlake", "avx512_bf16", [] { return __builtin_cpu_supports("avx512bf16") != 0; }},
};

}  // namespace

std::string openblas_core_problem(std::string_view core) {
    const std::string wanted(core);
    for (const Core& known : cores) {
        if (strcasecmp(known.name, wanted.c_str()) != 0) continue;
        return known.can_run() ? "" : std::string("its kernels need a CPU with ") + known.needs;
    }
    std::string all;
    for (const Core& known : cores) all += (all.empty() ? "" : ", ") + std::string(known.name);
    return "OpenBLAS has no such core type; it has: " + all;
}

}  // namespace timetrial
