#include "controllers/loaded.h"

#include <link.h>

#include <algorithm>

#include "controllers/catalog.h"

namespace timetrial {
namespace {

// How many files the dynamic linker has loaded and unloaded.
unsigned long long changes() {
    unsigned long long sum = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* to) {
            *static_cast<unsigned long long*>(to) = info->dlpi_adds + info->dlpi_subs;
            return 1;  // the first says it
        },
        &sum);
    return sum;
}

}  // namespace

std::vector<LibraryPtr> loaded_libraries() {
    Surroundings around{mapped_objects()};
    std::vector<FilePtr> files;
    for (const std::string& path : around.paths) {
        auto file = std::make_shared<File>(path);
        if (file->is_open()) files.push_back(std::move(file));
    }
    around.llvm_runtimes = static_cast<int>(
        std::count_if(files.begin(), files.end(), [](const FilePtr& file) { return is_llvm_openmp(*file); }));
    std::vector<LibraryPtr> found;
    for (const FilePtr& file : files) {
        for (LibraryPtr& one : controllers_of(file, around)) found.push_back(std::move(one));
    }
    std::stable_partition(found.begin(), found.end(),
                          [](const LibraryPtr& one) { return one->kind() != std::string_view("openmp"); });
    return found;
}

const std::vector<LibraryPtr>& Libraries::loaded() {
    const unsigned long long now = changes();
    if (now != changes_) {
        found_ = loaded_libraries();
        changes_ = now;
        ++searches_;
    }
    return found_;
}

}  // namespace timetrial
