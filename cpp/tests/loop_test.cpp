#include "loop/loop.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <limits>
#include <vector>

#include "loop/gather.h"

namespace timetrial {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class Loop : public testing::Test {
  protected:
    static constexpr std::uint32_t kCapacity = 64;

    void SetUp() override {
        fd_ = create_recorder_file(2, kCapacity);
        ASSERT_GE(fd_, 0);
        ASSERT_EQ(recorder_.open(fd_, 0), 0);
    }
    void TearDown() override { close(fd_); }

    int run(const std::vector<tt_loop_part>& parts) {
        return run_segment(recorder_, parts.data(), static_cast<std::uint32_t>(parts.size()), segment_);
    }
    WindowContent content() {
        WindowContent content;
        EXPECT_EQ(read_window(fd_, segment_.window, content), 0);
        return content;
    }
    std::vector<std::uint32_t> boundaries() {
        std::vector<std::uint32_t> numbers;
        for (const std::uint64_t stamp : content().stamps) numbers.push_back(tt_stamp_boundary(stamp));
        return numbers;
    }

    int fd_ = -1;
    Recorder recorder_;
    tt_segment segment_ = [] {
        tt_segment segment{};
        segment.size = sizeof segment;
        segment.max_steps = 5;
        return segment;
    }();
};

// Hands out losses one by one; a call after the last fails with 7.
struct Losses {
    std::vector<double> values;
    std::size_t next = 0;

    static int call(void* user, double* loss) {
        auto* losses = static_cast<Losses*>(user);
        if (losses->next == losses->values.size()) return 7;
        *loss = losses->values[losses->next++];
        return 0;
    }
};

int count_call(void* user, double*) {
    ++*static_cast<int*>(user);
    return 0;
}

using Boundaries = std::vector<std::uint32_t>;

TEST_F(Loop, StampsEveryStepAndKeepsItsLoss) {
    Losses losses{{5, 4, 3, 2, 1, 0}};
    ASSERT_EQ(run({{TT_STEP, Losses::call, &losses}}), 0);
    EXPECT_EQ(segment_.steps, 5u);
    EXPECT_EQ(segment_.stamps, 6u);
    EXPECT_EQ(segment_.call_status, 0);
    EXPECT_GT(segment_.window_bytes, 0u);
    EXPECT_EQ(boundaries(), (Boundaries{0, 1, 1, 1, 1, 1}));
    EXPECT_EQ(content().losses, (std::vector<double>{5, 4, 3, 2, 1}));
}

TEST_F(Loop, StampsThePartsThatAskForIt) {
    segment_.max_steps = 2;
    segment_.window = 1;
    int gathers = 0;
    int forwards = 0;
    Losses losses{{1, 2}};
    ASSERT_EQ(run({{TT_DATA, count_call, &gathers},
                   {TT_SEGMENT, count_call, &forwards},
                   {TT_LOSS_END, Losses::call, &losses},
                   {TT_STEP, count_call, &forwards}}),
              0);
    EXPECT_EQ(boundaries(), (Boundaries{0, 2, 4, 1, 2, 4, 1}));
    EXPECT_EQ(content().losses, (std::vector<double>{1, 2}));
    EXPECT_EQ(gathers, 2);
    EXPECT_EQ(forwards, 4);
}

TEST_F(Loop, EndsAtTheCallThatFails) {
    segment_.max_steps = 20;
    Losses losses{{1, 2}};
    ASSERT_EQ(run({{TT_STEP, Losses::call, &losses}}), 0);
    EXPECT_EQ(segment_.call_status, 7);
    EXPECT_EQ(segment_.steps, 2u);
    EXPECT_EQ(segment_.stamps, 3u);
}

TEST_F(Loop, EndsAtALossThatIsNotFiniteIfAsked) {
    for (const double bad : {kNan, std::numeric_limits<double>::infinity()}) {
        Losses losses{{1, bad, 3, 4, 5}};
        segment_.stop_at_nan = 1;
        ASSERT_EQ(run({{TT_STEP, Losses::call, &losses}}), 0);
        EXPECT_EQ(segment_.steps, 2u);
        EXPECT_FALSE(std::isfinite(content().losses.at(1)));
        losses.next = 0;
        segment_.stop_at_nan = 0;
        ASSERT_EQ(run({{TT_STEP, Losses::call, &losses}}), 0);
        EXPECT_EQ(segment_.steps, 5u);
    }
}

TEST_F(Loop, AStepWithoutLossIsNoBadLoss) {
    int calls = 0;
    segment_.stop_at_nan = 1;
    ASSERT_EQ(run({{TT_STEP, count_call, &calls}}), 0);
    EXPECT_EQ(segment_.steps, 5u);
    for (const double loss : content().losses) EXPECT_TRUE(std::isnan(loss));
}

TEST_F(Loop, EndsWithItsTimeOnTheStampJustTaken) {
    int calls = 0;
    segment_.max_steps = 60;
    segment_.max_ns = 1;
    ASSERT_EQ(run({{TT_STEP, count_call, &calls}}), 0);
    EXPECT_EQ(segment_.steps, 1u);
    segment_.max_ns = 3'000'000;
    const auto sleep = [](void*, double*) { return usleep(1000); };
    ASSERT_EQ(run({{TT_STEP, sleep, nullptr}}), 0);
    EXPECT_GE(segment_.steps, 1u);
    EXPECT_LE(segment_.steps, 3u);
    const auto stamps = content().stamps;
    EXPECT_GE(tt_stamp_time_ns(stamps.back()) - tt_stamp_time_ns(stamps.front()), segment_.max_ns);
}

// What a contender with a state does: its loss says how many steps it is from its initial state.
struct Trained {
    int steps = 0;
    int resets = 0;

    static int step(void* user, double* loss) {
        *loss = static_cast<Trained*>(user)->steps++;
        return 0;
    }
    static int reset(void* user, double*) {
        auto* trained = static_cast<Trained*>(user);
        trained->steps = 0;
        ++trained->resets;
        return 0;
    }
};

TEST_F(Loop, ResetsBeforeEachPassAndStampsIt) {
    Trained trained;
    const tt_loop_part reset{TT_SEGMENT, Trained::reset, &trained};
    segment_.reset = &reset;
    segment_.pass_steps = 3;
    segment_.max_steps = 6;
    ASSERT_EQ(run({{TT_STEP, Trained::step, &trained}}), 0);
    EXPECT_EQ(boundaries(), (Boundaries{0, 1, 1, 1, 6, 1, 1, 1}));
    EXPECT_EQ(content().losses, (std::vector<double>{0, 1, 2, 0, 1, 2}));
    EXPECT_EQ(segment_.pass_done, 3u);  // the next reset waits for the next step
    EXPECT_EQ(trained.resets, 1);
    segment_.max_steps = 2;
    ASSERT_EQ(run({{TT_STEP, Trained::step, &trained}}), 0);
    EXPECT_EQ(boundaries(), (Boundaries{0, 6, 1, 1}));
    EXPECT_EQ(segment_.pass_done, 2u);
    segment_.max_steps = 2;
    ASSERT_EQ(run({{TT_STEP, Trained::step, &trained}}), 0);
    EXPECT_EQ(boundaries(), (Boundaries{0, 1, 6, 1}));
    EXPECT_EQ(content().losses, (std::vector<double>{2, 0}));
}

TEST_F(Loop, FindsRoomForTheStampsOfResets) {
    for (std::uint32_t pass = 1; pass <= kCapacity; ++pass) {
        for (const std::uint32_t done : {0u, pass / 2, pass, 1'000'000u}) {
            Trained trained;
            const tt_loop_part reset{TT_SEGMENT, Trained::reset, &trained};
            segment_.reset = &reset;
            segment_.pass_steps = pass;
            segment_.pass_done = done;
            segment_.max_steps = 1'000'000;
            ASSERT_EQ(run({{TT_STEP, Trained::step, &trained}}), 0);
            EXPECT_EQ(segment_.stamps, 1 + segment_.steps + static_cast<std::uint32_t>(trained.resets));
            EXPECT_LE(segment_.stamps, kCapacity);
            EXPECT_GE(segment_.stamps, kCapacity - 3);
            EXPECT_EQ(content().losses.size(), segment_.steps);
        }
    }
}

TEST_F(Loop, EndsAtAResetThatFails) {
    Trained trained;
    const tt_loop_part reset{TT_SEGMENT, [](void*, double*) { return 7; }, nullptr};
    segment_.reset = &reset;
    segment_.pass_steps = 2;
    ASSERT_EQ(run({{TT_STEP, Trained::step, &trained}}), 0);
    EXPECT_EQ(segment_.call_status, 7);
    EXPECT_EQ(segment_.steps, 2u);
    segment_.reset = nullptr;
    EXPECT_EQ(run({{TT_STEP, Trained::step, &trained}}), EINVAL);
}

TEST_F(Loop, EndsWhenTheWindowIsFull) {
    int calls = 0;
    segment_.max_steps = 1'000'000;
    ASSERT_EQ(run({{TT_DATA, count_call, &calls}, {TT_STEP, count_call, &calls}}), 0);
    EXPECT_EQ(segment_.steps, (kCapacity - 1) / 2);
    EXPECT_EQ(calls, 62);
}

TEST_F(Loop, SurvivesAStepThatStampsMoreThanWasReserved) {
    const auto stamp_twice = [](void* user, double*) {
        static_cast<Recorder*>(user)->stamp(TT_FIRST_USER_BOUNDARY);
        static_cast<Recorder*>(user)->stamp(TT_FIRST_USER_BOUNDARY);
        return 0;
    };
    ASSERT_EQ(run({{TT_STEP, stamp_twice, &recorder_}}), 0);
    EXPECT_EQ(segment_.steps, 1u);
    EXPECT_EQ(boundaries(), (Boundaries{0, 64, 64, 1, 64, 64}));
    const auto end_it = [](void* user, double*) {
        return static_cast<Recorder*>(user)->end(nullptr, nullptr);
    };
    EXPECT_EQ(run({{TT_STEP, end_it, &recorder_}}), EBADF);
    EXPECT_EQ(segment_.steps, 0u);
}

TEST_F(Loop, RefusesPartsThatMakeNoStep) {
    int calls = 0;
    EXPECT_EQ(run({}), EINVAL);
    EXPECT_EQ(run({{TT_DATA, count_call, &calls}}), EINVAL);
    EXPECT_EQ(run({{TT_STEP, count_call, &calls}, {TT_STEP, count_call, &calls}}), EINVAL);
    EXPECT_EQ(run({{256, count_call, &calls}, {TT_STEP, count_call, &calls}}), EINVAL);
    segment_.max_steps = 0;
    EXPECT_EQ(run({{TT_STEP, count_call, &calls}}), EINVAL);
    segment_.max_steps = 1;
    ASSERT_EQ(recorder_.begin(0, 1), 0);
    EXPECT_EQ(run({{TT_STEP, count_call, &calls}}), EBUSY);
    EXPECT_EQ(calls, 0);
}

TEST_F(Loop, ALimitBeyondTheClockIsNone) {
    Losses losses{{5, 4, 3, 2, 1}};
    segment_.max_ns = std::numeric_limits<std::uint64_t>::max();
    ASSERT_EQ(run({{TT_STEP, Losses::call, &losses}}), 0);
    EXPECT_EQ(segment_.steps, 5u);
}

TEST(Gather, FollowsTheOrderAndStartsAgain) {
    const std::vector<float> images{0, 1, 10, 11, 20, 21, 30, 31};
    const std::vector<std::int64_t> labels{0, 1, 2, 3};
    const std::vector<std::int64_t> order{3, 0, 1, 1, 2, 3};
    std::vector<float> batch(4);
    std::vector<std::int64_t> batch_labels(2);
    Gather gather{
        {{images.data(), batch.data(), 8}, {labels.data(), batch_labels.data(), 8}}, order.data(), 3, 2};
    std::vector<std::vector<std::int64_t>> seen;
    for (int step = 0; step < 4; ++step) {
        ASSERT_EQ(Gather::call(&gather, nullptr), 0);
        seen.push_back(batch_labels);
        EXPECT_EQ(batch[2], 10.0f * static_cast<float>(batch_labels[1]));
    }
    EXPECT_EQ(seen, (std::vector<std::vector<std::int64_t>>{{3, 0}, {1, 1}, {2, 3}, {3, 0}}));
}

// Rows that belong to no sample come one after the other, whatever the order says.
TEST(Gather, TakesDrawnRowsInTurn) {
    const std::vector<std::int64_t> drawn{0, 1, 2, 3, 4}, order(8, 7);
    std::vector<std::int64_t> batch(2);
    Gather gather{{{drawn.data(), batch.data(), 8, drawn.size()}}, order.data(), 4, 2};
    std::vector<std::vector<std::int64_t>> seen;
    for (int step = 0; step < 5; ++step) {
        ASSERT_EQ(Gather::call(&gather, nullptr), 0);
        seen.push_back(batch);
    }
    EXPECT_EQ(seen, (std::vector<std::vector<std::int64_t>>{{0, 1}, {2, 3}, {4, 0}, {1, 2}, {0, 1}}));
    std::vector<std::int64_t> large(12);  // a batch of more rows than there are
    take_rows(large.data(), drawn.data(), 8, 5, 3, large.size());
    EXPECT_EQ(large, (std::vector<std::int64_t>{3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4}));
}

TEST(Gather, FindsAnIndexOutsideTheData) {
    const std::vector<std::int64_t> order{0, 3, 4, -1};
    EXPECT_EQ(first_index_outside(order.data(), 4, 5), 3);
    EXPECT_EQ(first_index_outside(order.data(), 4, 4), 2);
    EXPECT_EQ(first_index_outside(order.data(), 2, 4), -1);
}

}  // namespace
}  // namespace timetrial
