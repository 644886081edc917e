// The numbers of backend.h as words of events.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "timetrial/backend.h"

namespace timetrial {

std::vector<std::string> task_words(std::uint32_t mask);
std::vector<std::string> part_words(std::uint32_t mask);
std::vector<std::string> flag_words(std::uint32_t mask);
// Throws std::invalid_argument with the known words.
tt_role parse_role(const std::string& word);

// `backend` of the event `ready`: name, version, library, isa, flags, parts.
nlohmann::ordered_json short_description(const tt_description& description);
// All of it: `timetrial-child --describe PLUGIN`.
nlohmann::ordered_json full_description(const tt_backend& table);

}  // namespace timetrial
