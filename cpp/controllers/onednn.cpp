// oneDNN. Its ISA is not asked for: the answer would fix it for the rest of the process.
#include <utility>

#include "controllers/catalog.h"

namespace timetrial {
namespace {

// dnnl_version_t of oneDNN 1 to 3.
struct Version {
    int major, minor, patch;
    const char* hash;
    unsigned cpu_runtime, gpu_runtime;
};

class OneDnn final : public Library {
  public:
    using Library::Library;

    const char* kind() const override { return "onednn"; }
    const char* vendor() const override { return "oneDNN"; }
    std::string version() const override {
        const Version& is = asked();
        return "oneDNN " + std::to_string(is.major) + '.' + std::to_string(is.minor) + '.' +
               std::to_string(is.patch);
    }
    std::string threading() const override {
        switch (asked().cpu_runtime) {  // dnnl_cpu_runtime_t
            case 1:
                return "none";
            case 2:
                return "OpenMP";
            case 4:
                return "TBB";
            default:
                return "";
        }
    }
    std::string limits() const override {
        return "its primitives keep the threads that " +
               (threading().empty() ? "their caller" : threading()) + " had when they were made";
    }

  private:
    const Version& asked() const { return *file().function<const Version*()>("dnnl_version")(); }
};

}  // namespace

LibraryPtr make_onednn(const FilePtr& file, const Surroundings&) {
    return file->own("dnnl_version") ? std::make_shared<OneDnn>(file) : nullptr;
}

}  // namespace timetrial
