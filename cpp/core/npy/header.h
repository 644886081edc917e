// The text header of a .npy file: a Python dictionary of fixed form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace timetrial {

struct NpyHeader {
    std::string descr;  // "<f4"
    bool fortran_order = false;
    std::vector<std::int64_t> shape;
};

// Reads "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"; keys in any order. Nothing if it is
// not of that form (structured types among them).
std::optional<NpyHeader> parse_npy_header(std::string_view text);

// The same text, padded with spaces and a newline so that `prefix_bytes` before it and the text together are
// a multiple of 64.
std::string format_npy_header(const NpyHeader& header, std::size_t prefix_bytes);

}  // namespace timetrial
