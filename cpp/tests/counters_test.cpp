// Counters of a child's threads, with a kernel that says no; energy zones of trees made for it.
#include "metrics/counters.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "metrics/energy.h"

namespace timetrial {
namespace {

constexpr std::size_t pages = 2000;

CounterSum named(const std::vector<CounterSum>& sums, const std::string& name) {
    for (const CounterSum& sum : sums) {
        if (sum.name == name) return sum;
    }
    ADD_FAILURE() << "no counter is called " << name;
    return {};
}

void touch_pages() {
    const std::size_t size = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* room = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(room, size, MADV_NOHUGEPAGE);
    volatile char* bytes = static_cast<char*>(room);
    for (std::size_t at = 0; at < size; at += size / pages) bytes[at] = 1;
}

// A child that starts a thread and a process when it is told to; both touch pages, and both end.
class Toucher {
  public:
    Toucher() {
        EXPECT_EQ(pipe(orders_.data()) + pipe(answers_.data()), 0);
        pid_ = fork();
        if (pid_ != 0) return;
        char order = 0;
        if (read(orders_[0], &order, 1) == 1) {
            std::thread(touch_pages).join();
            const pid_t other = fork();
            if (other == 0) touch_pages(), _exit(0);
            waitpid(other, nullptr, 0);
            if (write(answers_[1], "x", 1) < 0) _exit(1);
        }
        for (;;) pause();
    }
    Toucher(const Toucher&) = delete;
    Toucher& operator=(const Toucher&) = delete;
    ~Toucher() {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
        for (const int fd : {orders_[0], orders_[1], answers_[0], answers_[1]}) close(fd);
    }

    pid_t pid() const { return pid_; }
    void work() {
        char answer = 0;
        EXPECT_EQ(write(orders_[1], "x", 1), 1);
        EXPECT_EQ(read(answers_[0], &answer, 1), 1);
    }

  private:
    std::array<int, 2> orders_{};
    std::array<int, 2> answers_{};
    pid_t pid_ = 0;
};

TEST(Counters, CountThreadsAndProcessesThatBeginAndEndMeanwhile) {
    Toucher child;
    const Counters counters({child.pid()});
    const CounterSum before = named(counters.read(), "page_faults");
    if (before.error != 0) GTEST_SKIP() << "the kernel refuses: errno " << before.error;
    child.work();
    const CounterSum after = named(counters.read(), "page_faults");
    EXPECT_GE(after.count - before.count, 2 * pages);
    EXPECT_LT(after.count - before.count, 3 * pages) << "what they need besides is little";
    EXPECT_GT(after.enabled_ns, before.enabled_ns);
    EXPECT_EQ(after.enabled_ns, after.running_ns);
    EXPECT_GT(named(counters.read(), "task_clock_ns").count, 0u);
}

TEST(Counters, SayWhichErrorAndGoOnWithTheOthers) {
    const Counters counters({getpid()}, [](perf_event_attr& event, pid_t tid) {
        return event.type == PERF_TYPE_SOFTWARE ? open_counter(event, tid) : -EACCES;
    });
    const std::vector<CounterSum> sums = counters.read();
    EXPECT_EQ(sums.front().name, "instructions");
    EXPECT_TRUE(sums.front().is_hardware);
    EXPECT_EQ(sums.front().error, EACCES);
    EXPECT_EQ(named(sums, "tlb_misses").error, EACCES);
    EXPECT_FALSE(named(sums, "page_faults").is_hardware);
    EXPECT_NE(named(sums, "page_faults").error, EACCES);
}

TEST(Counters, AskForUserModeAloneWhereThatCounts) {
    int in_kernel = 0;
    const Counters counters({getpid()}, [&](perf_event_attr& event, pid_t) {
        EXPECT_TRUE(event.inherit);
        in_kernel += event.exclude_kernel ? 0 : 1;
        return -ENOENT;
    });
    EXPECT_EQ(in_kernel, 2);  // switches and migrations
}

TEST(Counters, AreAllOrNothingButForThreadsThatHaveEnded) {
    std::vector<int> opened;
    const auto open_until = [&](pid_t last) {
        return [&opened, last](perf_event_attr&, pid_t tid) {
            if (tid == 1) return -ESRCH;
            if (tid == last) return -EMFILE;
            opened.push_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
            return opened.back();
        };
    };
    const Counters refused({1, 2, 3}, open_until(3));
    EXPECT_EQ(refused.read().front().error, EMFILE);
    for (const int fd : opened) EXPECT_EQ(fcntl(fd, F_GETFD), -1);
    opened.clear();
    EXPECT_EQ(Counters({1, 2, 3}, open_until(0)).read().front().error, 0);
    for (const int fd : opened) EXPECT_EQ(fcntl(fd, F_GETFD), -1) << "closed with their counters";
    EXPECT_EQ(Counters({1}, open_until(0)).read().front().error, ESRCH) << "there is nobody left";
}

class Tree {
  public:
    Tree() : folder_(std::filesystem::temp_directory_path() / ("energy-" + std::to_string(getpid()))) {
        std::filesystem::create_directories(zones());
    }
    Tree(const Tree&) = delete;
    Tree& operator=(const Tree&) = delete;
    ~Tree() { std::filesystem::remove_all(folder_); }

    std::string root() const { return folder_; }
    std::filesystem::path zones() const { return folder_ / "sys/class/powercap"; }
    void add(const std::string& zone, const std::string& name, const std::string& value) const {
        std::filesystem::create_directory(zones() / zone);
        std::ofstream(zones() / zone / "name") << name << '\n';
        std::ofstream(zones() / zone / "max_energy_range_uj") << "262143328850\n";
        std::ofstream(zones() / zone / "energy_uj") << value;
    }

  private:
    std::filesystem::path folder_;
};

TEST(Energy, HasEachZoneOnceInOrder) {
    const Tree tree;
    tree.add("intel-rapl:1", "package-1", "7\n");
    tree.add("intel-rapl:0:0", "dram", "5\n");
    tree.add("intel-rapl:0", "package-0", "123456789012\n");
    tree.add("intel-rapl-mmio:0", "package-0", "123456789012\n");
    const std::vector<EnergyZone> zones = read_energy(tree.root());
    ASSERT_EQ(zones.size(), 3u);
    EXPECT_EQ(zones[0].name, "package-0");
    EXPECT_EQ(zones[0].energy_uj, 123456789012u);
    EXPECT_EQ(zones[0].range_uj, 262143328850u);
    EXPECT_EQ(zones[0].error, 0);
    EXPECT_EQ(zones[1].zone, "intel-rapl:0:0");
    EXPECT_EQ(zones[2].energy_uj, 7u);
}

TEST(Energy, SaysWhatIsRefusedOrMissing) {
    const Tree tree;
    EXPECT_THROW(read_energy(tree.root()), std::system_error) << "no zone";
    EXPECT_THROW(read_energy(tree.root() + "/nowhere"), std::system_error);
    tree.add("intel-rapl:0", "package-0", "none\n");
    EXPECT_EQ(read_energy(tree.root()).front().error, ENODATA);
    std::filesystem::remove(tree.zones() / "intel-rapl:0/energy_uj");
    EXPECT_EQ(read_energy(tree.root()).front().error, ENOENT);
    std::filesystem::create_directory(tree.zones() / "intel-rapl:0/energy_uj");
    EXPECT_EQ(read_energy(tree.root()).front().error, EISDIR);
}

}  // namespace
}  // namespace timetrial
