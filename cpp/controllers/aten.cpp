// PyTorch's own numbers of threads (ATen), which its OpenMP, its MKL and its oneDNN follow.
#include <utility>

#include "controllers/catalog.h"

namespace timetrial {
namespace {

// int at::get_num_threads(), void at::set_num_threads(int)
constexpr char get[] = "_ZN2at15get_num_threadsEv";
constexpr char set[] = "_ZN2at15set_num_threadsEi";

class Aten final : public Library {
  public:
    using Library::Library;

    const char* kind() const override { return "aten"; }
    const char* vendor() const override { return "PyTorch"; }
    std::string version() const override { return ""; }
    std::optional<int> threads() const override { return file().function<int()>(get)(); }
    std::string threads_getter() const override { return "at::get_num_threads()"; }
    bool set_threads(int threads) const override {
        file().function<void(int)>(set)(threads);
        return true;
    }
    Scope scope() const override { return Scope::kCallingThread; }
    std::string limits() const override {
        return "threads between operations are set once, by torch.set_num_interop_threads()";
    }
};

}  // namespace

LibraryPtr make_aten(const FilePtr& file, const Surroundings&) {
    return file->own(get) && file->own(set) ? std::make_shared<Aten>(file) : nullptr;
}

}  // namespace timetrial
