// Libraries with the functions of a BLAS and nothing to ask or tell: ATLAS, the reference BLAS, and those
// that nobody knows.
#include <utility>

#include "controllers/catalog.h"

namespace timetrial {
namespace {

class PlainBlas final : public Library {
  public:
    PlainBlas(FilePtr file, const char* vendor, const char* limits)
        : Library(std::move(file)), vendor_(vendor), limits_(limits) {}

    const char* kind() const override { return "blas"; }
    const char* vendor() const override { return vendor_; }
    std::string limits() const override { return limits_; }

  private:
    const char* vendor_;
    const char* limits_;
};

}  // namespace

LibraryPtr make_atlas(const FilePtr& file, const Names& names, const Surroundings&) {
    // Its CBLAS is a file of its own, in front of the one with the code.
    const bool is_front = file->own(names.of("cblas_sgemm")) && file->reaches("ATL_sgemm");
    if (!is_front && !file->own("ATL_sgemm")) return nullptr;
    return std::make_shared<PlainBlas>(file, "ATLAS", "its threads were fixed when it was built");
}

LibraryPtr make_any_cblas(const FilePtr& file, const Names& names, const Surroundings&) {
    if (!file->own(names.of("cblas_sgemm"))) return nullptr;
    return std::make_shared<PlainBlas>(file, "", "of no vendor that is known: nothing to ask or tell");
}

}  // namespace timetrial
