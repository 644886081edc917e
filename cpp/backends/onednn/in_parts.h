// The gradient of a large dense weight in parts, each of which updates its part of the weight before the next
// is made: what trains has memory for one of them, and reads it from the caches.
#pragma once

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "onednn/builder.h"
#include "onednn/column_sums.h"
#include "onednn/update.h"

namespace timetrial::onednn {

// Ranges of a weight OC x F that lie in one piece.
struct Slices {
    dnnl::memory::dims extents;  // of the weight
    dnnl::memory::format_tag tag;
    bool by_inputs;      // ranges of F, where the weight lies transposed; else of OC
    std::int64_t block;  // of which so many are interleaved

    static std::optional<Slices> of(const Desc& weights) {
        const dnnl::memory::dims extents = dims_of(weights);
        const auto tag = extents.size() == 2 ? tag_of(weights) : std::nullopt;
        if (!tag) return std::nullopt;
        const std::string name = format_of(weights);
        if (name == "ab") return Slices{extents, *tag, false, 1};
        if (name == "ba") return Slices{extents, *tag, true, 1};
        std::int64_t block = 0;  // "AB8b16a": inside, 16 outputs by 8 inputs
        const bool is_blocked = std::sscanf(name.c_str(), "AB%*db%" SCNd64 "a", &block) == 1;
        if (!is_blocked || !name.ends_with('a')) return std::nullopt;
        const Slices slices{extents, *tag, false, block};
        const std::int64_t outputs =
            (extents[0] + block - 1) / block * block;  // the last block may be padded
        const bool pads_inputs =
            weights.get_size() != sizeof(float) * static_cast<std::size_t>(outputs * extents[1]);
        return pads_inputs ? std::nullopt : std::optional(slices);
    }

    std::int64_t all() const { return extents[by_inputs ? 1 : 0]; }
    std::int64_t across() const { return extents[by_inputs ? 0 : 1]; }
    std::int64_t at_once() const { return std::max(most / across() / block, std::int64_t{1}) * block; }
    // A small gradient is no trouble, and many small products are slower than one.
    bool is_worth_it() const { return all() * across() >= 4 * most; }

    Desc desc(std::int64_t count) const {
        dnnl::memory::dims part = extents;
        part[by_inputs ? 1 : 0] = count;
        return {part, f32, tag};
    }

  private:
    static constexpr std::int64_t most = std::int64_t{2} << 18;  // floats, 2 MB: what a near cache holds
};

// The product of a part, row-major: of the samples' values x[n][f] and gradients dy[n][oc] into
// part[count][across].
struct PartOfProduct {
    Tensor values, gradient;
    std::int64_t first, count;
    bool by_inputs;

    void into(float* part) const {
        const dnnl::memory::dim n = dims_of(values.desc)[0], f = dims_of(values.desc)[1];
        const dnnl::memory::dim oc = dims_of(gradient.desc)[1];
        const dnnl_status_t status = by_inputs ? dnnl_sgemm('T', 'N', count, oc, n, 1, values.data() + first,
                                                            f, gradient.data(), oc, 0, part, oc)
                                               : dnnl_sgemm('T', 'N', count, f, n, 1, gradient.data() + first,
                                                            oc, values.data(), f, 0, part, f);
        dnnl::error::wrap_c_api(status, "oneDNN could not multiply");
    }
};

struct DenseValues {
    Value *source, *gradient;  // N x F, N x OC
};

// Appends the parts of the weight's gradient with the updates, and the gradient of the bias, if there is one.
inline void append_in_parts(Builder& builder, const Purpose& purpose, const Slices& slices,
                            const DenseValues& of, Parameter& weight, const Tensor* bias) {
    const auto plainly = [&](Value& value, int argument) {
        const Desc flat = plain(dims_of(value.desc()));
        return builder.in(builder.backward, purpose, value, flat, argument_name(argument)).unleased();
    };
    const Tensor values = plainly(*of.source, DNNL_ARG_SRC);
    const Tensor gradient = plainly(*of.gradient, DNNL_ARG_DIFF_DST);
    const auto append = [&](tt_direction direction, std::function<void()> run) {
        builder.backward.push_back({purpose.node, direction, std::move(run), builder.runs});
    };
    const std::int64_t at_once = slices.at_once();
    Tensor row_major;  // on its way to blocks
    if (slices.block > 1) row_major = builder.lend(plain({std::min(at_once, slices.all()), slices.across()}));
    for (std::int64_t first = 0; first < slices.all(); first += at_once) {
        const std::int64_t count = std::min(at_once, slices.all() - first);
        const Desc desc = slices.desc(count);
        const Tensor part{desc, dnnl::memory(desc, builder.engine(), DNNL_MEMORY_NONE)};
        const PartOfProduct product{values, gradient, first, count, slices.by_inputs};
        if (slices.block == 1) {
            append(TT_DIRECTION_BACKWARD_WEIGHTS, [=] { product.into(part.data()); });
        } else {
            const Tensor made =
                alias(builder.engine(), row_major, plain({count, slices.across()})).unleased();
            append(TT_DIRECTION_BACKWARD_WEIGHTS, [=] { product.into(made.data()); });
            append(TT_DIRECTION_REORDER, reorder_call(builder.engine(), builder.stream(), made, part));
        }
        const std::int64_t begin = first * slices.across();
        Update update(builder.numbers);
        update.add(weight, part, begin);
        append(TT_DIRECTION_UPDATE, update);
        weight.parts.push_back({part, begin});
    }
    builder.pass(weight);
    builder.facts.emplace_back(purpose.text() + " parts", std::to_string(weight.parts.size()));
    if (bias)
        append(TT_DIRECTION_BACKWARD_WEIGHTS, [gradient, bias = *bias, extents = dims_of(gradient.desc)] {
            sum_columns(gradient.data(), extents[0], extents[1], bias.data());
        });
}

}  // namespace timetrial::onednn
