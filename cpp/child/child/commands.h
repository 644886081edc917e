// Reads commands and obeys them, one after the other.
#pragma once

#include <string>

#include "contender.h"
#include "events.h"

namespace timetrial {

// Lines from a pipe.
class Lines {
  public:
    explicit Lines(int fd) : fd_(fd) {}
    // Sleeps until a whole line is there. False at end of file.
    bool next(std::string& line);

  private:
    int fd_;
    std::string unread_;
};

// Until `finish` (true) or the end of the pipe (false). `where` is the command under way, for the report of a
// failure, which leaves as an exception.
bool obey_commands(Lines& lines, Contender& contender, const Events& events, std::string& where);

}  // namespace timetrial
