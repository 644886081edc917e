// A matrix that is packed once for many products (backends/eigen/prepacked.h): against the sum that defines
// it.
#include "eigen/prepacked.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "layers/buffer.h"

namespace timetrial::eigen {
namespace {

using layers::Matrix;

template <typename T>
std::vector<T> numbers(int64_t count, int64_t seed) {
    std::vector<T> made(static_cast<std::size_t>(count));
    for (int64_t i = 0; i < count; ++i)
        made[static_cast<std::size_t>(i)] = static_cast<T>((i * 7919 + seed) % 101) / 50 - 1;
    return made;
}

template <typename T>
T at(Matrix<const T> of, int64_t row, int64_t column) {
    return of.transposed ? of.data[column * of.stride + row] : of.data[row * of.stride + column];
}

// Products of `rows` rows by a depth x extent matrix, in buffers whose rows are longer than they need be,
// that was packed for at most `most` rows.
template <typename T>
void expect_products(int64_t depth, int64_t extent, int64_t most, const std::vector<int64_t>& rows) {
    constexpr int64_t gap = 3;
    for (const bool transposed : {false, true}) {
        const int64_t width = transposed ? depth : extent, height = transposed ? extent : depth;
        const std::vector<T> of_b = numbers<T>(height * (width + gap), 5);
        Matrix<const T> b = layers::matrix<const T>(of_b.data(), height, width, width + gap);
        b.transposed = transposed;
        layers::Buffer<T> room(Prepacked<T>::room(b, most));
        Prepacked<T> packed;
        packed.pack(b, most, room.data());
        for (const int64_t count : rows)
            for (const bool add : {false, true}) {
                const std::vector<T> of_a = numbers<T>(count * (depth + gap), 11);
                std::vector<T> of_c = numbers<T>(count * (extent + gap), 17);
                const std::vector<T> before = of_c;
                const auto a = layers::matrix<const T>(of_a.data(), count, depth, depth + gap);
                packed.multiply(a, layers::matrix(of_c.data(), count, extent, extent + gap), add);
                for (int64_t n = 0; n < count; ++n)
                    for (int64_t i = 0; i < extent + gap; ++i) {
                        const auto place = static_cast<std::size_t>(n * (extent + gap) + i);
                        double expected = add || i >= extent ? before[place] : 0;
                        for (int64_t k = 0; k < depth && i < extent; ++k)
                            expected += double{at(a, n, k)} * double{at(b, k, i)};
                        const double tolerance =
                            (sizeof(T) == 4 ? 1e-6 : 1e-14) * (10 + static_cast<double>(depth));
                        ASSERT_NEAR(of_c[place], expected, tolerance)
                            << depth << " x " << extent << ", row " << n;
                    }
            }
    }
}

class Products : public ::testing::Test {
  protected:
    void SetUp() override {
        l1_ = Eigen::l1CacheSize(), l2_ = Eigen::l2CacheSize(), l3_ = Eigen::l3CacheSize();
    }
    void TearDown() override { Eigen::setCpuCacheSizes(l1_, l2_, l3_); }

  private:
    std::ptrdiff_t l1_, l2_, l3_;
};

TEST_F(Products, AreThoseOfTheMatrix) {
    expect_products<float>(1, 1, 1, {1});
    expect_products<float>(7, 28, 5, {1, 3, 5});
    expect_products<double>(33, 13, 8, {8, 2});
}

// With caches so small that Eigen takes a part at a time, the last one less than the others: of the depth, of
// the columns, of the rows on the left.
TEST_F(Products, OfSeveralBlocks) {
    Eigen::setCpuCacheSizes(4096, 8192, 16384);
    const auto expect_blocks = [](Eigen::Index depth, Eigen::Index extent, Eigen::Index left, int blocked) {
        Eigen::Index sizes[] = {depth, extent, left};
        const Eigen::Index whole[] = {depth, extent, left};
        Eigen::internal::computeProductBlockingSizes<float, float, 1>(sizes[0], sizes[1], sizes[2],
                                                                      Eigen::Index{1});
        EXPECT_LT(sizes[blocked], whole[blocked]);
        EXPECT_NE(whole[blocked] % sizes[blocked], 0);
        expect_products<float>(depth, extent, left, {left, left - 1, 1});
        expect_products<double>(depth, extent, left, {left, left - 1, 1});
    };
    expect_blocks(301, 203, 50, 0);
    expect_blocks(40, 203, 41, 1);
    expect_blocks(24, 16, 53, 2);
}

// Only slower: it takes them block by block.
TEST_F(Products, OfMoreRowsThanWereSaid) { expect_products<float>(40, 60, 4, {4, 11}); }

}  // namespace
}  // namespace timetrial::eigen
