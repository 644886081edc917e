// The pieces of the supervisor. The whole program is tested from outside: tests/process/test_exec.py.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "process/cpu_list.h"
#include "process/descendants.h"
#include "process/held_memory.h"
#include "process/limits.h"
#include "process/small_file.h"

namespace timetrial {
namespace {

TEST(CpuList, ReadsEveryFormThatUsersWrite) {
    EXPECT_EQ(parse_cpu_list("0"), (std::vector{0}));
    EXPECT_EQ(parse_cpu_list("0-1"), (std::vector{0, 1}));
    EXPECT_EQ(parse_cpu_list("0+2"), (std::vector{0, 2}));
    EXPECT_EQ(parse_cpu_list("2,0"), (std::vector{0, 2}));
    EXPECT_EQ(parse_cpu_list("0-2+1-3+8"), (std::vector{0, 1, 2, 3, 8}));
}

TEST(CpuList, PrintsOneForm) {
    EXPECT_EQ(format_cpu_list(parse_cpu_list("1,0")), "0-1");
    EXPECT_EQ(format_cpu_list(parse_cpu_list("0-2,5")), "0-2+5");
    EXPECT_EQ(format_cpu_list({}), "");
}

TEST(CpuList, RejectsEverythingElse) {
    for (const char* words : {"", "a", "0-", "-1", "0..1", "1-0", "0+", "0 1", "8192", "99999999999"}) {
        EXPECT_THROW(parse_cpu_list(words), std::invalid_argument) << words;
    }
}

TEST(Affinity, IsRefusedForACpuThatIsNotAllowed) {
    try {
        set_affinity({allowed_cpus().front(), 8000});
        FAIL() << "CPU 8000 was accepted";
    } catch (const std::invalid_argument& error) {
        EXPECT_NE(std::string(error.what()).find("CPU 8000 is not among"), std::string::npos) << error.what();
    }
}

TEST(Affinity, BindsTheCallingThread) {
    const std::vector<int> before = allowed_cpus();
    set_affinity({before.back()});
    EXPECT_EQ(allowed_cpus(), std::vector{before.back()});
    EXPECT_THROW(set_affinity({before.back() + 1}), std::invalid_argument);
}

TEST(Limits, NoneChangesNothing) {
    EXPECT_NO_THROW(Limits{}.apply());
    EXPECT_FALSE(Limits{}.has_cap());
}

TEST(Limits, AreWhatTheKernelSays) {
    Limits limits;
    limits.open_files = 77;
    EXPECT_TRUE(limits.has_cap());
    const pid_t child = fork();
    if (child == 0) {
        limits.apply();
        const bool is_told = std::strstr(limits_in_force().data(), " open_files 77") != nullptr;
        _exit(is_told ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(std::strstr(limits_in_force().data(), " open_files 77"), nullptr);
}

TEST(Limits, AGroupThatIsNoneIsRefused) {
    Limits limits;
    limits.groups = {testing::TempDir() + "no-such-group"};
    EXPECT_TRUE(limits.has_cap());
    EXPECT_THROW(limits.apply(), std::system_error);
}

TEST(HeldMemory, IsThatOfAllBelow) {
    EXPECT_EQ(held_memory(getpid()), std::nullopt);
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        constexpr std::size_t size = std::size_t{32} << 20;
        std::vector<char> touched(size, '\1');
        const pid_t grandchild = fork();
        if (grandchild == 0) touched.assign(size, '\2');  // pages of its own
        if (write(ready[1], &grandchild, sizeof grandchild) < 0) _exit(1);
        pause();
        _exit(touched[0]);
    }
    pid_t grandchild = 0;
    for (int i = 0; i < 2; ++i) {
        pid_t said = 0;
        ASSERT_EQ(read(ready[0], &said, sizeof said), static_cast<ssize_t>(sizeof said));
        grandchild = std::max(grandchild, said);
    }
    const std::optional<std::uint64_t> held = held_memory(getpid());
    ASSERT_TRUE(held.has_value());
    EXPECT_GE(*held, std::uint64_t{64} << 20);
    kill(grandchild, SIGKILL);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
}

TEST(SmallFile, IsReadToItsEndWhateverInterrupts) {
    const std::string path = testing::TempDir() + "interrupted-" + std::to_string(getpid());
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    struct sigaction action{};
    action.sa_handler = [](int) {};  // without SA_RESTART: what waits is interrupted
    sigaction(SIGUSR1, &action, nullptr);
    const pthread_t reader = pthread_self();
    const auto disturb = [&] {
        for (int i = 0; i < 20; ++i) {
            pthread_kill(reader, SIGUSR1);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    };
    std::thread writer([&] {
        disturb();  // while it opens
        const int fd = open(path.c_str(), O_WRONLY);
        for (const char* words : {"first, ", "last"}) {
            ASSERT_GT(write(fd, words, std::strlen(words)), 0);
            disturb();
        }
        close(fd);
    });
    EXPECT_EQ(read_small_file(path), "first, last");
    writer.join();
    unlink(path.c_str());
}

TEST(Descendants, ThoseInOtherSessionsCountToo) {
    EXPECT_TRUE(descendants(getpid()).empty());
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        setsid();
        const pid_t grandchild = fork();
        if (grandchild != 0 && write(ready[1], &grandchild, sizeof grandchild) < 0) _exit(1);
        pause();
        _exit(0);
    }
    pid_t grandchild = 0;
    ASSERT_EQ(read(ready[0], &grandchild, sizeof grandchild), static_cast<ssize_t>(sizeof grandchild));
    EXPECT_EQ(descendants(getpid()), (std::vector{child, grandchild}));
    EXPECT_EQ(descendants(child), (std::vector{grandchild}));
    kill(grandchild, SIGKILL);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT_TRUE(descendants(getpid()).empty());
}

}  // namespace
}  // namespace timetrial
