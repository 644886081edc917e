#include "commands.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "text/text.h"

namespace timetrial {
namespace {

using Json = Contender::Json;

// Takes the first word off a line; what remains may be a path with spaces.
std::string take_word(std::string& line) {
    const std::size_t end = line.find(' ');
    const std::string word = line.substr(0, end);
    line.erase(0, end == std::string::npos ? end : end + 1);
    return word;
}

template <typename Number>
Number take_number(std::string& line, const char* what) {
    const std::string word = take_word(line);
    Number number{};
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size()) {
        throw std::invalid_argument(std::string(what) + " '" + word + "' is not a whole number");
    }
    return number;
}

Json run(Contender& contender, std::string line, bool in_parts) {
    const auto steps = take_number<std::uint32_t>(line, "STEPS");
    const auto max_ns = take_number<std::uint64_t>(line, "MAX_NS");
    const auto window = take_number<std::uint32_t>(line, "WINDOW");
    return contender.run(steps, max_ns, window, in_parts);
}

// "0,3,5", or "all".
std::optional<std::vector<std::size_t>> read_places(std::string words) {
    if (words == "all") return std::nullopt;
    std::replace(words.begin(), words.end(), ',', ' ');
    std::vector<std::size_t> places;
    while (!words.empty()) places.push_back(take_number<std::size_t>(words, "PLACE"));
    return places;
}

Json obey(Contender& contender, const std::string& command, std::string rest) {
    if (command == "run" || command == "parts") return run(contender, rest, command == "parts");
    if (command == "stream") return contender.use_stream(rest);
    if (command == "reset") return contender.reset();
    if (command == "passes") return contender.use_passes(take_number<std::uint32_t>(rest, "STEPS"));
    if (command == "gradient") return contender.gradient();
    if (command == "profile") return contender.profile(take_number<std::uint32_t>(rest, "STEPS"));
    if (command == "outputs") return contender.write_outputs(rest);
    if (command == "predicted") return contender.write_predicted(rest);
    if (command == "evaluate") return contender.evaluate(rest);
    if (command == "dump") {
        const std::string role = take_word(rest);
        return contender.dump(role, rest);
    }
    if (command == "show") {
        const auto places = read_places(take_word(rest));
        return contender.show(places, rest);
    }
    throw std::invalid_argument(
        "unknown command '" + command + "'." +
        nearest(command, {"run", "parts", "stream", "reset", "passes", "gradient", "profile", "outputs",
                          "predicted", "evaluate", "dump", "show", "finish"}));
}

}  // namespace

bool Lines::next(std::string& line) {
    for (;;) {
        if (const std::size_t end = unread_.find('\n'); end != std::string::npos) {
            line = unread_.substr(0, end);
            unread_.erase(0, end + 1);
            return true;
        }
        char buffer[512];
        const ssize_t got = read(fd_, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        unread_.append(buffer, static_cast<std::size_t>(got));
    }
}

bool obey_commands(Lines& lines, Contender& contender, const Events& events, std::string& where) {
    for (std::string line; lines.next(line);) {
        where = take_word(line);
        if (where == "finish") return true;
        Json done = {{"event", "done"}, {"command", where}};
        done.update(obey(contender, where, line));
        events.send(done);
    }
    return false;
}

}  // namespace timetrial
