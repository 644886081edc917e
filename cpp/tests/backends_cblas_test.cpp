// What cblas asks of a library before it multiplies with it, and what it can tell one of them.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "controllers/openblas_cores.h"
#include "support/pools.h"
#include "support/trainer.h"

namespace timetrial::testing {
namespace {

const auto* const kEndsPools = ::testing::AddGlobalTestEnvironment(new EndsPools);

using Settings = std::map<std::string, std::string>;

const Problem& problem() {
    static const Problem network(mlp(), 4, {1, 4, 4}, Numbers::kReal);
    return network;
}

// The words with which a build ends; "" if it succeeds.
std::string refusal(const Settings& settings) {
    try {
        Trainer trainer(plugin_path(variants_of("cblas").back()), problem(), settings);
        return "";
    } catch (const BackendError& error) {
        EXPECT_EQ(error.status(), TT_UNSUPPORTED) << error.what();
        return error.what();
    }
}

void expect_words(const Settings& settings, const std::string& words) {
    const std::string found = refusal(settings);
    EXPECT_NE(found.find(words), std::string::npos) << found;
}

TEST(Cblas, RefusesWhatIsNoCblas) {
    expect_words({}, "blas.library is not set");
    expect_words({{"blas.library", "libm.so.6"}}, "is no absolute path");
    expect_words({{"blas.library", "/nowhere/libblas.so"}}, "is no file");
    expect_words({{"blas.library", "/proc/self/exe"}}, "cannot be loaded");
    expect_words({{"blas.library", plugin_path("reference")}}, "exports no cblas_sgemm");
    expect_words({{"blas.library", test_blas()}, {"blas.core_type", "Pentium"}}, "has no such core type");
    expect_words({{"blas.library", test_blas()}, {"blas.size", "1"}}, "has no setting 'blas.size'");
}

TEST(Cblas, ALibraryThatIsRefusedIsNotKept) {
    const std::string path = TIMETRIAL_TEST_PLUGINS_DIR "/complete.so";
    expect_words({{"blas.library", path}}, "exports no cblas_sgemm");
    EXPECT_EQ(dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD), nullptr);
}

TEST(Cblas, SaysWhatItOpened) {
    Trainer trainer(plugin_path(variants_of("cblas").back()), problem(),
                    {{"blas.library", test_blas()}, {"blas.core_type", "Nehalem"}});
    std::map<std::string, std::string> facts;
    for (const Fact& fact : trainer.context().facts()) facts[fact.name] = fact.value;
    EXPECT_EQ(facts["blas.kernel"], "Nehalem");
    EXPECT_EQ(facts["blas.symbols"], "scipy_cblas_sgemm");
    EXPECT_EQ(facts["blas.integers"], "32 bits");
    EXPECT_EQ(facts["blas.version"].substr(0, 8), "OpenBLAS");
    EXPECT_EQ(trainer.context().read_setting("blas.library").effective, test_blas());
    EXPECT_EQ(trainer.context().read_setting("blas.core_type").effective, "Nehalem");
    // One library is all that a process gets.
    expect_words({{"blas.library", plugin_path("reference")}}, "comes too late");
}

TEST(OpenblasCores, SaysWhatTheCpuLacks) {
    EXPECT_EQ(openblas_core_problem("nehalem"), "");
    EXPECT_NE(openblas_core_problem("Pentium").find("it has: Katmai"), std::string::npos);
    if (!__builtin_cpu_supports("avx512bf16")) {
        EXPECT_EQ(openblas_core_problem("Cooperlake"), "its kernels need a CPU with avx512_bf16");
    }
}

}  // namespace
}  // namespace timetrial::testing
