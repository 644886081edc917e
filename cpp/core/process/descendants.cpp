#include "process/descendants.h"

#include <dirent.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "process/small_file.h"

namespace timetrial {
namespace {

// /proc/PID/stat: "PID (name) state ppid ...". The name may hold anything, ')' too: the last one counts.
pid_t parent_of(pid_t pid) {
    const std::string text = read_small_file("/proc/" + std::to_string(pid) + "/stat");
    const std::size_t name_end = text.rfind(')');
    if (name_end == std::string::npos || name_end + 4 >= text.size()) return -1;
    return static_cast<pid_t>(std::strtol(text.c_str() + name_end + 4, nullptr, 10));
}

// The children of a process as the kernel lists them, thread by thread: a few microseconds, however many
// processes the machine has.
void add_listed_children(pid_t pid, std::vector<pid_t>& found) {
    const std::string task = "/proc/" + std::to_string(pid) + "/task";
    const std::unique_ptr<DIR, int (*)(DIR*)> threads(opendir(task.c_str()), closedir);
    if (!threads) return;  // gone meanwhile
    while (const dirent* entry = readdir(threads.get())) {
        if (entry->d_name[0] == '.') continue;
        const std::string children = read_small_file(task + "/" + entry->d_name + "/children");
        const char* next = children.c_str();
        for (char* end = nullptr;; next = end) {
            const long child = std::strtol(next, &end, 10);
            if (end == next) break;
            found.push_back(static_cast<pid_t>(child));
        }
    }
}

// One pass over all of /proc.
std::vector<pid_t> scan_for_descendants(pid_t root) {
    std::multimap<pid_t, pid_t> children;
    const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), closedir);
    if (!proc) return {};
    while (const dirent* entry = readdir(proc.get())) {
        const auto pid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
        if (pid > 0) children.emplace(parent_of(pid), pid);
    }
    std::vector<pid_t> found;
    const auto add_children = [&](pid_t parent) {
        const auto [first, last] = children.equal_range(parent);
        for (auto child = first; child != last; ++child) found.push_back(child->second);
    };
    add_children(root);
    for (std::size_t i = 0; i < found.size(); ++i) add_children(found[i]);
    return found;
}

}  // namespace

std::vector<pid_t> descendants(pid_t root) {
    std::vector<pid_t> found;
    // The lists need CONFIG_PROC_CHILDREN.
    const std::string own_list = "/proc/self/task/" + std::to_string(getpid()) + "/children";
    if (access(own_list.c_str(), F_OK) != 0) return scan_for_descendants(root);
    add_listed_children(root, found);
    for (std::size_t i = 0; i < found.size(); ++i) add_listed_children(found[i], found);
    return found;
}

}  // namespace timetrial
