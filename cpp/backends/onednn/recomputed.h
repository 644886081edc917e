// Values that are not kept for the way back: a normalization's output costs one pass over its input, which
// its own way back needs anyhow. So where a convolution alone reads it, perhaps behind an activation in
// place, it is computed for that, and once more where that one's way back begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "layers/recompute.h"
#include "onednn/activation.h"
#include "onednn/batch_norm.h"
#include "onednn/weighted.h"

namespace timetrial::onednn {

// By default only where it saves as much as this: it costs a pass over each value, and of less hardly anybody
// would see the difference.
inline constexpr std::int64_t worth_recomputing = std::int64_t{128} << 20;

struct Chain {
    std::size_t first, last;  // nodes; who reads the last one is next
};

inline std::vector<Chain> find_chains(const std::vector<Node>& nodes) {
    const auto alone_reads = [&](std::size_t reader, std::size_t node) {
        return reader < nodes.size() && nodes[reader].inputs.size() == 1 && nodes[reader].inputs[0] == node &&
               nodes[node].readers == 1;
    };
    std::vector<Chain> chains;
    for (std::size_t first = 0; first < nodes.size(); ++first) {
        if (nodes[first].shape.size() != 4 || !dynamic_cast<const BatchNorm*>(nodes[first].layer.get()))
            continue;
        std::size_t last = first;
        if (alone_reads(first + 1, first) && dynamic_cast<const Activation*>(nodes[first + 1].layer.get()))
            ++last;
        if (alone_reads(last + 1, last) && nodes[last + 1].shape.size() == 4 &&
            dynamic_cast<const Weighted*>(nodes[last + 1].layer.get()))
            chains.push_back({first, last});
    }
    return chains;
}

inline layers::Recomputed mark_recomputed(std::vector<Node>& nodes, layers::Recompute asked) {
    const std::vector<Chain> chains = find_chains(nodes);
    layers::Recomputed all;
    for (const Chain& chain : chains) {
        const Shape& shape = nodes[chain.first].shape;
        ++all.values;
        all.bytes +=
            std::accumulate(shape.begin(), shape.end(), std::int64_t{sizeof(float)}, std::multiplies<>());
    }
    if (asked == layers::Recompute::kOff ||
        (asked == layers::Recompute::kByDefault && all.bytes < worth_recomputing))
        return {};
    for (const Chain& chain : chains) {
        for (std::size_t i = chain.first; i <= chain.last; ++i) {
            nodes[i].is_recomputed = true;
            nodes[chain.last + 1].recomputes.push_back(i);
        }
    }
    return all;
}

// Behind the last operation that reads them, in either direction: their memory is others'.
inline void forget(std::vector<Node>& nodes, const std::vector<std::size_t>& which) {
    for (const std::size_t i : which) {
        nodes[i].value = Value();
        nodes[i].is_overwritten = true;
    }
}

}  // namespace timetrial::onednn
