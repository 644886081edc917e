// Sampler: lines about a child that holds and burns what it says, and then stands still to be looked at.
#include "metrics/sampler.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace timetrial {
namespace {

constexpr double mebibyte = 1 << 20;

std::uint64_t clock_ns(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

void burn(std::uint64_t cpu_ns) {
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < cpu_ns) {
    }
}

void* touched(std::size_t size) {
    return mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
}

// A child that does one thing after another, each when it is told to, and stands still in between.
class Child {
  public:
    explicit Child(const std::vector<std::function<std::uint64_t()>>& deeds) {
        EXPECT_EQ(pipe(orders_.data()) + pipe(answers_.data()), 0);
        pid_ = fork();
        if (pid_ != 0) return;
        for (const auto& deed : deeds) {
            char order = 0;
            if (read(orders_[0], &order, 1) != 1) break;
            const std::uint64_t answer = deed();
            if (write(answers_[1], &answer, sizeof answer) < 0) break;
        }
        for (;;) pause();
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child() {
        end();
        for (const int fd : {orders_[0], orders_[1], answers_[0], answers_[1]}) close(fd);
    }

    std::uint64_t next() {
        std::uint64_t answer = 0;
        EXPECT_EQ(write(orders_[1], "x", 1), 1);
        EXPECT_EQ(read(answers_[0], &answer, sizeof answer), static_cast<ssize_t>(sizeof answer));
        return answer;
    }
    void end() {
        if (pid_ <= 0) return;
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
        pid_ = 0;
    }

  private:
    std::array<int, 2> orders_{};
    std::array<int, 2> answers_{};
    pid_t pid_ = 0;
};

using Row = std::map<std::string, double>;

class Table {
  public:
    Table() : folder_(std::filesystem::temp_directory_path() / ("sampler-" + std::to_string(getpid()))) {
        std::filesystem::create_directory(folder_);
    }
    Table(const Table&) = delete;
    Table& operator=(const Table&) = delete;
    ~Table() { std::filesystem::remove_all(folder_); }

    std::string folder() const { return folder_; }
    std::vector<Row> rows(const std::string& file) const {
        std::ifstream text(folder_ / file);
        std::string line;
        std::getline(text, line);
        const std::vector<std::string> names = split(line);
        std::vector<Row> found;
        while (std::getline(text, line)) {
            Row row;
            const std::vector<std::string> words = split(line);
            for (std::size_t i = 0; i < words.size(); ++i) {
                row[names.at(i)] = std::strtod(words[i].c_str(), nullptr);
            }
            found.push_back(row);
        }
        return found;
    }

  private:
    static std::vector<std::string> split(const std::string& line) {
        std::vector<std::string> words;
        std::istringstream text(line);
        for (std::string word; std::getline(text, word, '\t');) words.push_back(word);
        return words;
    }
    std::filesystem::path folder_;
};

TEST(Sampler, ReadsWhatWasTouchedAndThatItIsFreed) {
    void* room = nullptr;
    constexpr std::size_t size = 256u << 20;
    Child child({[&] { return room = touched(size), 0u; }, [&] { return munmap(room, size), 0u; }});
    const Table table;
    Sampler sampler(getpid(), table.folder());
    ASSERT_TRUE(sampler.take());
    child.next();
    ASSERT_TRUE(sampler.take());
    child.next();
    ASSERT_TRUE(sampler.take());
    const std::vector<Row> rows = table.rows("samples.tsv");
    ASSERT_EQ(rows.size(), 3u);
    const auto from_first = [&](std::size_t row, const char* column) {
        return rows[row].at(column) - rows[0].at(column);
    };
    EXPECT_NEAR(from_first(1, "anonymous_bytes"), size, 2 * mebibyte);
    EXPECT_NEAR(from_first(2, "anonymous_bytes"), 0, 2 * mebibyte);
    EXPECT_NEAR(from_first(2, "peak_bytes"), size, 2 * mebibyte);
    EXPECT_NEAR(from_first(2, "shared_bytes"), 0, mebibyte);
    EXPECT_GT(rows[2].at("time_ns"), rows[1].at("time_ns"));
    EXPECT_EQ(rows[2].at("processes"), 1);
}

TEST(Sampler, CountsCpuTimeOfThreadsThatHaveEnded) {
    Child child({[] {
        std::thread other([] { burn(60'000'000); });
        burn(30'000'000);
        other.join();
        return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    }});
    const Table table;
    Sampler sampler(getpid(), table.folder());
    ASSERT_TRUE(sampler.take());
    const auto own = static_cast<double>(child.next());
    ASSERT_TRUE(sampler.take());
    child.end();
    for (int i = 0; i < 7; ++i) ASSERT_TRUE(sampler.take());  // whoever is gone has no line
    const std::vector<Row> rows = table.rows("samples.tsv");
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_NEAR(rows[1].at("cpu_ns"), own, 0.01 * own);
    EXPECT_GE(own, 90e6);
}

TEST(Sampler, KnowsWhichThreadDidIt) {
    Child child({[] {
                     std::thread([] { burn(40'000'000), pause(); }).detach();
                     while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < 40'000'000) std::this_thread::yield();
                     return 0u;
                 },
                 [] { return burn(20'000'000 + clock_ns(CLOCK_THREAD_CPUTIME_ID)), 0u; }});
    const Table table;
    Sampler sampler(getpid(), table.folder());
    ASSERT_TRUE(sampler.take());
    child.next();
    ASSERT_TRUE(sampler.take());
    child.next();
    ASSERT_TRUE(sampler.take());
    std::map<double, double> cpu_ns;
    for (const Row& row : table.rows("thread_samples.tsv")) cpu_ns[row.at("tid")] = row.at("cpu_ns");
    ASSERT_EQ(cpu_ns.size(), 2u);
    for (const auto& [tid, used_ns] : cpu_ns) EXPECT_GE(used_ns, 15e6);  // a tick late while it runs
    EXPECT_EQ(table.rows("samples.tsv").back().at("threads"), 2);
}

TEST(Sampler, SaysWhenNothingCanBeWritten) {
    EXPECT_THROW(Sampler(getpid(), "/nowhere/at/all"), std::system_error);
    const Table table;
    const Sampler first(getpid(), table.folder());
    EXPECT_THROW(Sampler(getpid(), table.folder()), std::system_error) << "over another's tables";
}

}  // namespace
}  // namespace timetrial
