// Words for messages.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace timetrial {

std::string join(std::span<const std::string> words, std::string_view separator = ", ");

// "(64, 1, 28, 28)"; one extent as "(64,)".
std::string shape_text(std::span<const std::int64_t> shape);

// "5", "0.5": a number without needless digits.
std::string number_text(double number);

// " Did you mean 'x'?" for a near miss, otherwise " Known: a, b." (empty if nothing is known).
std::string nearest(std::string_view word, std::vector<std::string> known);

}  // namespace timetrial
