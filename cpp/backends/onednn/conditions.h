// All that the choice of a kernel by trial depends on, in words: launches of which they are the same may
// share one choice. What does not change how long a kernel takes is left out: the values of weights and data,
// the optimizer, which processors it runs on (the parent tells cases with other settings apart).
#pragma once

#include <link.h>
#include <omp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

#include "onednn/kept.h"
#include "onednn/settings.h"
#include "timetrial/backend.hpp"

namespace timetrial::onednn {

// The file of the loaded object that this address belongs to; "" if there is none.
inline std::string object_of(const void* address) {
    struct Search {
        ElfW(Addr) address;
        std::string path;
    } search{reinterpret_cast<ElfW(Addr)>(address), ""};
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void* user) {
            auto& wanted = *static_cast<Search*>(user);
            for (int i = 0; i < object->dlpi_phnum; ++i) {
                const auto& part = object->dlpi_phdr[i];
                const ElfW(Addr) offset = wanted.address - object->dlpi_addr - part.p_vaddr;
                if (part.p_type != PT_LOAD || offset >= part.p_memsz) continue;
                wanted.path = *object->dlpi_name ? object->dlpi_name : "/proc/self/exe";
                return 1;
            }
            return 0;
        },
        &search);
    return search.path;
}

// A library is large, and reading it would take longer than building a small network.
inline std::string size_and_date(const std::string& path) {
    struct stat found{};
    if (stat(path.c_str(), &found) != 0) return "";
    return std::to_string(found.st_size) + " bytes of " + std::to_string(found.st_mtim.tv_sec) + "." +
           std::to_string(found.st_mtim.tv_nsec);
}

inline std::string file_hash(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::uint64_t hash = hash_of("");
    char part[1 << 16];
    while (file.read(part, sizeof part) || file.gcount() > 0)
        hash = hash_of({part, static_cast<std::size_t>(file.gcount())}, hash);
    return digits_of(hash);
}

// The first of the machine's processors, as the kernel names it.
inline std::string processor_model() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("model name")) return line;
    return "";
}

// The environment variables that these libraries read.
inline std::string library_variables() {
    std::string words;
    for (char** variable = environ; *variable; ++variable)
        for (const char* prefix : {"OMP_", "GOMP_", "KMP_", "DNNL_", "ONEDNN_"})
            if (std::string_view(*variable).starts_with(prefix)) words += std::string(*variable) + '\n';
    return words;
}

inline std::string words_of(const tt_tensor& tensor) {
    std::string words = std::string(" ") + tensor.name + ":" + std::to_string(tensor.dtype);
    for (std::uint32_t i = 0; i < tensor.rank; ++i) words += "," + std::to_string(tensor.shape[i]);
    return words;
}

// Kinds, shapes and attributes of all nodes, with the batch as their first extent.
inline std::string words_of(const tt_network& network) {
    std::string words;
    for (std::uint32_t i = 0; i < network.n_nodes; ++i) {
        const tt_node& node = element(network.nodes, i);
        words += std::string(node.kind) + words_of(node.output) + " of";
        for (std::uint32_t k = 0; k < node.n_inputs; ++k) words += " " + std::to_string(node.inputs[k]);
        for (std::uint32_t k = 0; k < node.n_attributes; ++k) {
            const tt_attribute& one = element(node.attributes, k);
            const auto add = [&words](double number) {
                char digits[32];
                std::snprintf(digits, sizeof digits, " %.17g", number);
                words += digits;
            };
            words += std::string("; ") + one.name + (one.text ? std::string(" ") + one.text : "");
            add(one.number);
            for (std::uint64_t n = 0; one.numbers && n < one.n_numbers; ++n) add(one.numbers[n]);
        }
        for (std::uint32_t k = 0; k < node.n_parameters; ++k)
            words += ";" + words_of(element(node.parameters, k));
        words += '\n';
    }
    return words + "output " + std::to_string(network.output) + ", loss " + std::to_string(network.loss);
}

// What computes and on what. `code`: an address in the plug-in; `library`: its version, in words.
inline std::string machine_words(const void* code, const std::string& library) {
    return "plug-in " + file_hash(object_of(code)) + "\nlibrary " + library + ", " +
           size_and_date(object_of(reinterpret_cast<const void*>(&dnnl_version))) + "\nthreads of " +
           object_of(reinterpret_cast<const void*>(&omp_get_max_threads)) + ": " +
           std::to_string(omp_get_max_threads()) + "\nisa " + effective_isa() + "\nmath mode " + math_mode() +
           "\n" + processor_model() + "\n" + library_variables();
}

}  // namespace timetrial::onednn
