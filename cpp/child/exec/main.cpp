// timetrial-exec: the supervisor beside a contender. python/timetrial/processes/PROTOCOL.md has the protocol.
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

#include "process/cpu_list.h"
#include "process/supervisor.h"

namespace {

constexpr const char* usage =
    "usage: timetrial-exec [--affinity 0-1] [--nice N] [--huge-pages never] [--group FOLDER] [--memory "
    "BYTES] "
    "[--address-space BYTES] [--watch-memory BYTES [--watch-hz N]] [--processes N] [--open-files N] "
    "[--samples FOLDER --sample-hz N] "
    "--control FD --status FD -- program arguments...";

template <typename Number>
Number parse_number(const std::string& option, const std::string& text, Number low, Number high) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
        throw std::invalid_argument(option + " '" + text + "': expected a whole number from " +
                                    std::to_string(low) + " to " + std::to_string(high));
    }
    return value;
}

void parse_option(timetrial::SupervisorPlan& plan, const std::string& option, const std::string& value) {
    if (option == "--control") {
        plan.control_fd = parse_number(option, value, 0, 1 << 20);
    } else if (option == "--status") {
        plan.status_fd = parse_number(option, value, 0, 1 << 20);
    } else if (option == "--affinity") {
        plan.limits.cpus = timetrial::parse_cpu_list(value);
    } else if (option == "--nice") {
        plan.limits.nice = parse_number(option, value, -20, 19);
    } else if (option == "--huge-pages") {
        if (value != "never") throw std::invalid_argument(option + " '" + value + "': expected never");
        plan.limits.no_huge_pages = true;
    } else if (option == "--memory") {
        plan.limits.memory_bytes = parse_number<std::uint64_t>(option, value, 1, UINT64_MAX);
    } else if (option == "--processes") {
        plan.limits.processes = parse_number<std::uint64_t>(option, value, 1, UINT32_MAX);
    } else if (option == "--group") {
        plan.limits.groups.push_back(value);
    } else if (option == "--address-space") {
        plan.limits.address_bytes = parse_number<std::uint64_t>(option, value, 1, UINT64_MAX);
    } else if (option == "--watch-memory") {
        plan.watch_bytes = parse_number<std::uint64_t>(option, value, 1, UINT64_MAX);
    } else if (option == "--watch-hz") {
        plan.watch_hz = parse_number(option, value, 1, 1000);
    } else if (option == "--open-files") {
        plan.limits.open_files = parse_number<std::uint64_t>(option, value, 1, UINT32_MAX);
    } else if (option == "--samples") {
        plan.samples_folder = value;
    } else if (option == "--sample-hz") {
        plan.sample_hz = parse_number(option, value, 1, 1000);
    } else {
        throw std::invalid_argument("unknown option '" + option + "'. " + usage);
    }
}

void parse_command_line(timetrial::SupervisorPlan& plan, int argc, char** argv) {
    // First of all the place where to complain about the others.
    for (int i = 1; i + 1 < argc && std::strcmp(argv[i], "--") != 0; ++i) {
        if (std::strcmp(argv[i], "--status") == 0) parse_option(plan, argv[i], argv[i + 1]);
    }
    int i = 1;
    for (; i < argc && std::strcmp(argv[i], "--") != 0; i += 2) {
        if (i + 1 >= argc || std::strncmp(argv[i + 1], "--", 2) == 0) {
            throw std::invalid_argument(std::string(argv[i]) + " needs a value. " + usage);
        }
        parse_option(plan, argv[i], argv[i + 1]);
    }
    for (++i; i < argc; ++i) plan.argv.emplace_back(argv[i]);
    const bool is_half_sampled = plan.samples_folder.empty() != (plan.sample_hz == 0);
    if (plan.argv.empty() || plan.control_fd < 0 || plan.status_fd < 0 || is_half_sampled) {
        throw std::invalid_argument(usage);
    }
}

void write_line(int fd, const std::string& line) {
    if (write(fd, (line + "\n").c_str(), line.size() + 1) < 0) return;  // nobody reads: nobody to tell
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
        write_line(STDOUT_FILENO, TIMETRIAL_VERSION);
        return 0;
    }
    timetrial::SupervisorPlan plan;
    try {
        parse_command_line(plan, argc, argv);
        return timetrial::Supervisor(plan).run();
    } catch (const std::exception& error) {
        if (plan.status_fd >= 0) write_line(plan.status_fd, std::string("error ") + error.what());
        write_line(STDERR_FILENO, std::string("timetrial-exec: ") + error.what());
        return 2;
    }
}
