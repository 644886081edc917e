// The table of layer kinds: those of the core (kinds/), and those that users register.
#include "network/layers.h"

#include <algorithm>
#include <cctype>
#include <deque>
#include <iterator>
#include <mutex>
#include <shared_mutex>

#include "network/kinds/kinds.h"

namespace timetrial {
namespace {

// A deque, so that what was found stays where it is; the last of a name counts.
struct Registered {
    std::shared_mutex guard;
    std::deque<LayerKind> kinds;
};

Registered& registered() {
    static Registered all;
    return all;
}

}  // namespace

std::vector<Parameter> no_parameters(const LayerView&) { return {}; }
std::int64_t no_products(const LayerView&) { return 0; }
Shape same_shape(const LayerView& layer) { return layer.input_shape(); }

const std::vector<LayerKind>& layer_kinds() {
    static const std::vector<LayerKind> known = [] {
        std::vector<LayerKind> all;
        for (const auto group : {kinds::dense, kinds::convolution, kinds::pooling, kinds::elementwise,
                                 kinds::normalization, kinds::sequences, kinds::shapes, kinds::losses}) {
            std::vector<LayerKind> some = group();
            std::move(some.begin(), some.end(), std::back_inserter(all));
        }
        return all;
    }();
    return known;
}

const LayerKind* find_layer_kind(std::string_view name) {
    const auto has_name = [&](const LayerKind& kind) { return kind.name == name; };
    const auto& kinds = layer_kinds();
    const auto found = std::find_if(kinds.begin(), kinds.end(), has_name);
    if (found != kinds.end()) return &*found;
    Registered& own = registered();
    const std::shared_lock lock(own.guard);
    const auto last = std::find_if(own.kinds.rbegin(), own.kinds.rend(), has_name);
    return last == own.kinds.rend() ? nullptr : &*last;
}

std::vector<std::string> layer_kind_names() {
    std::vector<std::string> names;
    for (const LayerKind& kind : layer_kinds()) names.push_back(kind.name);
    Registered& own = registered();
    const std::shared_lock lock(own.guard);
    for (const LayerKind& kind : own.kinds)
        if (std::find(names.begin(), names.end(), kind.name) == names.end()) names.push_back(kind.name);
    return names;
}

void register_layer_kind(LayerKind kind) {
    const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
    if (kind.name.empty() || kind.name.size() > 64 || kind.name == "input" ||
        !std::all_of(kind.name.begin(), kind.name.end(), is_word))
        throw NetworkError("a kind of layers cannot be called '" + kind.name +
                           "'; expected 1 to 64 letters, digits and '_'");
    for (const LayerKind& own : layer_kinds())
        if (own.name == kind.name)
            throw NetworkError("'" + kind.name + "' is a kind of layers already, and means the same to " +
                               "everybody: take another name");
    Registered& own = registered();
    const std::unique_lock lock(own.guard);
    own.kinds.push_back(std::move(kind));
}

void LayerView::refuse(const std::string& words) const {
    throw NetworkError("layer '" + node.name + "' (" + node.kind + ") " + words);
}

}  // namespace timetrial
