// What a contender may use: by limits of each of its processes, and by control groups that somebody has made.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace timetrial {

struct Limits {
    std::optional<std::vector<int>> cpus;

    std::optional<int> nice;  // added to nobody's: the value itself, -20 to 19

    /// PR_SET_THP_DISABLE: no transparent huge pages for it and its children, whatever the machine gives.
    bool no_huge_pages = false;

    /// RLIMIT_DATA of each process: brk and private writable mappings, so every heap, thread stack and
    /// copy-on-write page. RLIMIT_AS would also count the data set mapped read-only, library code and
    /// address space that is merely reserved (allocators and JIT compilers reserve gigabytes).
    /// Beyond it malloc fails: a contender can report `oom` itself.
    std::optional<std::uint64_t> memory_bytes;

    /// RLIMIT_AS: address space, whether it is used or not.
    std::optional<std::uint64_t> address_bytes;

    /// RLIMIT_NPROC. The kernel counts every thread of the *user*, on the whole machine, so this many
    /// are allowed beyond those that run when the contender starts. Root is exempt from it in the
    /// kernel: apply() refuses rather than pretend.
    std::optional<std::uint64_t> processes;

    /// RLIMIT_NOFILE: descriptors of each process.
    std::optional<std::uint64_t> open_files;

    /// Folders of control groups that it enters before anything else, so that they hold for all of it.
    std::vector<std::string> groups;

    /// Whether anything shall be refused to it.
    bool has_cap() const {
        return memory_bytes || address_bytes || processes || open_files || !groups.empty();
    }

    /// To the calling process. Throws std::invalid_argument or std::system_error with the words a user needs.
    void apply() const;
};

/// What the kernel holds the calling process to, whoever asked for it, as text:
/// "data N address_space N processes N open_files N", - where there is no limit. Allocates nothing.
std::array<char, 160> limits_in_force();

}  // namespace timetrial
