// The process that stays beside a contender and makes sure that nothing of it is left.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "metrics/sampler.h"
#include "process/limits.h"

namespace timetrial {

struct SupervisorPlan {
    Limits limits;
    int control_fd = -1;            // control lines from the parent; its end means that the parent is gone
    int status_fd = -1;             // our reports
    std::string samples_folder;     // that gets what it uses as it goes on; "": nobody looks
    int sample_hz = 0;              // how often
    std::uint64_t watch_bytes = 0;  // of private memory, beyond which all of it is ended; 0: nobody watches
    int watch_hz = 100;             // how often
    std::vector<std::string> argv;  // of the contender; argv[0] is the program
};

/// One contender from start to end; the protocol is on processes/PROTOCOL.md. Single-threaded, asleep in
/// poll() except when something happens, or a sample is due. Being a child subreaper, it inherits whatever a
/// contender leaves behind, also after setsid() and a double fork, and ends it. If the supervisor itself is
/// killed with SIGKILL, the contender dies too (parent-death signal); only processes that the contender had
/// started would be left then.
class Supervisor {
  public:
    explicit Supervisor(SupervisorPlan plan);
    Supervisor(const Supervisor&) = delete;
    Supervisor& operator=(const Supervisor&) = delete;
    ~Supervisor();

    /// Returns when no descendant is left. 0: a contender was started; 1: it could not be.
    int run();

  private:
    void start();
    void close_inherited() const;
    void read_exec_pipe();
    void read_control();
    void obey(const std::string& line);
    void begin_samples();
    void take_sample();
    void end_samples(const std::string& why);
    void begin_watch();
    void watch_memory();
    bool reap();
    void kill_once() const;
    void end_everything();
    void report(const std::string& line) const;

    SupervisorPlan plan_;
    int signal_fd_ = -1;
    int exec_pipe_ = -1;      // what the contender says before exec; its end is the exec
    std::string exec_words_;  // read from it so far
    std::string control_words_;
    std::unique_ptr<Sampler> sampler_;
    int sample_timer_ = -1;
    int watch_timer_ = -1;
    std::uint64_t watch_looks_ = 0;
    std::uint64_t most_seen_ = 0;  // by the watch, in bytes
    pid_t contender_ = 0;          // 0 when reaped. Also its process group: the number is ours until then
    bool started_ = false;
    bool refused_ = false;  // a limit or the program: reported as error
    bool ending_ = false;
    bool is_left_ = false;  // the parent is gone, and takes away no control group any more
};

}  // namespace timetrial
