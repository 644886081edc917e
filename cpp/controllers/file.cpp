#include "controllers/file.h"

#include <dlfcn.h>

#include <algorithm>
#include <fstream>
#include <utility>

namespace timetrial {

File::File(const std::string& path) : path_(path), handle_(dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD)) {
    if (handle_ && dlinfo(handle_, RTLD_DI_LINKMAP, &map_) != 0) map_ = nullptr;
}

File::~File() {
    if (handle_ && is_ours_) dlclose(handle_);
}

// dlsym() alone also finds the functions of the libraries that a file depends on.
void* File::look_up(const std::string& name) const {
    void* symbol = handle_ ? dlsym(handle_, name.c_str()) : nullptr;
    if (!symbol || !is_ours_) return symbol;
    Dl_info info{};
    link_map* where = nullptr;
    if (dladdr1(symbol, &info, reinterpret_cast<void**>(static_cast<void*>(&where)), RTLD_DL_LINKMAP) == 0)
        return nullptr;
    return where == map_ ? symbol : nullptr;
}

void* File::own(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto [place, is_new] = known_.try_emplace(name);
    if (is_new) place->second = look_up(name);
    return place->second;
}

bool File::reaches(const std::string& name) const { return handle_ && dlsym(handle_, name.c_str()); }

std::vector<std::string> mapped_objects() {
    std::vector<std::string> paths;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        const std::size_t slash = line.find('/');
        if (slash == std::string::npos) continue;
        std::string path = line.substr(slash);
        const std::string name = path.substr(path.rfind('/') + 1);
        if (name.find(".so") == std::string::npos) continue;
        if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(std::move(path));
    }
    return paths;
}

}  // namespace timetrial
