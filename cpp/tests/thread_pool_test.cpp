// The pool of the layers: what a task throws reaches whoever ran it, and never ends the process.
#include "layers/threads.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace timetrial::layers {
namespace {

class Pool : public testing::TestWithParam<int> {};

TEST_P(Pool, EachThreadRunsTheTaskOnce) {
    ThreadPool pool(GetParam());
    std::vector<int> runs(static_cast<std::size_t>(GetParam()),
                          0);  // written without locks: the pool orders it
    for (int i = 0; i < 200; ++i) pool.run([&](int thread) { ++runs[static_cast<std::size_t>(thread)]; });
    EXPECT_EQ(runs, std::vector<int>(static_cast<std::size_t>(GetParam()), 200));
}

TEST_P(Pool, WhatAnyThreadThrowsIsThrownWhenAllAreDone) {
    ThreadPool pool(GetParam());
    for (int thrower = 0; thrower < GetParam(); ++thrower) {
        std::atomic<int> done = 0;
        const auto task = [&](int thread) {
            if (thread == thrower) throw std::bad_alloc();
            std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the others are still at it
            ++done;
        };
        EXPECT_THROW(pool.run(task), std::bad_alloc);
        EXPECT_EQ(done, GetParam() - 1);
    }
    int after = 0;
    pool.run([&](int thread) {
        if (thread == 0) ++after;
    });
    EXPECT_EQ(after, 1);
}

TEST_P(Pool, OneErrorIsEnough) {
    ThreadPool pool(GetParam());
    for (int i = 0; i < 50; ++i)
        EXPECT_THROW(pool.run([](int thread) { throw std::out_of_range(std::to_string(thread)); }),
                     std::out_of_range);
}

INSTANTIATE_TEST_SUITE_P(Threads, Pool, testing::Values(1, 2, 5));

#if defined(__SANITIZE_THREAD__)
TEST(ThreadPoolDeathTest, ARaceIsFound) {  // that the others are green says something
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto race = [] {
        ThreadPool pool(2);
        int shared = 0;
        for (int i = 0; i < 100; ++i) pool.run([&](int) { ++shared; });
    };
    EXPECT_EXIT(race(), testing::ExitedWithCode(66), "data race");
}
#elif !defined(__SANITIZE_ADDRESS__)  // which takes more address space than is left here
TEST(ThreadPool, SaysThatTheMachineGivesNoMoreThreads) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
    rlimit few = before;
    few.rlim_cur = pages * 4096 + (200u << 20);  // room for the stacks of some threads
    ASSERT_EQ(setrlimit(RLIMIT_AS, &few), 0);
    std::string words;
    try {
        const ThreadPool pool(1000);
    } catch (const std::runtime_error& error) {
        words = error.what();
    }
    ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
    EXPECT_NE(words.find(" of 1000 could not be started: "), std::string::npos) << words;
    ThreadPool pool(2);  // nothing of the first is in the way
    int runs = 0;
    pool.run([&](int thread) {
        if (thread == 1) ++runs;
    });
    EXPECT_EQ(runs, 1);
}
#endif

}  // namespace
}  // namespace timetrial::layers
