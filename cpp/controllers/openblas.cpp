// OpenBLAS, with threads of its own, on OpenMP, or serial.
#include <utility>

#include "controllers/catalog.h"

namespace timetrial {
namespace {

class OpenBlas final : public Library {
  public:
    OpenBlas(FilePtr file, Names names) : Library(std::move(file)), names_(std::move(names)) {}

    const char* kind() const override { return "blas"; }
    const char* vendor() const override { return "OpenBLAS"; }

    std::string version() const override {
        auto* config = find<const char*()>("openblas_get_config");
        return config ? config() : vendor();
    }

    std::string kernel() const override {
        const char* getter = core_getter();
        return getter ? find<const char*()>(getter)() : "";
    }
    std::string kernel_getter() const override {
        const char* getter = core_getter();
        return getter ? names_.of(getter) + "()" : "";
    }

    std::string threading() const override {
        auto* parallel = find<int()>("openblas_get_parallel");
        const char* const words[] = {"none", "pthreads", "OpenMP"};
        const int which = parallel ? parallel() : -1;
        return which >= 0 && which < 3 ? words[which] : "";
    }
    int integer_bits() const override {
        const std::string built = version();
        if (built == vendor()) return 0;
        return built.find("USE64BITINT") == std::string::npos ? 32 : 64;
    }

    std::optional<int> threads() const override {
        auto* getter = find<int()>("openblas_get_num_threads");
        return getter ? std::optional<int>(getter()) : std::nullopt;
    }
    std::string threads_getter() const override { return names_.of("openblas_get_num_threads") + "()"; }
    bool set_threads(int threads) const override {
        auto* set = find<void(int)>("openblas_set_num_threads");
        if (set) set(threads);
        return set != nullptr;
    }
    std::string limits() const override {
        const std::string threads = threading();
        if (threads == "none") return "built for one thread";
        if (threads == "OpenMP")
            return "follows OpenMP, and answers what it was told where one CPU is all it has";
        return "";
    }

    // Built for one thread, without locks around its buffers, it gives wrong numbers then (USE_LOCKING in its
    // Makefile.rule; Debian's serial build was seen doing so).
    bool allows_concurrent_calls() const override {
        const std::string built = version();
        return built.find("SINGLE_THREADED") == std::string::npos ||
               built.find("USE_LOCKING") != std::string::npos;
    }

  private:
    template <typename Function>
    Function* find(const char* name) const {
        return file().function<Function>(names_.of(name));
    }
    // Old versions export only the second, which answers for builds with a choice of kernels.
    const char* core_getter() const {
        for (const char* name : {"openblas_get_corename", "gotoblas_corename"})
            if (find<void()>(name)) return name;
        return nullptr;
    }

    Names names_;
};

}  // namespace

LibraryPtr make_openblas(const FilePtr& file, const Names& names, const Surroundings&) {
    // Builds for one CPU that were linked into something else may lack the first.
    const bool is_one =
        file->own(names.of("openblas_get_config")) || file->own(names.of("openblas_get_num_threads"));
    return is_one ? std::make_shared<OpenBlas>(file, names) : nullptr;
}

}  // namespace timetrial
