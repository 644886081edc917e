// Observer, known libraries and test scores against known truths. tests/process/test_observer.py does the
// same from Python with other processes.
#include "metrics/observer.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <ctime>
#include <limits>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "libraries/known.h"
#include "metrics/score.h"
#include "support/temporary_file.h"

namespace timetrial {
namespace {

constexpr std::size_t mebibyte = 1 << 20;

// Until the thread has had that much of a CPU, however busy the machine is.
void burn(std::uint64_t cpu_ns) {
    timespec used{};
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    while (static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000u +
               static_cast<std::uint64_t>(used.tv_nsec) <
           cpu_ns);
}

TEST(Observer, CountsThreadsThatHaveEnded) {
    const Observer self(getpid());
    const Observation before = self.read();
    std::thread([] { burn(10'000'000); }).join();
    const Observation after = self.read();
    EXPECT_GE(after.cpu_ns - before.cpu_ns, 10'000'000u);
    EXPECT_GT(after.time_ns, before.time_ns);
}

TEST(Observer, NamesThreadsWhateverTheyAreCalled) {
    prctl(PR_SET_NAME, "a) b (R 1");
    const Observation seen = Observer(getpid()).read();
    EXPECT_TRUE(std::any_of(seen.threads.begin(), seen.threads.end(),
                            [](const ThreadObservation& thread) { return thread.name == "a) b (R 1"; }));
    EXPECT_EQ(seen.processes, 1u);
    EXPECT_FALSE(seen.threads.front().allowed_cpus.empty());
}

TEST(Observer, CountsHowOftenAThreadChangedItsProcessor) {
    const Observer self(getpid());
    const std::optional<std::uint64_t> before = self.migrations();
    if (!before) GTEST_SKIP() << "the kernel does not tell";
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    std::uint64_t moves = 0;
    int place = sched_getcpu();
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &allowed)) continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
        moves += sched_getcpu() != place ? 1u : 0u;
        place = sched_getcpu();
    }
    EXPECT_GE(self.migrations().value_or(0), *before + moves);
    sched_setaffinity(0, sizeof allowed, &allowed);
}

TEST(Observer, SeesAPeakThatIsOverAndForgetsIt) {
    const Observer self(getpid());
    self.reset_peak();
    const Observation before = self.read();
    constexpr std::size_t size = 128 * mebibyte;
    void* room =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    ASSERT_NE(room, MAP_FAILED);
    munmap(room, size);
    const Observation after = self.read();
    EXPECT_NEAR(static_cast<double>(after.peak_rss_bytes - before.peak_rss_bytes), size, 4.0 * mebibyte);
    EXPECT_LT(after.rss_bytes, before.rss_bytes + 8 * mebibyte);
    self.reset_peak();
    EXPECT_LT(self.read().peak_rss_bytes, before.peak_rss_bytes + 8 * mebibyte);
}

TEST(Observer, TellsApartWhatIsBehindPages) {
    // Before the first look: sanitizers keep for a while what was freed.
    const test::TemporaryFile file(std::string(8 * mebibyte, 'x'));
    const Observer self(getpid());
    const Observation before = self.read();
    void* const shared = mmap(nullptr, 32 * mebibyte, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    void* const own = mmap(nullptr, 64 * mebibyte, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    void* const mapped = mmap(nullptr, 8 * mebibyte, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file.fd(), 0);
    const Observation after = self.read();
    const double allowed = 2.0 * mebibyte;
    EXPECT_NEAR(static_cast<double>(after.anonymous_bytes) - static_cast<double>(before.anonymous_bytes),
                64.0 * mebibyte, allowed);
    const auto mapped_bytes = [](const Observation& seen) {
        return static_cast<double>(seen.shared_rss_bytes) + static_cast<double>(seen.file_rss_bytes);
    };
    EXPECT_NEAR(static_cast<double>(after.shared_rss_bytes) - static_cast<double>(before.shared_rss_bytes),
                32.0 * mebibyte, allowed + 8.0 * mebibyte)
        << "a file of /tmp may be shared memory";
    EXPECT_NEAR(mapped_bytes(after) - mapped_bytes(before), 40.0 * mebibyte, allowed);
    EXPECT_NEAR(static_cast<double>(after.anonymous_bytes) + mapped_bytes(after),
                static_cast<double>(after.rss_bytes), allowed);
    munmap(shared, 32 * mebibyte);
    munmap(own, 64 * mebibyte);
    munmap(mapped, 8 * mebibyte);
}

TEST(Observer, CountsWhatAForkSharesOnceWhereItIsAsked) {
    constexpr std::size_t size = 64 * mebibyte;
    void* const own =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    const Observer self(getpid());
    const auto before = static_cast<double>(self.read(Counting::kOnce).anonymous_bytes);
    const pid_t child = fork();
    if (child == 0) {
        for (;;) pause();
    }
    const auto once = static_cast<double>(self.read(Counting::kOnce).anonymous_bytes);
    const auto in_each = static_cast<double>(self.read().anonymous_bytes);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    munmap(own, size);
    EXPECT_NEAR(once, before, 4.0 * mebibyte);
    EXPECT_GE(in_each, before + 0.9 * size);
}

TEST(Observer, SumsOverChildrenAndSeesThemStopped) {
    const pid_t child = fork();
    if (child == 0) {
        for (;;) pause();
    }
    EXPECT_EQ(Observer(getpid()).read().processes, 2u);
    const Observer observer(child);
    EXPECT_FALSE(observer.read().stopped);
    kill(child, SIGSTOP);
    int status = 0;
    waitpid(child, &status, WUNTRACED);
    EXPECT_TRUE(observer.read().stopped);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    try {
        observer.read();
        FAIL() << "a process that has ended was observed";
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code().value(), ESRCH);
    }
    EXPECT_THROW(observer.reset_peak(), std::system_error);
    EXPECT_THROW(observer.libraries(), std::system_error);
}

TEST(KnownLibraries, ByFileName) {
    EXPECT_EQ(library_kind("/usr/lib/libopenblas.so.0"), "blas");
    EXPECT_EQ(library_kind("/x/numpy.libs/libscipy_openblas64_-32a4b2a6.so"), "blas");
    EXPECT_EQ(library_kind("/x/torch/lib/libgomp-a34b3233.so.1"), "openmp");
    EXPECT_EQ(library_kind("/x/libdnnl.so.3.2"), "onednn");
    EXPECT_EQ(library_kind("/x/torch/lib/libtorch_cpu.so"), "framework");
    EXPECT_EQ(library_kind("/x/native/backends/eigen-avx2.so"), "backend");
    EXPECT_EQ(library_kind("/usr/lib/libc.so.6"), "");
    EXPECT_EQ(library_kind("/data/libopenblas-notes.txt"), "");
    EXPECT_EQ(library_kind(""), "");
}

TEST(Score, AccuracyTakesTheFirstMaximum) {
    Score score(LossKind::kSoftmaxCrossEntropy, 3);
    const float predictions[] = {0, 1, 1, 0, 1, 1, 5, 0, 0};
    const std::int64_t labels[] = {1, 2, 0};
    score.add(predictions, labels, 3);
    EXPECT_DOUBLE_EQ(score.accuracy(), 2.0 / 3.0);
    EXPECT_EQ(score.samples(), 3u);
}

TEST(Score, RowsWithoutALabelDoNotCount) {
    Score score(LossKind::kSoftmaxCrossEntropy, 2);
    const float predictions[] = {0, 0, NAN, 1, 1, 0};
    const std::int64_t labels[] = {-1, -1, 1};
    score.add(predictions, labels, 3);
    EXPECT_EQ(score.samples(), 1u);
    EXPECT_DOUBLE_EQ(score.accuracy(), 0);
    EXPECT_NEAR(score.loss(), std::log(1 + std::exp(1.0)), 1e-12);
    EXPECT_EQ(Score::answer(predictions, 2), 0);
    EXPECT_EQ(Score::answer(predictions + 2, 2), -1);
}

TEST(Score, LossesByHand) {
    const float predictions[] = {0, 0, 1, 0};
    const std::int64_t labels[] = {0, 1};
    Score entropy(LossKind::kSoftmaxCrossEntropy, 2);
    entropy.add(predictions, labels, 2);
    EXPECT_NEAR(entropy.loss(), (std::log(2.0) + std::log(1 + std::exp(1.0))) / 2, 1e-12);
    Score squared(LossKind::kSquaredError, 2);
    squared.add(predictions, labels, 2);
    EXPECT_DOUBLE_EQ(squared.loss(), (0.5 + 1.0) / 2);
}

TEST(Score, LargePredictionsDoNotOverflowAndNanIsWrong) {
    Score score(LossKind::kSoftmaxCrossEntropy, 2);
    const float large[] = {1e4F, -1e4F};
    const std::int64_t label = 0;
    score.add(large, &label, 1);
    EXPECT_DOUBLE_EQ(score.loss(), 0);
    const float nan[] = {std::numeric_limits<float>::quiet_NaN(), 0};
    score.add(nan, &label, 1);
    EXPECT_DOUBLE_EQ(score.accuracy(), 0.5);
}

}  // namespace
}  // namespace timetrial
