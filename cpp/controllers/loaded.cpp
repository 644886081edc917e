#include "controllers/loaded.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <utility>

#include "controllers/blas.h"

namespace timetrial {
namespace {

struct Close {
    void operator()(void* handle) const { dlclose(handle); }
};
using Handle = std::unique_ptr<void, Close>;

// The functions that one file defines. dlsym() alone also finds those of the libraries it depends on.
class File {
  public:
    explicit File(const std::string& path) : handle_(dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD)) {
        if (handle_ && dlinfo(handle_.get(), RTLD_DI_LINKMAP, &map_) != 0) map_ = nullptr;
    }
    void* handle() const { return handle_.get(); }
    void* own(const std::string& name) const {
        if (!handle_ || !map_) return nullptr;
        void* symbol = dlsym(handle_.get(), name.c_str());
        Dl_info info{};
        link_map* where = nullptr;
        if (!symbol || dladdr1(symbol, &info, reinterpret_cast<void**>(static_cast<void*>(&where)),
                               RTLD_DL_LINKMAP) == 0)
            return nullptr;
        return where == map_ ? symbol : nullptr;
    }

  private:
    Handle handle_;
    link_map* map_ = nullptr;
};

// Mapped shared objects, each once, in the order of their addresses.
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

bool is_mapped(const std::vector<std::string>& paths, const std::string& part) {
    return std::any_of(paths.begin(), paths.end(),
                       [&](const std::string& path) { return path.find(part) != std::string::npos; });
}

void add_blas(const std::string& path, const File& file, bool may_ask_mkl,
              std::vector<LoadedLibrary>& found) {
    for (const char* prefix : {"", "scipy_"}) {
        for (const char* suffix : {"", "64_", "_64"}) {
            const BlasControl control(file.handle(), prefix, suffix);
            const std::string& sign = control.sign();
            const bool known = !sign.empty() && file.own(sign);
            if (!known && !file.own(prefix + std::string("cblas_sgemm") + suffix)) continue;
            LoadedLibrary library;
            library.path = path;
            library.kind = "blas";
            if (known) {
                library.vendor = control.vendor();
                const bool is_dispatcher = file.own("MKL_Set_Threading_Layer") != nullptr;
                if (!is_dispatcher || may_ask_mkl) {
                    library.version = control.version();
                    library.kernel = control.kernel();
                    library.kernel_getter = library.kernel.empty() ? "" : control.kernel_getter();
                    library.threads = control.threads();
                    library.threads_getter = library.threads ? control.threads_getter() : "";
                }
            }
            found.push_back(std::move(library));
            return;
        }
    }
}

bool is_llvm(const File& file) { return file.own("__kmpc_fork_call") != nullptr; }

void add_openmp(const std::string& path, const File& file, bool may_ask_llvm,
                std::vector<LoadedLibrary>& found) {
    void* getter = file.own("omp_get_max_threads");
    if (!getter) return;
    LoadedLibrary library;
    library.path = path;
    library.kind = "openmp";
    library.vendor = is_llvm(file) ? "LLVM" : file.own("GOMP_parallel") ? "GNU" : "";
    if (library.vendor != "LLVM" || may_ask_llvm) {
        library.threads = reinterpret_cast<int (*)()>(getter)();
        library.threads_getter = "omp_get_max_threads()";
    }
    found.push_back(std::move(library));
}

}  // namespace

std::vector<LoadedLibrary> loaded_libraries() {
    const std::vector<std::string> paths = mapped_objects();
    const bool may_ask_mkl = is_mapped(paths, "libmkl_core");
    std::vector<std::pair<std::string, File>> files;
    for (const std::string& path : paths) {
        File file(path);
        if (file.handle()) files.emplace_back(path, std::move(file));
    }
    const bool may_ask_llvm =
        std::count_if(files.begin(), files.end(), [](const auto& one) { return is_llvm(one.second); }) < 2;
    std::vector<LoadedLibrary> found;
    for (const auto& [path, file] : files) {
        add_blas(path, file, may_ask_mkl, found);
        add_openmp(path, file, may_ask_llvm, found);
    }
    return found;
}

}  // namespace timetrial
