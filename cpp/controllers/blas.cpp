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
    if (find("openblas_get_config")) {
        vendor_ = "OpenBLAS";
    } else if (dlsym(library_, "bli_thread_get_num_threads")) {
        vendor_ = "BLIS";
    } else if (dlsym(library_, "MKL_Get_Max_Threads")) {
        vendor_ = "MKL";
    } else if (dlsym(library_, "ATL_sgemm")) {
        vendor_ = "ATLAS";
    }
}

void* BlasControl::find(const std::string& name) const {
    return dlsym(library_, (prefix_ + name + suffix_).c_str());
}

std::string BlasControl::version() const {
    if (vendor_ == "OpenBLAS") return as<const char*()>(find("openblas_get_config"))();
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
        if (void* symbol = find("openblas_get_corename")) return as<const char*()>(symbol)();
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
    if (vendor_ == "OpenBLAS") return prefix_ + "openblas_get_corename" + suffix_ + "()";
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
