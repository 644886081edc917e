// Opens a backend plug-in (timetrial/backend.h), or says why it cannot be opened.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "timetrial/backend.h"

namespace timetrial {

// A plug-in that cannot be used: missing file, missing library (by name), no plug-in, another ABI version
// (both named), a table that is too small or has holes.
class PluginError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// A loaded plug-in; copies mean the same one. It is never unloaded: libraries with threads or thread-local
// storage of their own (OpenMP, torch) do not survive that.
class Plugin {
  public:
    explicit Plugin(const std::string& path);

    const std::string& path() const { return path_; }
    const tt_backend& table() const { return *table_; }
    const tt_description& description() const { return *table_->description; }

  private:
    std::string path_;
    const tt_backend* table_;
};

// Opens a library that a plug-in needs before the plug-in itself: the dynamic linker then takes this very
// file for every later request of its SONAME, wherever else another copy lies. Throws PluginError.
void preload_library(const std::string& path);

// A list of words that ends with NULL, as in tt_description. NULL itself is an empty list.
std::vector<std::string> word_list(const char* const* words);

}  // namespace timetrial
