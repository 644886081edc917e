// The LibTorch that is mapped: its version, its settings, its errors.
#pragma once

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <c10/core/MemoryFormat.h>
#include <c10/util/Exception.h>
#include <torch/version.h>

#include <new>
#include <regex>
#include <stdexcept>
#include <string>

#include "timetrial/backend.hpp"

namespace timetrial::libtorch {

inline std::string first_match(const std::string& text, const char* pattern) {
    std::smatch found;
    return std::regex_search(text, found, std::regex(pattern)) ? found[1].str() : "";
}

// "2.13.0": what the library that is mapped says of itself.
inline std::string running_version() { return first_match(at::show_config(), "TORCH_VERSION=([0-9][^, ]*)"); }

// LibTorch promises no binary interface: another version may compute nonsense before it crashes.
inline void check_version() {
    if (running_version() != TORCH_VERSION)
        throw Unsupported("this plug-in was built for torch " TORCH_VERSION
                          ", but the torch that is "
                          "mapped is " +
                          running_version() + ". Build it anew: timetrial backends build libtorch");
}

// What torch throws carries a stack trace, and lack of memory has no type of its own.
template <class Call>
auto in_plain_words(Call&& call) {
    try {
        return call();
    } catch (const c10::Error& error) {
        const std::string words = error.what_without_backtrace();
        if (words.find("can't allocate memory") != std::string::npos) throw std::bad_alloc();
        throw std::runtime_error("torch: " + words);
    }
}

// "contiguous" is N x C x H x W, torch's default; "channels_last" is N x H x W x C in memory.
inline at::MemoryFormat read_format(std::string_view value) {
    if (value == "contiguous") return at::MemoryFormat::Contiguous;
    if (value == "channels_last") return at::MemoryFormat::ChannelsLast;
    throw Unsupported("torch.memory_format = '" + std::string(value) +
                      "': expected contiguous or channels_last");
}
inline std::string format_word(at::MemoryFormat format) {
    return format == at::MemoryFormat::ChannelsLast ? "channels_last" : "contiguous";
}

// Global in LibTorch: they hold for the process.
inline void set_setting(std::string_view name, std::string_view value, const tt_description& description) {
    if (name == "threads") {
        at::set_num_threads(static_cast<int>(setting_integer(name, value, 1, 1024)));
    } else if (name == "parallel") {
        if (value != "product")
            throw Unsupported(
                "parallel = '" + std::string(value) +
                "': LibTorch has its threads inside each operation only (parallel = 'product')");
    } else if (name == "torch.mkldnn") {
        if (value != "true" && value != "false")
            throw Unsupported("torch.mkldnn = '" + std::string(value) + "': expected true or false");
        at::globalContext().setUserEnabledMkldnn(value == "true");
    } else {
        throw unknown_setting(name, description);
    }
}

// at::get_num_threads() repeats what it was told; the OpenMP runtime answers for itself.
inline Reading read_threads() {
    const std::string told = std::to_string(at::get_num_threads());
    const std::string openmp =
        first_match(at::get_parallel_info(), R"(omp_get_max_threads\(\)\s*:\s*([0-9]+))");
    if (openmp.empty()) return {told, "at::get_num_threads()"};
    return {openmp == told ? told : openmp,
            "at::get_num_threads() " + told + ", omp_get_max_threads() " + openmp};
}

inline Reading get_setting(std::string_view name, const tt_description& description) {
    if (name == "threads") return read_threads();
    if (name == "parallel") return {"product", "LibTorch divides each operation among its threads"};
    if (name == "torch.mkldnn")
        return {at::globalContext().userEnabledMkldnn() ? "true" : "false",
                "at::Context::userEnabledMkldnn()"};
    throw unknown_setting(name, description);
}

inline Facts library_facts() {
    const std::string config = at::show_config();
    return {
        {"torch.version", running_version()},
        {"torch.built_for", TORCH_VERSION},
        {"torch.blas",
         first_match(
             config,
             R"(\n\s*- (Intel\(R\) oneAPI Math Kernel Library Version [^\n]*?|OpenBLAS[^\n]*?)( for [^\n]*)?\n)")},
        {"torch.onednn", first_match(config, R"(MKL-DNN v([0-9.]+))")},
        {"torch.openmp", first_match(config, R"(\n\s*- OpenMP ([^\n]*))")},
        {"torch.cpu_capability", first_match(config, R"(CPU capability usage: ([^\n]*))")},
        {"torch.parallel", first_match(at::get_parallel_info(), R"(ATen parallel backend: ([^\n]*))")},
        {"torch.interop_threads", std::to_string(at::get_num_interop_threads())}};
}

}  // namespace timetrial::libtorch
