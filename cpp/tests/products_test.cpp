// Weight gradients of convolutions as products of unfolded images (backends/onednn/products.h), whatever form
// the backend's trial takes: against the sum that defines them. Integers, so that both are exact.
#include "onednn/products.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace timetrial::onednn {
namespace {

std::vector<float> integers(std::int64_t count, std::int64_t seed) {
    std::vector<float> made(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i)
        made[static_cast<std::size_t>(i)] = static_cast<float>((i * 7919 + seed) % 7 - 3);
    return made;
}

// gradient[kh][kw][ic][oc], each the sum over all images and output positions.
std::vector<float> by_definition(const Unfolding& u, std::int64_t channels, const std::vector<float>& values,
                                 const std::vector<float>& gradient) {
    std::vector<float> sums(static_cast<std::size_t>(u.row() * channels));
    for (std::int64_t n = 0; n < u.images; ++n)
        for (std::int64_t y = 0; y < u.output.h; ++y)
            for (std::int64_t x = 0; x < u.output.w; ++x)
                for (std::int64_t kh = 0; kh < u.kernel.h; ++kh)
                    for (std::int64_t kw = 0; kw < u.kernel.w; ++kw) {
                        const std::int64_t line = y * u.stride.h + kh * u.dilation.h - u.padding.h;
                        const std::int64_t place = x * u.stride.w + kw * u.dilation.w - u.padding.w;
                        if (line < 0 || line >= u.source.h || place < 0 || place >= u.source.w) continue;
                        for (std::int64_t ic = 0; ic < u.channels; ++ic)
                            for (std::int64_t oc = 0; oc < channels; ++oc)
                                sums[static_cast<std::size_t>(
                                    ((kh * u.kernel.w + kw) * u.channels + ic) * channels + oc)] +=
                                    values[static_cast<std::size_t>(
                                        ((n * u.source.h + line) * u.source.w + place) * u.channels + ic)] *
                                    gradient[static_cast<std::size_t>(
                                        ((n * u.output.h + y) * u.output.w + x) * channels + oc)];
                    }
    return sums;
}

void expect_sums(const Unfolding& u, std::int64_t channels, bool in_pieces) {
    SCOPED_TRACE("kernel " + std::to_string(u.kernel.h) + " x " + std::to_string(u.kernel.w) + ", output " +
                 std::to_string(u.output.h) + " x " + std::to_string(u.output.w));
    const std::vector<float> values = integers(u.images * u.source.h * u.source.w * u.channels, 1),
                             gradient = integers(u.images * u.output.h * u.output.w * channels, 2);
    const ProductsOfUnfolded products(u, channels);
    EXPECT_EQ(products.lines_at_once() < u.lines(), in_pieces);
    std::vector<float> room(static_cast<std::size_t>(products.room())),
        made(static_cast<std::size_t>(u.row() * channels), 99), bias(static_cast<std::size_t>(channels), 99);
    products(values.data(), gradient.data(), room.data(), made.data());
    EXPECT_EQ(made, by_definition(u, channels, values, gradient));
    products.add_up(gradient.data(), bias.data());
    std::vector<float> sums(bias.size());
    for (std::size_t i = 0; i < gradient.size(); ++i) sums[i % sums.size()] += gradient[i];
    EXPECT_EQ(bias, sums);
}

TEST(UnfoldedProducts, AreTheWeightGradient) {
    expect_sums({3, 5, {4, 4}, {3, 3}, {4, 4}, {1, 1}, {1, 1}, {1, 1}}, 17, false);  // "same"
    expect_sums({2, 3, {7, 5}, {3, 2}, {5, 4}, {1, 1}, {1, 1}, {0, 0}}, 4, false);
    expect_sums({2, 3, {9, 8}, {3, 2}, {5, 3}, {2, 3}, {1, 1}, {1, 2}}, 16, false);
    expect_sums({2, 1, {9, 8}, {2, 3}, {7, 6}, {1, 1}, {3, 2}, {0, 1}}, 33, false);  // dilated
    // Padding at the end alone, at which the output is larger than what one stride further leaves.
    expect_sums({1, 2, {3, 3}, {2, 2}, {3, 3}, {1, 1}, {1, 1}, {0, 0}}, 3, false);
}

TEST(UnfoldedProducts, TakeImagesThatNeedNoUnfolding) {
    expect_sums({3, 6, {4, 5}, {1, 1}, {4, 5}, {1, 1}, {1, 1}, {0, 0}}, 9, false);
    expect_sums({3, 6, {4, 5}, {1, 1}, {2, 3}, {2, 2}, {1, 1}, {0, 0}}, 9, false);  // others do
    expect_sums({3, 6, {4, 5}, {1, 1}, {6, 7}, {1, 1}, {1, 1}, {1, 1}}, 9, false);
}

// 28,800 rows of 27 values are more than 2 MB.
TEST(UnfoldedProducts, AddUpOverPieces) {
    expect_sums({8, 3, {60, 60}, {3, 3}, {60, 60}, {1, 1}, {1, 1}, {1, 1}}, 5, true);
}

}  // namespace
}  // namespace timetrial::onednn
