// The function of timetrial/libraries.h with C linkage.
#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <string_view>
#include <vector>

#include "controllers/loaded.h"
#include "timetrial/libraries.h"

namespace {

template <std::size_t size>
void copy(char (&text)[size], const std::string& from) {
    const std::size_t length = std::min(from.size(), size - 1);
    std::memcpy(text, from.data(), length);
    text[length] = '\0';
}

}  // namespace

extern "C" uint32_t tt_libraries(tt_library* libraries, uint32_t capacity) {
    try {
        std::vector<timetrial::LibraryPtr> found = timetrial::loaded_libraries();
        std::erase_if(found, [](const timetrial::LibraryPtr& one) {
            return one->kind() != std::string_view("blas") && one->kind() != std::string_view("openmp");
        });
        const std::size_t distance = capacity == 0 ? 0 : libraries[0].size;
        if (distance < sizeof(tt_library)) capacity = 0;
        for (std::size_t i = 0; i < std::min<std::size_t>(capacity, found.size()); ++i) {
            auto* one = reinterpret_cast<tt_library*>(reinterpret_cast<char*>(libraries) + i * distance);
            one->size = static_cast<uint32_t>(distance);
            const timetrial::Library& library = *found[i];
            const std::optional<int> threads = library.threads();
            const std::string kernel = library.kernel();
            one->threads = threads.value_or(-1);
            copy(one->path, library.path());
            copy(one->kind, library.kind());
            copy(one->vendor, library.vendor());
            copy(one->version, library.version());
            copy(one->kernel, kernel);
            copy(one->kernel_getter, kernel.empty() ? "" : library.kernel_getter());
            copy(one->threads_getter, threads ? library.threads_getter() : "");
        }
        return static_cast<uint32_t>(found.size());
    } catch (const std::bad_alloc&) {
        return 0;
    }
}
