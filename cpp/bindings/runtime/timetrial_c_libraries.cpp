// The function of timetrial/libraries.h with C linkage.
#include <algorithm>
#include <cstring>
#include <new>

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
        const std::vector<timetrial::LoadedLibrary> found = timetrial::loaded_libraries();
        const std::size_t distance = capacity == 0 ? 0 : libraries[0].size;
        if (distance < sizeof(tt_library)) capacity = 0;
        for (std::size_t i = 0; i < std::min<std::size_t>(capacity, found.size()); ++i) {
            auto* one = reinterpret_cast<tt_library*>(reinterpret_cast<char*>(libraries) + i * distance);
            one->size = static_cast<uint32_t>(distance);
            one->threads = found[i].threads.value_or(-1);
            copy(one->path, found[i].path);
            copy(one->kind, found[i].kind);
            copy(one->vendor, found[i].vendor);
            copy(one->version, found[i].version);
            copy(one->kernel, found[i].kernel);
            copy(one->kernel_getter, found[i].kernel_getter);
            copy(one->threads_getter, found[i].threads_getter);
        }
        return static_cast<uint32_t>(found.size());
    } catch (const std::bad_alloc&) {
        return 0;
    }
}
