// TBB since 2021. Older ones cannot be asked.
#include <cstddef>
#include <utility>

#include "controllers/catalog.h"

namespace timetrial {
namespace {

// size_t tbb::detail::r1::global_control_active_value(int parameter); 0: max_allowed_parallelism
constexpr char get[] = "_ZN3tbb6detail2r127global_control_active_valueEi";

class Tbb final : public Library {
  public:
    using Library::Library;

    const char* kind() const override { return "tbb"; }
    const char* vendor() const override { return "Intel"; }
    std::string version() const override {
        auto* words = file().function<const char*()>("TBB_runtime_version");
        return words ? std::string("TBB ") + words() : "";
    }
    std::string threading() const override { return "TBB"; }
    std::optional<int> threads() const override {
        auto* getter = file().function<std::size_t(int)>(get);
        return getter ? std::optional<int>(static_cast<int>(getter(0))) : std::nullopt;
    }
    std::string threads_getter() const override { return "tbb::global_control::active_value()"; }
    std::string limits() const override { return "is told by a tbb::global_control of the program itself"; }
};

}  // namespace

LibraryPtr make_tbb(const FilePtr& file, const Surroundings&) {
    return file->own("TBB_runtime_version") || file->own(get) ? std::make_shared<Tbb>(file) : nullptr;
}

}  // namespace timetrial
