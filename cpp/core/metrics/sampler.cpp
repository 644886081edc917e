#include "metrics/sampler.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <set>
#include <string_view>
#include <system_error>

#include "clock/clock.h"
#include "process/descendants.h"
#include "process/proc_text.h"
#include "process/small_file.h"

namespace timetrial {
namespace {

constexpr std::uint64_t looks_between_searches = 5;

constexpr std::string_view samples_header =
    "time_ns\tcpu_ns\twait_ns\tslices\tthreads\tprocesses\tanonymous_bytes\tshared_bytes\tfile_bytes\t"
    "peak_bytes\tminor_faults\tmajor_faults\tread_bytes\twritten_bytes\town_cpu_ns\n";
constexpr std::string_view thread_samples_header = "time_ns\tpid\ttid\tcpu_ns\twait_ns\tslices\tname\n";

int create(const std::string& path, std::string_view header) {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) throw std::system_error(errno, std::generic_category(), "cannot create '" + path + "'");
    if (write(fd, header.data(), header.size()) != static_cast<ssize_t>(header.size())) {
        const int error = errno;
        close(fd);
        throw std::system_error(error, std::generic_category(), "cannot write '" + path + "'");
    }
    return fd;
}

bool append(int fd, const std::string& lines) {
    return write(fd, lines.data(), lines.size()) == static_cast<ssize_t>(lines.size());
}

int open_file(const std::string& path) { return open(path.c_str(), O_RDONLY | O_CLOEXEC); }

// From its beginning; "" where the process is gone, or it was never open.
std::string read_again(int fd) {
    std::array<char, 4096> text;
    const ssize_t got = fd < 0 ? -1 : pread(fd, text.data(), text.size(), 0);
    return got <= 0 ? std::string() : std::string(text.data(), static_cast<std::size_t>(got));
}

void close_file(int& fd) {
    if (fd >= 0) close(fd);
    fd = -1;
}

std::string thread_name(pid_t pid, pid_t tid) {
    std::string name = read_small_file(proc_folder(pid) + "/task/" + std::to_string(tid) + "/comm");
    while (!name.empty() && name.back() == '\n') name.pop_back();
    for (char& letter : name) {  // a name may hold anything
        if (letter < ' ' || letter > '~') letter = '?';
    }
    return name;
}

std::uint64_t own_cpu_ns() {
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(used.tv_nsec);
}

}  // namespace

struct Sampler::Line {
    std::uint64_t time_ns = now_ns();
    std::uint64_t cpu_ns = 0;
    ThreadCounters threads;
    std::uint64_t thread_count = 0;
    std::uint64_t processes = 0;
    std::uint64_t anonymous_bytes = 0;
    std::uint64_t shared_bytes = 0;
    std::uint64_t file_bytes = 0;
    std::uint64_t peak_bytes = 0;
    std::uint64_t minor_faults = 0;
    std::uint64_t major_faults = 0;
    std::uint64_t read_bytes = 0;
    std::uint64_t written_bytes = 0;
};

Sampler::Sampler(pid_t reaper, const std::string& folder)
    : reaper_(reaper),
      samples_(create(folder + "/samples.tsv", samples_header)),
      ended_before_ns_(ended_children_ns(ProcStat::read(reaper))) {
    try {
        thread_samples_ = create(folder + "/thread_samples.tsv", thread_samples_header);
    } catch (...) {
        close_file(samples_);
        throw;
    }
}

Sampler::~Sampler() {
    for (auto& [pid, process] : processes_) close_all(process);
    close_file(samples_);
    close_file(thread_samples_);
}

void Sampler::close_all(Process& process) {
    for (int* fd : {&process.status, &process.stat, &process.io}) close_file(*fd);
    for (auto& [tid, thread] : process.threads) close_file(thread.schedstat);
}

// Its counters stay in the sums.
void Sampler::forget(Process& process) {
    close_all(process);
    for (const auto& [tid, thread] : process.threads) ended_.add(thread.seen);
    ended_minor_faults_ += process.minor_faults;
    ended_major_faults_ += process.major_faults;
    ended_read_bytes_ += process.read_bytes;
    ended_written_bytes_ += process.written_bytes;
}

void Sampler::find_processes() {
    const std::vector<pid_t> found = descendants(reaper_);
    const std::set<pid_t> alive(found.begin(), found.end());
    for (auto one = processes_.begin(); one != processes_.end();) {
        if (alive.count(one->first) == 0) {
            forget(one->second);
            one = processes_.erase(one);
        } else {
            ++one;
        }
    }
    for (const pid_t pid : found) {
        auto [place, is_new] = processes_.try_emplace(pid);
        Process& process = place->second;
        if (is_new) {
            const std::string folder = proc_folder(pid);
            process.status = open_file(folder + "/status");
            process.stat = open_file(folder + "/stat");
            process.io = open_file(folder + "/io");
        }
        find_threads(pid, process);
    }
}

void Sampler::find_threads(pid_t pid, Process& process) {
    const std::string folder = proc_folder(pid) + "/task";
    const std::unique_ptr<DIR, int (*)(DIR*)> tasks(opendir(folder.c_str()), closedir);
    if (!tasks) return;
    std::set<pid_t> alive;
    while (const dirent* entry = readdir(tasks.get())) {
        const auto tid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
        if (tid <= 0) continue;
        alive.insert(tid);
        auto [place, is_new] = process.threads.try_emplace(tid);
        if (is_new) place->second.schedstat = open_file(folder + "/" + entry->d_name + "/schedstat");
    }
    for (auto one = process.threads.begin(); one != process.threads.end();) {
        if (alive.count(one->first) == 0) {
            ended_.add(one->second.seen);
            close_file(one->second.schedstat);
            one = process.threads.erase(one);
        } else {
            ++one;
        }
    }
}

// False: it has ended, or nothing can be seen of it.
bool Sampler::look_at(pid_t pid, Process& process, Line& line, std::string& threads) {
    const ProcStat stat = ProcStat::parse(read_again(process.stat));
    line.cpu_ns += used_cpu_ns(pid, stat);
    if (stat.has_ended()) return false;
    const std::string status = read_again(process.status);
    const std::uint64_t count = proc_number(status, "Threads:");
    if (count == 0) return false;
    if (count != process.thread_count) find_threads(pid, process);
    process.thread_count = count;
    process.minor_faults = stat.minor_faults;
    process.major_faults = stat.major_faults;
    const std::string io = read_again(process.io);
    process.read_bytes = std::max(process.read_bytes, proc_number(io, "rchar:"));
    process.written_bytes = std::max(process.written_bytes, proc_number(io, "wchar:"));
    line.processes += 1;
    line.thread_count += count;
    line.anonymous_bytes += proc_bytes(status, "RssAnon:") + proc_bytes(status, "VmSwap:");
    line.shared_bytes = std::max(line.shared_bytes, proc_bytes(status, "RssShmem:"));
    line.file_bytes = std::max(line.file_bytes, proc_bytes(status, "RssFile:"));
    line.peak_bytes += proc_bytes(status, "VmHWM:");
    look_at_threads(pid, process, line, threads);
    return true;
}

void Sampler::look_at_threads(pid_t pid, Process& process, Line& line, std::string& threads) {
    for (auto& [tid, thread] : process.threads) {
        const std::string text = read_again(thread.schedstat);
        if (!text.empty()) {
            char* next = nullptr;
            ThreadCounters now;
            now.cpu_ns = std::strtoull(text.c_str(), &next, 10);
            now.wait_ns = std::strtoull(next, &next, 10);
            now.slices = std::strtoull(next, &next, 10);
            const bool has_changed = now.cpu_ns != thread.seen.cpu_ns || now.wait_ns != thread.seen.wait_ns;
            if (thread.is_new || has_changed) {
                for (const std::uint64_t number :
                     {line.time_ns, static_cast<std::uint64_t>(pid), static_cast<std::uint64_t>(tid),
                      now.cpu_ns, now.wait_ns, now.slices}) {
                    threads += std::to_string(number) + '\t';
                }
                threads += (thread.is_new ? thread_name(pid, tid) : std::string()) + '\n';
                thread.is_new = false;
            }
            thread.seen = now;
        }
        line.threads.add(thread.seen);
    }
}

bool Sampler::take() {
    if (looks_++ % looks_between_searches == 0) find_processes();
    Line line;
    std::string threads;
    line.threads.add(ended_);
    for (auto& [pid, process] : processes_) {
        if (!look_at(pid, process, line, threads)) looks_ = 0;  // who else is there now?
        line.minor_faults += process.minor_faults;
        line.major_faults += process.major_faults;
        line.read_bytes += process.read_bytes;
        line.written_bytes += process.written_bytes;
    }
    if (line.processes == 0) return true;
    // Who has ended and was waited for here is one of our own children; what the kernel tells of them is to
    // the tick, so that the sum could go back.
    line.cpu_ns += ended_children_ns(ProcStat::read(reaper_)) - ended_before_ns_;
    cpu_ns_ = std::max(cpu_ns_, line.cpu_ns);
    peak_bytes_ = std::max(peak_bytes_, line.peak_bytes);
    std::string text;
    for (const std::uint64_t number :
         {line.time_ns, cpu_ns_, line.threads.wait_ns, line.threads.slices, line.thread_count, line.processes,
          line.anonymous_bytes, line.shared_bytes, line.file_bytes, peak_bytes_,
          ended_minor_faults_ + line.minor_faults, ended_major_faults_ + line.major_faults,
          ended_read_bytes_ + line.read_bytes, ended_written_bytes_ + line.written_bytes, own_cpu_ns()}) {
        text += std::to_string(number) + '\t';
    }
    text.back() = '\n';
    return append(samples_, text) && (threads.empty() || append(thread_samples_, threads));
}

}  // namespace timetrial
