// The numerical libraries that this process has loaded, whoever loaded them.
#pragma once

#include <vector>

#include "controllers/library.h"

namespace timetrial {

// A controller for every file that is mapped and defines the functions of a library that is known
// (catalog.h), in the order in which they are to be told a number of threads. Loads nothing. Some getters
// make a library that nobody used yet initialize itself; what could end the process is not asked.
std::vector<LibraryPtr> loaded_libraries();

// The same, kept: looked for again when a file was loaded or unloaded since, which costs a microsecond to
// know. Not for several threads at once.
class Libraries {
  public:
    const std::vector<LibraryPtr>& loaded();
    // Another number after every search: what was made of loaded() before is stale.
    int searches() const { return searches_; }

  private:
    unsigned long long changes_ = 0;
    int searches_ = 0;
    std::vector<LibraryPtr> found_;
};

}  // namespace timetrial
