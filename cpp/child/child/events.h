// What the contender tells its parent: one JSON object per line.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace timetrial {

class Events {
  public:
    explicit Events(int fd) : fd_(fd) {}
    // Invalid UTF-8 (words of a plug-in) is replaced. If nobody reads any more, exits with 1.
    void send(const nlohmann::ordered_json& event) const;

  private:
    int fd_;
};

// Resident memory of this process, from the kernel.
std::uint64_t resident_bytes();
/// Of these, pages of mapped files and shared memory.
std::uint64_t mapped_bytes();

}  // namespace timetrial
