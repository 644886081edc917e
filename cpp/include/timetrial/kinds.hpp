// Tables of the kinds of layers that a backend has: a name, and what makes a layer of that kind. The list in
// the plug-in's description is made of the same tables, so that none can say more, or less, than it builds.
//
//   constexpr std::array functions = {Kind{"relu", make_relu}, ...};       // all makers of one type
//   constexpr auto kinds = kind_words(functions, losses);                  // description.layers =
//   kinds.data() auto layer = find_kind(functions, node).make(node.attributes);
#ifndef TIMETRIAL_KINDS_HPP
#define TIMETRIAL_KINDS_HPP

#include <array>
#include <cstddef>

#include "timetrial/backend.hpp"

namespace timetrial {

template <class Maker>
struct Kind {
    const char* name;
    Maker make;
};

// "input", the names of all tables, and the NULL that ends a list of words.
template <class... Tables>
constexpr auto kind_words(const Tables&... tables) {
    std::array<const char*, (1 + ... + std::tuple_size_v<Tables>)+1> words{"input"};
    std::size_t at = 1;
    const auto append = [&](const auto& table) {
        for (const auto& kind : table) words[at++] = kind.name;
    };
    (append(tables), ...);
    return words;
}

// Throws Unsupported for a kind that the table does not have.
template <class Table>
const auto& find_kind(const Table& table, const Layer& layer) {
    for (const auto& kind : table)
        if (layer.kind == kind.name) return kind;
    throw Unsupported("the backend has no layer '" + layer.kind + "' (layer '" + layer.name + "')");
}

}  // namespace timetrial

#endif  // TIMETRIAL_KINDS_HPP
