#include "controllers/openblas_cores.h"

#include <strings.h>

namespace timetrial {
namespace {

enum class Width { kSse, kAvx, kAvx2, kAvx512 };

struct Core {
    const char* name;
    Width width;  // of the instructions in its kernels
    const char* needs;
    bool (*can_run)();
};

// __builtin_cpu_supports() takes literals only.
bool has_sse3() { return __builtin_cpu_supports("sse3") != 0; }
bool has_sse4a() { return __builtin_cpu_supports("sse4a") != 0; }
bool has_ssse3() { return __builtin_cpu_supports("ssse3") != 0; }
bool has_sse41() { return __builtin_cpu_supports("sse4.1") != 0; }
bool has_sse42() { return __builtin_cpu_supports("sse4.2") != 0; }
bool has_avx() { return __builtin_cpu_supports("avx") != 0; }
bool has_fma4() { return __builtin_cpu_supports("fma4") != 0; }
bool has_avx_and_fma() { return has_avx() && __builtin_cpu_supports("fma"); }
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool has_avx512() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}
bool has_bf16() { return has_avx512() && __builtin_cpu_supports("avx512bf16"); }
bool has_everything_64_bit() { return true; }

const Core cores[] = {
    {"Katmai", Width::kSse, "", has_everything_64_bit},
    {"Coppermine", Width::kSse, "", has_everything_64_bit},
    {"Northwood", Width::kSse, "", has_everything_64_bit},
    {"Banias", Width::kSse, "", has_everything_64_bit},
    {"Athlon", Width::kSse, "", has_everything_64_bit},
    {"Opteron", Width::kSse, "", has_everything_64_bit},
    {"Prescott", Width::kSse, "sse3", has_sse3},
    {"Opteron_SSE3", Width::kSse, "sse3", has_sse3},
    {"Barcelona", Width::kSse, "sse4a", has_sse4a},
    {"Core2", Width::kSse, "ssse3", has_ssse3},
    {"Bobcat", Width::kSse, "ssse3", has_ssse3},
    {"Atom", Width::kSse, "ssse3", has_ssse3},
    {"Nano", Width::kSse, "ssse3", has_ssse3},
    {"Penryn", Width::kSse, "sse4.1", has_sse41},
    {"Dunnington", Width::kSse, "sse4.1", has_sse41},
    {"Nehalem", Width::kSse, "sse4.2", has_sse42},
    {"Sandybridge", Width::kAvx, "avx", has_avx},
    {"Bulldozer", Width::kAvx, "avx and fma4", has_fma4},
    {"Piledriver", Width::kAvx, "avx and fma", has_avx_and_fma},
    {"Steamroller", Width::kAvx, "avx and fma", has_avx_and_fma},
    {"Excavator", Width::kAvx, "avx and fma", has_avx_and_fma},
    {"Haswell", Width::kAvx2, "avx2 and fma", has_avx2},
    {"Zen", Width::kAvx2, "avx2 and fma", has_avx2},
    {"SkylakeX", Width::kAvx512, "avx512f, dq, bw and vl", has_avx512},
    {"Cooperlake", Width::kAvx512, "avx512_bf16", has_bf16},
    {"SapphireRapids", Width::kAvx512, "avx512_bf16", has_bf16},
};

const Core* find_core(std::string_view core) {
    const std::string wanted(core);
    for (const Core& known : cores) {
        if (strcasecmp(known.name, wanted.c_str()) == 0) return &known;
    }
    return nullptr;
}

}  // namespace

std::string openblas_core_problem(std::string_view core) {
    if (const Core* known = find_core(core))
        return known->can_run() ? "" : std::string("its kernels need a CPU with ") + known->needs;
    std::string all;
    for (const Core& known : cores) all += (all.empty() ? "" : ", ") + std::string(known.name);
    return "OpenBLAS has no such core type; it has: " + all;
}

std::string openblas_core_missed(std::string_view core) {
    const Core* known = find_core(core);
    if (!known) return "";
    if (known->width < Width::kAvx512 && has_avx512()) return "AVX-512";
    if (known->width < Width::kAvx2 && has_avx2()) return "AVX2";
    if (known->width < Width::kAvx && has_avx()) return "AVX";
    return "";
}

}  // namespace timetrial
