#include "controllers/blas.h"

#include <dlfcn.h>

#include <cstdint>
#include <utility>

namespace timetrial {
namespace {

template <typename Function>
Function* as(void* symbol) {
    return reinterpret_cast<Function*>(symbol);
}

// The branches of MKL's conditional numerical reproducibility, as mkl_types.h numbers them: the instruction
// set that its dispatcher found best.
const char* mkl_branch(int code) {
    switch (code) {
        case 3:
            return "COMPATIBLE";
        case 4:
            return "SSE2";
        case 8:
            return "SSE4.2";
        case 10:
            return "AVX2";
        case 12:
            return "AVX512";
        case 14:
            return "AVX512_E1";
        case 15:
            return "AVX10";
        default:
            return "";
    }
}

}  // namespace

BlasControl::BlasControl(void* library, std::string prefix, std::string suffix)
    : library_(library), prefix_(std::move(prefix)), suffix_(std::move(suffix)) {
    const auto named = [&](const char* function) { return prefix_ + function + suffix_; };
    const std::pair<const char*, std::string> signs[] = {
        {"OpenBLAS", named("openblas_get_config")},
        // Builds for one CPU that were linked into something else may lack the rest.
        {"OpenBLAS", named("openblas_get_num_threads")},
        {"BLIS", "bli_thread_get_num_threads"},
        {"MKL", "MKL_Get_Max_Threads"},
        {"ATLAS", "ATL_sgemm"},
    };
    for (const auto& [vendor, sign] : signs) {
        if (!dlsym(library_, sign.c_str())) continue;
        vendor_ = vendor;
        sign_ = sign;
        return;
    }
}

void* BlasControl::find(const std::string& name) const {
    return dlsym(library_, (prefix_ + name + suffix_).c_str());
}

// Old versions export only the second, which answers for builds with a choice of kernels.
void* BlasControl::core_name() const {
    void* symbol = find("openblas_get_corename");
    return symbol ? symbol : find("gotoblas_corename");
}

std::string BlasControl::version() const {
    if (vendor_ == "OpenBLAS") {
        void* symbol = find("openblas_get_config");
        return symbol ? as<const char*()>(symbol)() : vendor_;
    }
    if (vendor_ == "BLIS") {
        if (void* symbol = dlsym(library_, "bli_info_get_version_str"))
            return std::string("BLIS ") + as<const char*()>(symbol)();
    }
    if (vendor_ == "MKL") {
        if (void* symbol = dlsym(library_, "MKL_Get_Version_String")) {
            char text[256] = {};
            as<void(char*, int)>(symbol)(text, sizeof text - 1);
            return text;
        }
    }
    return vendor_;
}

std::string BlasControl::kernel() const {
    if (vendor_ == "OpenBLAS") {
        if (void* symbol = core_name()) return as<const char*()>(symbol)();
    }
    if (vendor_ == "BLIS") {
        // Without bli_init() the query ends the process (BLIS 0.9).
        void *init = dlsym(library_, "bli_init"), *query = dlsym(library_, "bli_arch_query_id");
        void* words = dlsym(library_, "bli_arch_string");
        if (init && query && words) {
            as<void()>(init)();
            return as<const char*(int)>(words)(as<int()>(query)());
        }
    }
    if (vendor_ == "MKL") {
        if (void* symbol = dlsym(library_, "MKL_CBWR_Get_Auto_Branch"))
            return mkl_branch(as<int()>(symbol)());
    }
    return "";
}

std::string BlasControl::kernel_getter() const {
    if (vendor_ == "OpenBLAS") {
        const char* name =
            core_name() == find("gotoblas_corename") ? "gotoblas_corename" : "openblas_get_corename";
        return core_name() ? prefix_ + name + suffix_ + "()" : "";
    }
    if (vendor_ == "BLIS") return "bli_arch_query_id()";
    return vendor_ == "MKL" ? "MKL_CBWR_Get_Auto_Branch()" : "";
}

bool BlasControl::allows_concurrent_calls() const {
    if (vendor_ != "OpenBLAS") return true;
    const std::string built = version();
    return built.find("SINGLE_THREADED") == std::string::npos ||
           built.find("USE_LOCKING") != std::string::npos;
}

bool BlasControl::set_threads(int threads) const {
    if (vendor_ == "OpenBLAS") {
        if (void* symbol = find("openblas_set_num_threads")) return as<void(int)>(symbol)(threads), true;
    }
    if (vendor_ == "BLIS") {
        if (void* symbol = dlsym(library_, "bli_thread_set_num_threads"))
            return as<void(std::int64_t)>(symbol)(threads), true;  // dim_t
    }
    if (vendor_ == "MKL") {
        if (void* symbol = dlsym(library_, "MKL_Set_Num_Threads"))
            return as<void(int)>(symbol)(threads), true;
    }
    return false;
}

std::optional<int> BlasControl::threads() const {
    if (vendor_ == "OpenBLAS") {
        if (void* symbol = find("openblas_get_num_threads")) return as<int()>(symbol)();
    }
    if (vendor_ == "BLIS") {
        const auto threads =
            static_cast<int>(as<std::int64_t()>(dlsym(library_, "bli_thread_get_num_threads"))());
        return threads < 1 ? 1 : threads;  // -1 means "not set", which is one
    }
    if (vendor_ == "MKL") return as<int()>(dlsym(library_, "MKL_Get_Max_Threads"))();
    return std::nullopt;
}

std::string BlasControl::threads_getter() const {
    if (vendor_ == "OpenBLAS") return prefix_ + "openblas_get_num_threads" + suffix_ + "()";
    if (vendor_ == "BLIS") return "bli_thread_get_num_threads()";
    if (vendor_ == "MKL") return "MKL_Get_Max_Threads()";
    return "";
}

}  // namespace timetrial
