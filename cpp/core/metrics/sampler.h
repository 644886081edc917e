// What a process tree uses, looked at again and again: lines of two tables.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace timetrial {

// Cumulative counters of a thread; they go on from look to look.
struct ThreadCounters {
    std::uint64_t cpu_ns = 0;
    std::uint64_t wait_ns = 0;  // ready to run, while others had the processors
    std::uint64_t slices = 0;   // how often it was put on a processor

    void add(const ThreadCounters& one) {
        cpu_ns += one.cpu_ns;
        wait_ns += one.wait_ns;
        slices += one.slices;
    }
};

// Looks at everything below the supervisor. Files of /proc are kept open, since opening them is what costs;
// who is there is looked up anew every few looks, and at once where a process has more or fewer threads. A
// look takes about 15 us a process and 1 us a thread. Nothing of the contender is stopped or locked for it:
// so memory is by counters, and of shared pages of files and shared memory the process that has most counts.
class Sampler {
  public:
    // The folder gets samples.tsv and thread_samples.tsv. std::system_error: it cannot be written.
    Sampler(pid_t reaper, const std::string& folder);
    Sampler(const Sampler&) = delete;
    Sampler& operator=(const Sampler&) = delete;
    ~Sampler();

    // One line, and one for each thread that has run or waited since its last. False: they can no longer be
    // written. No line where there is nothing to be seen.
    bool take();

  private:
    struct Thread {
        int schedstat = -1;
        ThreadCounters seen;
        bool is_new = true;
    };
    struct Process {
        int status = -1;
        int stat = -1;
        int io = -1;
        std::uint64_t thread_count = 0;
        std::map<pid_t, Thread> threads;
        // What of it stays when it has ended.
        std::uint64_t minor_faults = 0;
        std::uint64_t major_faults = 0;
        std::uint64_t read_bytes = 0;
        std::uint64_t written_bytes = 0;
    };
    struct Line;

    void find_processes();
    void find_threads(pid_t pid, Process& process);
    static void close_all(Process& process);
    void forget(Process& process);
    bool look_at(pid_t pid, Process& process, Line& line, std::string& threads);
    void look_at_threads(pid_t pid, Process& process, Line& line, std::string& threads);

    pid_t reaper_;
    int samples_ = -1;
    int thread_samples_ = -1;
    std::uint64_t looks_ = 0;
    std::uint64_t peak_bytes_ = 0;
    std::uint64_t cpu_ns_ = 0;
    std::uint64_t ended_before_ns_;  // CPU time of children that were waited for before the first look
    std::map<pid_t, Process> processes_;
    // Of threads and processes that have ended.
    ThreadCounters ended_;
    std::uint64_t ended_minor_faults_ = 0;
    std::uint64_t ended_major_faults_ = 0;
    std::uint64_t ended_read_bytes_ = 0;
    std::uint64_t ended_written_bytes_ = 0;
};

}  // namespace timetrial
