#include "metrics/counters.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

namespace timetrial {
namespace {

struct Event {
    std::string_view name;
    std::uint32_t type;
    std::uint64_t config;
    // Switches and migrations happen in the kernel, and are never counted where that is left out.
    bool only_user_mode;
};

constexpr std::uint64_t data_tlb_load_misses =
    PERF_COUNT_HW_CACHE_DTLB | (PERF_COUNT_HW_CACHE_OP_READ << 8) | (PERF_COUNT_HW_CACHE_RESULT_MISS << 16);

// Not more of the first kind than processors can count at a time: two have counters of their own, and four
// are there for others.
constexpr std::array<Event, 9> events = {{
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, true},
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, true},
    {"cache_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, true},
    {"branch_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, true},
    {"tlb_misses", PERF_TYPE_HW_CACHE, data_tlb_load_misses, true},
    {"task_clock_ns", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, true},
    {"page_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, true},
    {"context_switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, false},
    {"migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, false},
}};

perf_event_attr attributes_of(const Event& event) {
    perf_event_attr wanted{};
    wanted.size = sizeof wanted;
    wanted.type = event.type;
    wanted.config = event.config;
    wanted.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    wanted.inherit = 1;
    wanted.exclude_kernel = event.only_user_mode ? 1 : 0;
    wanted.exclude_hv = 1;
    return wanted;
}

void close_all(std::vector<int>& fds) {
    for (const int fd : fds) ::close(fd);
    fds.clear();
}

}  // namespace

int open_counter(perf_event_attr& event, pid_t tid) {
    const long fd = syscall(SYS_perf_event_open, &event, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : static_cast<int>(fd);
}

Counters::Counters(const std::vector<pid_t>& tids, const OpenCounter& open) {
    for (const Event& event : events) {
        Counter counter;
        counter.sum.name = event.name;
        counter.sum.is_hardware = event.type != PERF_TYPE_SOFTWARE;
        perf_event_attr wanted = attributes_of(event);
        for (const pid_t tid : tids) {
            const int fd = open(wanted, tid);
            if (fd == -ESRCH) continue;  // it has ended meanwhile
            if (fd < 0) {                // of some threads only, it would be a number of nothing
                counter.sum.error = -fd;
                close_all(counter.fds);
                break;
            }
            counter.fds.push_back(fd);
        }
        if (counter.fds.empty() && counter.sum.error == 0) counter.sum.error = ESRCH;
        counters_.push_back(std::move(counter));
    }
}

void Counters::close() {
    for (Counter& counter : counters_) close_all(counter.fds);
}

std::vector<CounterSum> Counters::read() const {
    std::vector<CounterSum> found;
    for (const Counter& counter : counters_) {
        CounterSum sum = counter.sum;
        for (const int fd : counter.fds) {
            std::array<std::uint64_t, 3>
                values{};  // man 2 perf_event_open: value, time enabled, time running
            if (::read(fd, values.data(), sizeof values) != static_cast<ssize_t>(sizeof values)) continue;
            sum.count += values[0];
            sum.enabled_ns += values[1];
            sum.running_ns += values[2];
        }
        found.push_back(std::move(sum));
    }
    return found;
}

}  // namespace timetrial
