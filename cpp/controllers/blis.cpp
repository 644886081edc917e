// BLIS. Its names have no prefix, whatever its BLAS functions are called.
#include <cstdint>
#include <utility>

#include "controllers/catalog.h"

namespace timetrial {
namespace {

class Blis final : public Library {
  public:
    using Library::Library;

    const char* kind() const override { return "blas"; }
    const char* vendor() const override { return "BLIS"; }
    std::string version() const override {
        auto* words = file().function<const char*()>("bli_info_get_version_str");
        return words ? std::string("BLIS ") + words() : vendor();
    }

    // Without bli_init() the query ends the process (BLIS 0.9).
    std::string kernel() const override {
        auto* init = file().function<void()>("bli_init");
        auto* query = file().function<int()>("bli_arch_query_id");
        auto* words = file().function<const char*(int)>("bli_arch_string");
        if (!init || !query || !words) return "";
        init();
        return words(query());
    }
    std::string kernel_getter() const override { return "bli_arch_query_id()"; }

    std::string threading() const override {
        if (asked("bli_info_get_enable_openmp") == 1) return "OpenMP";
        if (asked("bli_info_get_enable_pthreads") == 1) return "pthreads";
        return asked("bli_info_get_enable_threading") == 0 ? "none" : "";
    }
    int integer_bits() const override { return static_cast<int>(asked("bli_info_get_blas_int_type_size")); }

    // -1 means "not set", which is one.
    std::optional<int> threads() const override {
        const auto told = static_cast<int>(file().function<std::int64_t()>("bli_thread_get_num_threads")());
        return told < 1 ? 1 : told;
    }
    std::string threads_getter() const override { return "bli_thread_get_num_threads()"; }
    bool set_threads(int threads) const override {
        auto* set = file().function<void(std::int64_t)>("bli_thread_set_num_threads");  // dim_t
        if (set) set(threads);
        return set != nullptr;
    }
    std::string limits() const override {
        return threading() == "none" ? "built for one thread, and answers what it was told all the same" : "";
    }

  private:
    std::int64_t asked(const char* name) const {
        auto* getter = file().function<std::int64_t()>(name);
        return getter ? getter() : 0;
    }
};

}  // namespace

LibraryPtr make_blis(const FilePtr& file, const Names&, const Surroundings&) {
    return file->own("bli_thread_get_num_threads") ? std::make_shared<Blis>(file) : nullptr;
}

}  // namespace timetrial
