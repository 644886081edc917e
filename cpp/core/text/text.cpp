#include "text/text.h"

#include <algorithm>
#include <numeric>
#include <sstream>

namespace timetrial {
namespace {

// Levenshtein distance: insertions, deletions and exchanges of one character.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t exchange = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({exchange, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row[b.size()];
}

std::string sorted(std::string_view word) {
    std::string letters(word);
    std::sort(letters.begin(), letters.end());
    return letters;
}

}  // namespace

std::string join(std::span<const std::string> words, std::string_view separator) {
    std::string text;
    for (const std::string& word : words) {
        if (!text.empty()) text += separator;
        text += word;
    }
    return text;
}

std::string shape_text(std::span<const std::int64_t> shape) {
    std::vector<std::string> extents;
    for (const std::int64_t extent : shape) extents.push_back(std::to_string(extent));
    return "(" + join(extents) + (extents.size() == 1 ? ",)" : ")");
}

std::string number_text(double number) {
    std::ostringstream text;
    text << number;
    return text.str();
}

std::string nearest(std::string_view word, std::vector<std::string> known) {
    if (known.empty()) return "";
    std::sort(known.begin(), known.end());
    const auto closest = std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
        return edit_distance(word, a) < edit_distance(word, b);
    });
    // The same letters in another order; or few others: who mistypes hits the first letter nearly always
    // ("gelu" is no slip of "relu").
    for (const std::string& one : known)
        if (sorted(one) == sorted(word)) return " Did you mean '" + one + "'?";
    const bool same_start = !word.empty() && word.front() == closest->front();
    const std::size_t tolerated = std::max<std::size_t>(1, std::max(word.size(), closest->size()) / 4);
    if (same_start && edit_distance(word, *closest) <= tolerated) return " Did you mean '" + *closest + "'?";
    return " Known: " + join(known) + ".";
}

}  // namespace timetrial
