#include "process/supervisor.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "clock/clock.h"
#include "process/descendants.h"
#include "process/held_memory.h"

namespace timetrial {
namespace {

constexpr std::size_t longest_control_line = 4096;

sigset_t handled_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&set, number);
    return set;
}

void write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = write(fd, text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return;  // nobody reads: the control pipe tells us what that means
        text.remove_prefix(static_cast<std::size_t>(written));
    }
}

/// Appends what is there. False at end of file.
bool read_some(int fd, std::string& text) {
    std::array<char, 1024> buffer;
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
    return got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN));
}

// Rings at once, and then so often a second. std::system_error: there is none.
int repeating_timer(int hz) {
    const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (timer < 0) throw std::system_error(errno, std::generic_category(), "timerfd");
    const long every_ns = 1'000'000'000 / hz;
    const timespec every{every_ns / 1'000'000'000, every_ns % 1'000'000'000};
    const itimerspec times{every, {0, 1}};
    timerfd_settime(timer, 0, &times, nullptr);
    return timer;
}

bool has_rung(int timer) {
    std::uint64_t due = 0;
    return read(timer, &due, sizeof due) == static_cast<ssize_t>(sizeof due);
}

std::string why_not_started(const std::string& program, int error) {
    std::string words = "cannot start '" + program + "': " + std::strerror(error);
    if (error == ENOENT && access(program.c_str(), F_OK) == 0) {
        words += " (the file is there; the interpreter or loader it names is not)";
    }
    return words;
}

/// In the forked process: from here to the contender. Says "started NS", with its limits behind it, or
/// "error WORDS" on `words_fd`.
[[noreturn]] void become_contender(const SupervisorPlan& plan, pid_t supervisor, int words_fd) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != supervisor) _exit(127);  // it died before the signal was set
    std::signal(SIGPIPE, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    // Everything that allocates comes before the limits: they may leave us no memory.
    std::vector<char*> argv;
    for (const std::string& word : plan.argv) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    try {
        plan.limits.apply();
    } catch (const std::exception& error) {
        write_all(words_fd, std::string("error ") + error.what() + "\n");
        _exit(127);
    }
    std::array<char, 224> started;
    const auto limits = limits_in_force();
    std::snprintf(started.data(), started.size(), "started %llu\nlimits %s\n",
                  static_cast<unsigned long long>(now_ns()), limits.data());
    write_all(words_fd, started.data());
    execvp(argv[0], argv.data());
    write_all(words_fd, "error " + why_not_started(plan.argv[0], errno) + "\n");
    _exit(127);
}

}  // namespace

Supervisor::Supervisor(SupervisorPlan plan) : plan_(std::move(plan)) {
    setsid();  // fails where we lead a session already, which is as good
    for (const int fd : {plan_.control_fd, plan_.status_fd}) {
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
            throw std::system_error(errno, std::generic_category(), "descriptor " + std::to_string(fd));
        }
    }
    fcntl(plan_.control_fd, F_SETFL, fcntl(plan_.control_fd, F_GETFL) | O_NONBLOCK);
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGCHLD, SIG_DFL);  // an inherited "ignore" would lose how the contender ended
    const sigset_t signals = handled_signals();
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    signal_fd_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signal_fd_ < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        throw std::system_error(errno, std::generic_category(), "cannot supervise");
    }
}

Supervisor::~Supervisor() {
    for (const int fd : {signal_fd_, exec_pipe_, sample_timer_, watch_timer_}) {
        if (fd >= 0) close(fd);
    }
}

void Supervisor::start() {
    std::array<int, 2> words{};
    if (pipe2(words.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    const pid_t supervisor = getpid();
    contender_ = fork();
    if (contender_ == 0) become_contender(plan_, supervisor, words[1]);
    const int error = errno;
    close(words[1]);
    exec_pipe_ = words[0];
    if (contender_ < 0) {
        contender_ = 0;
        throw std::system_error(error, std::generic_category(), "cannot fork");
    }
    setpgid(contender_, contender_);  // both sides do it: whoever comes first
    close_inherited();
}

/// The contender's pipes must end with the contender, so we may not hold them open.
void Supervisor::close_inherited() const {
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), closedir);
    if (!folder) throw std::system_error(errno, std::generic_category(), "/proc/self/fd (is /proc mounted?)");
    const std::array keep = {STDERR_FILENO, plan_.control_fd, plan_.status_fd,
                             signal_fd_,    exec_pipe_,       dirfd(folder.get())};
    while (const dirent* entry = readdir(folder.get())) {
        if (entry->d_name[0] == '.') continue;
        const int fd = std::atoi(entry->d_name);
        if (std::find(keep.begin(), keep.end(), fd) == keep.end()) close(fd);
    }
}

int Supervisor::run() {
    start();
    while (!ending_) {
        std::array<pollfd, 5> waits = {pollfd{plan_.control_fd, POLLIN, 0}, pollfd{signal_fd_, POLLIN, 0},
                                       pollfd{exec_pipe_, POLLIN, 0},  // -1 is skipped
                                       pollfd{sample_timer_, POLLIN, 0}, pollfd{watch_timer_, POLLIN, 0}};
        if (poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) break;
        if (waits[2].revents != 0) read_exec_pipe();
        if (waits[1].revents != 0) {
            signalfd_siginfo signal{};
            while (read(signal_fd_, &signal, sizeof signal) == static_cast<ssize_t>(sizeof signal)) {
                if (signal.ssi_signo != SIGCHLD) ending_ = true;
            }
            reap();
        }
        if (waits[0].revents != 0) read_control();
        if (waits[4].revents != 0) watch_memory();
        if (waits[3].revents != 0) take_sample();
    }
    end_everything();
    if (plan_.watch_bytes > 0) {
        report("watched " + std::to_string(watch_looks_) + " " + std::to_string(most_seen_));
    }
    if (is_left_) {
        for (const std::string& group : plan_.limits.groups) rmdir(group.c_str());
    }
    report("gone");
    return started_ ? 0 : 1;
}

void Supervisor::read_exec_pipe() {
    if (exec_pipe_ < 0 || read_some(exec_pipe_, exec_words_)) return;
    close(exec_pipe_);
    exec_pipe_ = -1;
    const std::size_t error = exec_words_.find("error ");
    const std::size_t time = exec_words_.find("started ");
    if (error != std::string::npos) {
        report(exec_words_.substr(error, exec_words_.find('\n', error) - error));
        refused_ = true;
        ending_ = true;
    } else if (time != std::string::npos) {
        started_ = true;
        report("started " + std::to_string(contender_) + " " +
               exec_words_.substr(time + 8, exec_words_.find('\n', time) - time - 8));
        const std::size_t limits = exec_words_.find("limits ");
        if (plan_.limits.has_cap() || plan_.watch_bytes > 0) {
            report(exec_words_.substr(limits, exec_words_.find('\n', limits) - limits));
        }
        begin_watch();
        begin_samples();
    }
}

void Supervisor::begin_samples() {
    if (plan_.sample_hz <= 0) return;
    try {
        sampler_ = std::make_unique<Sampler>(getpid(), plan_.samples_folder);
        sample_timer_ = repeating_timer(plan_.sample_hz);
    } catch (const std::exception& error) {
        end_samples(error.what());
    }
}

void Supervisor::take_sample() {
    if (!has_rung(sample_timer_)) return;
    errno = 0;
    if (!sampler_->take()) end_samples(std::strerror(errno));
}

/// The contender goes on without.
void Supervisor::end_samples(const std::string& why) {
    report("unsampled " + why);
    sampler_.reset();
    if (sample_timer_ >= 0) close(sample_timer_);
    sample_timer_ = -1;
}

void Supervisor::begin_watch() {
    if (plan_.watch_bytes > 0) watch_timer_ = repeating_timer(plan_.watch_hz);
}

/// What it holds between two looks nobody sees: the watch is the last resort, where the kernel keeps no
/// limit.
void Supervisor::watch_memory() {
    if (!has_rung(watch_timer_)) return;
    const std::optional<std::uint64_t> held = held_memory(getpid());
    if (!held) return;
    watch_looks_ += 1;
    most_seen_ = std::max(most_seen_, *held);
    if (*held <= plan_.watch_bytes || ending_) return;
    report("capped " + std::to_string(*held));
    ending_ = true;
}

void Supervisor::read_control() {
    if (!read_some(plan_.control_fd, control_words_)) ending_ = is_left_ = true;
    for (std::size_t end; (end = control_words_.find('\n')) != std::string::npos;) {
        obey(control_words_.substr(0, end));
        control_words_.erase(0, end + 1);
    }
    if (control_words_.size() > longest_control_line) control_words_.clear();
}

void Supervisor::obey(const std::string& line) {
    if (line == "kill") {
        ending_ = true;
    } else if (line == "stop" || line == "continue") {
        if (contender_ > 0) kill(-contender_, line == "stop" ? SIGSTOP : SIGCONT);
    } else {
        report("error unknown control line '" + line + "'. Known: stop, continue, kill");
    }
}

/// Collects what has ended. True while a child, own or adopted, is left.
bool Supervisor::reap() {
    for (;;) {
        int status = 0;
        const pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid <= 0) return pid == 0;
        if (pid != contender_) continue;
        while (exec_pipe_ >= 0)
            read_exec_pipe();  // it ended, so the pipe ends: "started" comes before "exited"
        contender_ = 0;
        ending_ = true;          // what it left behind goes with it
        if (refused_) continue;  // that was said in words
        if (WIFEXITED(status)) report("exited " + std::to_string(WEXITSTATUS(status)));
        if (WIFSIGNALED(status)) report("signaled " + std::to_string(WTERMSIG(status)));
    }
}

void Supervisor::kill_once() const {
    if (contender_ > 0) kill(-contender_, SIGKILL);  // the whole group at one moment: no member can fork away
    for (const pid_t pid : descendants(getpid())) kill(pid, SIGKILL);
}

void Supervisor::end_everything() {
    for (int wait_ms = 1;; wait_ms = std::min(2 * wait_ms, 1000)) {
        kill_once();
        if (!reap()) return;
        pollfd wait{signal_fd_, POLLIN, 0};
        poll(&wait, 1, wait_ms);
        signalfd_siginfo signal{};
        while (read(signal_fd_, &signal, sizeof signal) > 0) {
        }
    }
}

void Supervisor::report(const std::string& line) const { write_all(plan_.status_fd, line + "\n"); }

}  // namespace timetrial
