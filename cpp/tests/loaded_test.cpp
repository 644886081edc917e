// Libraries are found by what their files define, whoever loaded them.
#include "controllers/loaded.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "controllers/openblas_cores.h"
#include "support/trainer.h"

namespace timetrial::testing {
namespace {

std::vector<LibraryPtr> of_kind(std::string_view kind) {
    std::vector<LibraryPtr> found = loaded_libraries();
    std::erase_if(found, [&](const LibraryPtr& one) { return one->kind() != kind; });
    return found;
}

TEST(LoadedLibraries, AreFoundAndAsked) {
    EXPECT_TRUE(of_kind("blas").empty());
    void* handle = dlopen(test_blas().c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(handle, nullptr) << dlerror();
    const std::vector<LibraryPtr> found = of_kind("blas");
    ASSERT_EQ(found.size(), 1u);  // and not the libraries that it depends on
    const Library& blas = *found[0];
    EXPECT_NE(blas.path().find("libscipy_openblas"), std::string::npos) << blas.path();
    EXPECT_STREQ(blas.vendor(), "OpenBLAS");
    EXPECT_EQ(blas.version().find("OpenBLAS 0."), 0u) << blas.version();
    EXPECT_EQ(blas.kernel_getter(), "scipy_openblas_get_corename()");
    EXPECT_EQ(openblas_core_problem(blas.kernel()), "") << blas.kernel();
    EXPECT_EQ(blas.threads_getter(), "scipy_openblas_get_num_threads()");
    EXPECT_EQ(blas.threading(), "pthreads");
    EXPECT_EQ(blas.integer_bits(), 32);
    EXPECT_EQ(blas.limits(), "");

    auto* set = reinterpret_cast<void (*)(int)>(dlsym(handle, "scipy_openblas_set_num_threads"));
    ASSERT_NE(set, nullptr);
    for (const int threads : {1, 2}) {
        set(threads);
        EXPECT_EQ(of_kind("blas")[0]->threads(), threads);
    }
    EXPECT_TRUE(blas.set_threads(1));
    EXPECT_EQ(blas.threads(), 1);
}

TEST(LoadedLibraries, TellTheThreadsOfOpenMp) {
    void* handle = dlopen("libgomp.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) GTEST_SKIP() << dlerror();
    reinterpret_cast<void (*)(int)>(dlsym(handle, "omp_set_num_threads"))(3);
    const std::vector<LibraryPtr> found = of_kind("openmp");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_STREQ(found[0]->vendor(), "GNU");
    EXPECT_EQ(found[0]->threads(), 3);
    EXPECT_EQ(found[0]->scope(), Scope::kCallingThread);
}

TEST(LoadedLibraries, AreKeptUntilAFileIsLoaded) {
    Libraries libraries;
    const std::size_t before = libraries.loaded().size();
    ASSERT_EQ(libraries.loaded().size(), before);
    void* handle = dlopen("libatlas.so.3", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) GTEST_SKIP() << dlerror();
    const std::vector<LibraryPtr>& found = libraries.loaded();
    ASSERT_EQ(found.size(), before + 1);
    const auto atlas = std::find_if(found.begin(), found.end(), [](const LibraryPtr& one) {
        return one->vendor() == std::string_view("ATLAS");
    });
    ASSERT_NE(atlas, found.end());
    EXPECT_FALSE((*atlas)->set_threads(1));
    EXPECT_EQ((*atlas)->threads(), std::nullopt);
    EXPECT_NE((*atlas)->limits(), "");
}

TEST(OpenblasCores, KnowsWhatKernelsLeaveUnused) {
    EXPECT_EQ(openblas_core_missed("Unknown"), "");
    EXPECT_EQ(openblas_core_missed("SkylakeX"), "");
    const bool avx512 = openblas_core_problem("SkylakeX").empty();
    const bool avx2 = openblas_core_problem("Haswell").empty();
    EXPECT_EQ(openblas_core_missed("Haswell"), avx512 ? "AVX-512" : "");
    if (avx2) {
        EXPECT_EQ(openblas_core_missed("prescott"), avx512 ? "AVX-512" : "AVX2");
    }
}

}  // namespace
}  // namespace timetrial::testing
