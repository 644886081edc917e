// What processors and the kernel count of threads and of all that they start: perf events.
#pragma once

#include <linux/perf_event.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace timetrial {

// Sums since the counters were opened. Where events take turns on a processor that has too few counters,
// `count` is of `running_ns` of the `enabled_ns` that the threads were on processors.
struct CounterSum {
    std::string name;
    bool is_hardware = false;
    int error = 0;  // why it is not counted: errno of perf_event_open; 0: it is
    std::uint64_t count = 0;
    std::uint64_t enabled_ns = 0;
    std::uint64_t running_ns = 0;
};

// As perf_event_open, for a thread, on every processor: a descriptor, or -errno.
using OpenCounter = std::function<int(perf_event_attr&, pid_t)>;
int open_counter(perf_event_attr& event, pid_t tid);

// Events of the hardware in user mode, which needs no rights by the kernel's default; then those of the
// kernel. A kernel adds the counts of all that a counted thread starts, but one that has begun is only
// counted itself: so each thread of a tree is named here, and none of them may start others meanwhile.
// A read takes about 1 us for each event and thread.
class Counters {
  public:
    explicit Counters(const std::vector<pid_t>& tids, const OpenCounter& open = open_counter);
    Counters(const Counters&) = delete;
    Counters& operator=(const Counters&) = delete;
    ~Counters() { close(); }

    // In the same order always; the sums of threads that have ended stay in.
    std::vector<CounterSum> read() const;
    void close();

  private:
    struct Counter {
        CounterSum sum;
        std::vector<int> fds;
    };

    std::vector<Counter> counters_;
};

}  // namespace timetrial
