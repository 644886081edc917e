// The null backend: a step of a known length, and every way to fail happens as its name says.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>

#include "support/trainer.h"

namespace timetrial::testing {
namespace {

using Settings = std::map<std::string, std::string>;

Problem small() {
    return Problem({node("fc", "dense", {{"units", 2.0}}), loss_of("fc")}, 2, {3}, Numbers::kReal);
}

// The status and the words with which `settings` end a few steps; TT_OK if they do not.
std::pair<tt_status, std::string> end_of(const Settings& settings, int steps = 5) {
    const Problem problem = small();
    try {
        Trainer trainer(plugin_path("null"), problem, settings);
        for (int step = 0; step < steps; ++step) trainer.step();
        return {TT_OK, ""};
    } catch (const BackendError& error) {
        return {error.status(), error.what()};
    }
}

TEST(Null, IsWhatItSays) {
    const Plugin plugin(plugin_path("null"));
    EXPECT_EQ(plugin.description().flags, static_cast<unsigned>(TT_READS_NO_DATA | TT_UNPROVABLE));
    EXPECT_EQ(plugin.table().evaluate, nullptr);
    EXPECT_EQ(end_of({}).first, TT_OK);
}

TEST(Null, StepLastsAsLongAsAsked) {
    const Problem problem = small();
    Trainer trainer(plugin_path("null"), problem, {{"null.step_us", "2000"}});
    const auto start = std::chrono::steady_clock::now();
    for (int step = 0; step < 5; ++step) trainer.step();
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(10));
}

// Acceptance test 4, as far as a busy machine lets a test say.
TEST(Null, WorkTakesLongerWhereThereIsMore) {
    const Problem problem = small();
    const auto best_of_five = [&](const char* units) {
        Trainer trainer(plugin_path("null"), problem, {{"null.work_units", units}});
        auto best = std::chrono::nanoseconds::max();
        for (int step = 0; step < 5; ++step) {
            const auto start = std::chrono::steady_clock::now();
            trainer.step();
            best = std::min(best, std::chrono::nanoseconds(std::chrono::steady_clock::now() - start));
        }
        return best;
    };
    EXPECT_GT(best_of_five("1000"), 3 * best_of_five("100"));
}

TEST(Null, FailuresThatAreStatuses) {
    EXPECT_EQ(end_of({{"null.fail", "throw"}}).first, TT_FAILED);
    EXPECT_EQ(end_of({{"null.fail", "throw"}}).second, "null.fail = throw: an exception, as asked");
    EXPECT_EQ(end_of({{"null.fail", "oom"}}).first, TT_OUT_OF_MEMORY);
    EXPECT_EQ(end_of({{"null.fail", "unsupported_layer"}}).first, TT_UNSUPPORTED);
    EXPECT_EQ(end_of({{"null.fail", "unsupported_layer"}}).second,
              "the backend has no layer 'dense' (layer 'fc')");
    EXPECT_EQ(end_of({{"null.fail", "grow"}, {"null.fail_after", "0"}}, 70).first, TT_OUT_OF_MEMORY);
}

TEST(Null, FailsWhenAsked) {
    EXPECT_EQ(end_of({{"null.fail", "throw"}}, 3).first, TT_OK);
    EXPECT_EQ(end_of({{"null.fail", "throw"}}, 4).first, TT_FAILED);
    EXPECT_EQ(end_of({{"null.fail", "throw"}, {"null.fail_after", "0"}}, 1).first, TT_FAILED);
    EXPECT_EQ(end_of({{"null.fail", "throw"}, {"null.fail_at", "build"}}, 0).first, TT_FAILED);
}

TEST(Null, Nan) {
    const Problem problem = small();
    Trainer trainer(plugin_path("null"), problem, {{"null.fail", "nan"}, {"null.fail_after", "1"}});
    EXPECT_EQ(trainer.step(), 0.0);
    EXPECT_TRUE(std::isnan(trainer.step()));
    trainer.context().reset();
    EXPECT_EQ(trainer.part(TT_PART_LOSS), 0.0);
}

TEST(NullDeathTest, FailuresThatEndTheProcess) {
    EXPECT_EXIT(end_of({{"null.fail", "abort"}}), ::testing::KilledBySignal(SIGABRT), "");
    EXPECT_EXIT(end_of({{"null.fail", "segv"}}), ::testing::KilledBySignal(SIGSEGV), "");
    EXPECT_EXIT(end_of({{"null.fail", "exit"}}), ::testing::ExitedWithCode(7), "");
    const auto hang = [] {
        alarm(1);
        end_of({{"null.fail", "hang"}});
    };
    EXPECT_EXIT(hang(), ::testing::KilledBySignal(SIGALRM), "");
}

TEST(Null, PrintsInEveryPhase) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    end_of({{"null.fail", "print"}}, 1);
    const std::string out = ::testing::internal::GetCapturedStdout(),
                      err = ::testing::internal::GetCapturedStderr();
    for (const char* phase : {"configure", "build", "step", "close"}) {
        EXPECT_NE(out.find(phase), std::string::npos) << phase;
        EXPECT_NE(err.find(phase), std::string::npos) << phase;
    }
}

TEST(Null, SettingsAreReadBack) {
    const Problem problem = small();
    Trainer trainer(plugin_path("null"), problem, {{"null.step_us", "7"}});
    EXPECT_EQ(trainer.context().read_setting("null.step_us").effective, "7");
    EXPECT_EQ(trainer.context().read_setting("threads").effective, "1");
    Trainer liar(plugin_path("null"), problem, {{"null.fail", "wrong_threads"}});
    EXPECT_EQ(liar.context().read_setting("threads").effective, "2");
}

TEST(Null, RefusesBadSettings) {
    EXPECT_EQ(end_of({{"threads", "2"}}).first, TT_UNSUPPORTED);
    EXPECT_EQ(end_of({{"threads", "2"}}).second, "threads = '2': expected a whole number from 1 to 1");
    EXPECT_EQ(end_of({{"null.step_us", "-1"}}).first, TT_UNSUPPORTED);
    EXPECT_EQ(end_of({{"null.fail_at", "noon"}}).second, "null.fail_at = 'noon': expected step or build");
    const auto [status, words] = end_of({{"null.fail", "abrot"}});
    EXPECT_EQ(status, TT_UNSUPPORTED);
    EXPECT_NE(words.find("\n  abort: "), std::string::npos) << words;
    EXPECT_NE(end_of({{"null.step", "1"}}).second.find("null.step_us"), std::string::npos);
}

}  // namespace
}  // namespace timetrial::testing
