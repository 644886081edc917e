#include "npy/header.h"

#include <charconv>

#include "text/text.h"

namespace timetrial {
namespace {

class Scanner {
  public:
    explicit Scanner(std::string_view text) : text_(text) {}

    bool take(char wanted) {
        skip_spaces();
        if (text_.empty() || text_.front() != wanted) return false;
        text_.remove_prefix(1);
        return true;
    }
    bool take_word(std::string_view wanted) {
        skip_spaces();
        if (text_.substr(0, wanted.size()) != wanted) return false;
        text_.remove_prefix(wanted.size());
        return true;
    }
    std::optional<std::string> quoted() {
        skip_spaces();
        if (text_.empty() || (text_.front() != '\'' && text_.front() != '"')) return std::nullopt;
        const std::size_t end = text_.find(text_.front(), 1);
        if (end == std::string_view::npos) return std::nullopt;
        std::string word(text_.substr(1, end - 1));
        text_.remove_prefix(end + 1);
        return word;
    }
    std::optional<std::int64_t> whole() {
        skip_spaces();
        std::int64_t number = 0;
        const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), number);
        if (error != std::errc{} || number < 0) return std::nullopt;
        text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
        return number;
    }
    bool at_end() {
        skip_spaces();
        return text_.empty();
    }

  private:
    void skip_spaces() {
        while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n')) text_.remove_prefix(1);
    }
    std::string_view text_;
};

std::optional<std::vector<std::int64_t>> parse_tuple(Scanner& scan) {
    std::vector<std::int64_t> extents;
    if (!scan.take('(')) return std::nullopt;
    while (!scan.take(')')) {
        const auto extent = scan.whole();
        if (!extent) return std::nullopt;
        extents.push_back(*extent);
        if (!scan.take(',')) {
            if (!scan.take(')')) return std::nullopt;
            break;
        }
    }
    return extents;
}

}  // namespace

std::optional<NpyHeader> parse_npy_header(std::string_view text) {
    Scanner scan(text);
    NpyHeader header;
    int found = 0;
    if (!scan.take('{')) return std::nullopt;
    while (!scan.take('}')) {
        const auto key = scan.quoted();
        if (!key || !scan.take(':')) return std::nullopt;
        if (*key == "descr") {
            const auto descr = scan.quoted();
            if (!descr) return std::nullopt;
            header.descr = *descr;
        } else if (*key == "fortran_order") {
            header.fortran_order = scan.take_word("True");
            if (!header.fortran_order && !scan.take_word("False")) return std::nullopt;
        } else if (*key == "shape") {
            const auto shape = parse_tuple(scan);
            if (!shape) return std::nullopt;
            header.shape = *shape;
        } else {
            return std::nullopt;
        }
        ++found;
        if (!scan.take(',')) {
            if (!scan.take('}')) return std::nullopt;
            break;
        }
    }
    return found == 3 && scan.at_end() ? std::optional(header) : std::nullopt;
}

std::string format_npy_header(const NpyHeader& header, std::size_t prefix_bytes) {
    std::string text = "{'descr': '" + header.descr +
                       "', 'fortran_order': " + (header.fortran_order ? "True" : "False") +
                       ", 'shape': " + shape_text(header.shape) + ", }";
    const std::size_t unpadded = prefix_bytes + text.size() + 1;
    text.append((64 - unpadded % 64) % 64, ' ');
    text += '\n';
    return text;
}

}  // namespace timetrial
