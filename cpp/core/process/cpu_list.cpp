#include "process/cpu_list.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <stdexcept>
#include <system_error>

namespace timetrial {
namespace {

constexpr int max_cpus = 8192;  // the largest NR_CPUS a distribution builds its kernel with
using CpuMask = std::array<cpu_set_t, max_cpus / CPU_SETSIZE>;

[[noreturn]] void reject(std::string_view text, const std::string& why) {
    throw std::invalid_argument("'" + std::string(text) + "' is not a set of CPUs: " + why +
                                ". Write CPU numbers and ranges, for example 0-1 or 0+2.");
}

int parse_cpu(std::string_view whole, std::string_view word) {
    int cpu = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), cpu);
    if (error != std::errc() || end != word.data() + word.size() || cpu < 0) {
        reject(whole, "'" + std::string(word) + "' is not a CPU number");
    }
    if (cpu >= max_cpus) reject(whole, "CPU numbers end at " + std::to_string(max_cpus - 1));
    return cpu;
}

}  // namespace

std::vector<int> parse_cpu_list(std::string_view text) {
    std::vector<int> cpus;
    for (std::size_t from = 0; from <= text.size();) {
        const std::size_t to = std::min(text.find_first_of("+,", from), text.size());
        const std::string_view range = text.substr(from, to - from);
        const std::size_t dash = range.find('-');
        const int first = parse_cpu(text, range.substr(0, dash));
        const int last = dash == std::string_view::npos ? first : parse_cpu(text, range.substr(dash + 1));
        if (last < first) reject(text, "the range '" + std::string(range) + "' runs backwards");
        for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
        from = to + 1;
    }
    std::sort(cpus.begin(), cpus.end());
    cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
    return cpus;
}

std::string format_cpu_list(const std::vector<int>& cpus) {
    std::string text;
    for (std::size_t i = 0; i < cpus.size();) {
        std::size_t end = i + 1;
        while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
        if (!text.empty()) text += '+';
        text += std::to_string(cpus[i]);
        if (end - i > 1) text += '-' + std::to_string(cpus[end - 1]);
        i = end;
    }
    return text;
}

std::vector<int> allowed_cpus(pid_t thread) {
    CpuMask mask{};
    if (sched_getaffinity(thread, sizeof mask, mask.data()) != 0) {
        throw std::system_error(errno, std::generic_category(), "cannot read the CPUs a thread may use");
    }
    std::vector<int> cpus;
    for (int cpu = 0; cpu < max_cpus; ++cpu) {
        if (CPU_ISSET_S(static_cast<std::size_t>(cpu), sizeof mask, mask.data())) cpus.push_back(cpu);
    }
    return cpus;
}

void set_affinity(const std::vector<int>& cpus) {
    const std::vector<int> allowed = allowed_cpus();
    CpuMask mask{};
    for (const int cpu : cpus) {
        if (!std::binary_search(allowed.begin(), allowed.end(), cpu)) {
            throw std::invalid_argument("affinity " + format_cpu_list(cpus) + ": CPU " + std::to_string(cpu) +
                                        " is not among the CPUs allowed here (" + format_cpu_list(allowed) +
                                        "). Ask for a subset of them.");
        }
        CPU_SET_S(static_cast<std::size_t>(cpu), sizeof mask, mask.data());
    }
    if (sched_setaffinity(0, sizeof mask, mask.data()) != 0) {
        throw std::system_error(errno, std::generic_category(),
                                "cannot set affinity " + format_cpu_list(cpus));
    }
}

}  // namespace timetrial
