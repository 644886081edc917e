// OpenMP runtimes: GNU's, LLVM's and Intel's. Each keeps a number for every thread that calls it.
#include <utility>

#include "controllers/catalog.h"

namespace timetrial {
namespace {

class OpenMp final : public Library {
  public:
    OpenMp(FilePtr file, const char* vendor, bool may_ask)
        : Library(std::move(file)), vendor_(vendor), may_ask_(may_ask) {}

    const char* kind() const override { return "openmp"; }
    const char* vendor() const override { return vendor_; }
    std::string version() const override { return ""; }
    std::string threading() const override { return "OpenMP"; }
    std::optional<int> threads() const override {
        return may_ask_ ? std::optional<int>(file().function<int()>("omp_get_max_threads")()) : std::nullopt;
    }
    std::string threads_getter() const override { return "omp_get_max_threads()"; }
    bool set_threads(int threads) const override {
        auto* set = may_ask_ ? file().function<void(int)>("omp_set_num_threads") : nullptr;
        if (set) set(threads);
        return set != nullptr;
    }
    Scope scope() const override { return Scope::kCallingThread; }
    std::string limits() const override {
        if (may_ask_) return "";
        return "is one of two copies of LLVM's runtime, which end the process when both are used";
    }

  private:
    const char* vendor_;
    bool may_ask_;
};

}  // namespace

bool is_llvm_openmp(const File& file) { return file.own("__kmpc_fork_call") != nullptr; }

LibraryPtr make_openmp(const FilePtr& file, const Surroundings& around) {
    if (!file->own("omp_get_max_threads")) return nullptr;
    const bool llvm = is_llvm_openmp(*file);
    const char* vendor = file->own("GOMP_parallel") ? "GNU" : "";
    // LLVM's has the functions of GNU's too. Intel's is LLVM's under another name.
    if (llvm) vendor = file->path().find("libiomp") == std::string::npos ? "LLVM" : "Intel";
    return std::make_shared<OpenMp>(file, vendor, !llvm || around.llvm_runtimes < 2);
}

}  // namespace timetrial
