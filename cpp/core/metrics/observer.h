// What the kernel says about a process and everything below it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace timetrial {

struct ThreadObservation {
    pid_t pid = 0;
    pid_t tid = 0;
    std::string name;
    std::uint64_t cpu_ns = 0;   // on a CPU
    std::uint64_t wait_ns = 0;  // ready to run, while others had the CPUs
    std::string allowed_cpus;   // "0-1+4", as format_cpu_list() writes it
    int nice = 0;
    int policy = 0;  // SCHED_OTHER, SCHED_FIFO, ... of sched.h
    std::uint64_t voluntary_switches = 0;
    std::uint64_t involuntary_switches = 0;
};

// Sums over the tree. Memory that processes share is counted in each of them, unless kOnce was asked for.
struct Observation {
    std::uint64_t time_ns = 0;  // CLOCK_MONOTONIC, before the first reading
    // Threads and unreaped children that have ended included, to the nanosecond; reaped ones to the tick
    // (10 ms). Children of a process that ignores SIGCHLD leave no trace.
    std::uint64_t cpu_ns = 0;
    std::uint64_t rss_bytes = 0;         // VmRSS
    std::uint64_t peak_rss_bytes = 0;    // VmHWM: since the start or reset_peak()
    std::uint64_t anonymous_bytes = 0;   // RssAnon and VmSwap: private, backed by no file; swapped out or not
    std::uint64_t file_rss_bytes = 0;    // RssFile: pages of mapped files, data sets among them
    std::uint64_t shared_rss_bytes = 0;  // RssShmem: shared memory, the recorder's window among it
    std::uint64_t minor_faults = 0;
    std::uint64_t major_faults = 0;
    std::uint32_t processes = 0;
    bool stopped = false;  // the root: by SIGSTOP or a tracer
    std::vector<ThreadObservation> threads;
};

// What becomes of a page that several processes of the tree have: fork() leaves them all that a parent had
// written. kOnce walks the page tables of trees of several processes (13 ms a GiB), so it is for moments in
// which nothing is timed; each page then counts by the share of those who map it (Pss).
enum class Counting { kInEach, kOnce };

struct MappedLibrary {
    std::string path;
    std::string kind;  // see libraries/known.h
};

// Reads when asked and keeps nothing open, so that watching costs nothing in between. One read takes about
// 20 us a thread and 10 us for each process of the machine: it belongs to borders of segments.
// All functions throw std::system_error; ESRCH: the root has ended.
class Observer {
  public:
    // `reaper`: the supervisor that inherits what the root leaves behind (PR_SET_CHILD_SUBREAPER). Everything
    // below it belongs to the root's tree, also after a double fork; it does not itself. 0: none.
    explicit Observer(pid_t root, pid_t reaper = 0) : root_(root), reaper_(reaper) {}

    Observation read(Counting counting = Counting::kInEach) const;
    // How often its living threads have gone on on another processor; nothing where the kernel does not tell
    // (CONFIG_SCHED_DEBUG).
    std::optional<std::uint64_t> migrations() const;
    // The peak of each process becomes what it holds now (clear_refs; the `ru_maxrss` of getrusage would
    // still be the parent's at the time of the fork).
    void reset_peak() const;
    // The mapped libraries of interest, each path once.
    std::vector<MappedLibrary> libraries() const;

  private:
    std::vector<pid_t> tree() const;

    pid_t root_;
    pid_t reaper_;
};

// CPU time in nanoseconds of a process and all below it, what has ended included as in Observation::cpu_ns; 0
// if it is gone.
std::uint64_t tree_cpu_ns(pid_t root);

}  // namespace timetrial
