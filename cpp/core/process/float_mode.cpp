#include "process/float_mode.h"

#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <xmmintrin.h>

#include <cerrno>
#include <csignal>
#include <system_error>

#include "timetrial/float_mode.h"

namespace timetrial {
namespace {

constexpr unsigned flush_to_zero = 1u << 15;      // of MXCSR
constexpr unsigned denormals_are_zero = 1u << 6;  // of MXCSR

std::uint32_t mode_of(unsigned mxcsr) noexcept {
    std::uint32_t mode = 0;
    if ((mxcsr & flush_to_zero) != 0) mode |= TT_FLUSH_TO_ZERO;
    if ((mxcsr & denormals_are_zero) != 0) mode |= TT_DENORMALS_ARE_ZERO;
    return mode;
}

[[noreturn]] void fail(int error, const char* what) {
    throw std::system_error(error, std::generic_category(), what);
}

// Attached as a tracer from construction to destruction. The thread is stopped after stop().
class Traced {
  public:
    explicit Traced(pid_t tid) : tid_(tid) {
        if (ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) != 0) fail(errno, "ptrace");
    }
    Traced(const Traced&) = delete;
    Traced& operator=(const Traced&) = delete;
    ~Traced() {
        if (!gone_) ptrace(PTRACE_DETACH, tid_, nullptr, signal_);
    }

    void stop() {
        if (ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr) != 0) fail(errno, "ptrace");
        int status = 0;
        pid_t waited = -1;
        while ((waited = waitpid(tid_, &status, __WALL)) < 0 && errno == EINTR) continue;
        gone_ = waited != tid_ || !WIFSTOPPED(status);
        if (gone_) fail(ESRCH, "the thread has ended");
        // A signal that arrived just now goes on to the thread.
        if (status >> 16 == 0) signal_ = WSTOPSIG(status);
    }

    unsigned mxcsr() const {
        user_fpregs_struct registers{};
        if (ptrace(PTRACE_GETFPREGS, tid_, nullptr, &registers) != 0) fail(errno, "ptrace");
        return registers.mxcsr;
    }

  private:
    pid_t tid_;
    long signal_ = 0;
    bool gone_ = false;
};

}  // namespace

std::uint32_t float_mode() noexcept { return mode_of(_mm_getcsr()); }

void set_float_mode(std::uint32_t mode) noexcept {
    const unsigned others = _mm_getcsr() & ~(flush_to_zero | denormals_are_zero);
    _mm_setcsr(others | ((mode & TT_FLUSH_TO_ZERO) != 0 ? flush_to_zero : 0u) |
               ((mode & TT_DENORMALS_ARE_ZERO) != 0 ? denormals_are_zero : 0u));
}

std::string float_mode_word(std::uint32_t mode) {
    if (mode == (TT_FLUSH_TO_ZERO | TT_DENORMALS_ARE_ZERO)) return "on";
    if (mode == 0) return "off";
    return mode == TT_FLUSH_TO_ZERO ? "results" : "operands";
}

std::uint32_t float_mode_of(pid_t tid) {
    Traced thread(tid);
    thread.stop();
    return mode_of(thread.mxcsr());
}

}  // namespace timetrial
