// A right matrix that stays the same for many products with few rows on the left, in the layout that Eigen's
// kernel reads. Eigen packs both operands in each product; beside 20 rows that is a third of its time.
//
// Eigen has no public door to this: gemm_pack_lhs, gemm_pack_rhs and gebp_kernel are what its own
// general_matrix_matrix_product is made of (GeneralMatrixMatrix.h, 3.4), whose loops these are. The version
// of Eigen is pinned in pyproject.toml.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cstdint>

#include "layers/buffer.h"
#include "layers/product.h"

namespace timetrial::eigen {

template <typename T>
class Prepacked {
  public:
    // For matrices of so many rows and columns, and at most `most` rows on the left.
    void prepare(int64_t rows, int64_t columns, int64_t most) {
        depth_ = depth_block_ = rows;
        extent_ = extent_block_ = columns;
        Eigen::Index left = most;
        Eigen::internal::computeProductBlockingSizes<T, T, 1>(depth_block_, extent_block_, left,
                                                              Eigen::Index{1});
        left_block_ = left;
        int64_t size = 0;
        for_each_block([&](Block block) { size = block.place + room(block.depth * block.extent); });
        packed_ = layers::Buffer<T>(size);
        left_ = layers::Buffer<T>(depth_block_ * left_block_);
    }

    void pack(layers::Matrix<const T> b) {
        if (b.transposed) return pack_as<Eigen::RowMajor>(b);
        pack_as<Eigen::ColMajor>(b);
    }

    // c = a b, or c = c + a b where `add`; `a` is not transposed.
    void multiply(layers::Matrix<const T> a, layers::Matrix<T> c, bool add) {
        if (!add)
            for (int64_t i = 0; i < c.rows; ++i) std::fill_n(c.data + i * c.stride, c.columns, T(0));
        // Eigen's kernel writes columns: it is told of the transposed product, whose left matrix is b.
        Eigen::internal::gemm_pack_rhs<T, Eigen::Index, Reads<Eigen::ColMajor>, Traits::nr, Eigen::ColMajor>
            pack_left;
        Eigen::internal::gebp_kernel<T, T, Eigen::Index, Writes, Traits::mr, Traits::nr, false, false> kernel;
        const Reads<Eigen::ColMajor> from(a.data, a.stride);
        const Writes to(c.data, c.stride);
        for (int64_t n = 0; n < a.rows; n += left_block_) {
            const int64_t rows = std::min(left_block_, a.rows - n);
            for_each_block([&](Block block) {
                if (block.first == 0)
                    pack_left(left_.data(), from.getSubMapper(block.from, n), block.depth, rows);
                kernel(to.getSubMapper(block.first, n), packed_.data() + block.place, left_.data(),
                       block.extent, block.depth, rows, T(1));
            });
        }
    }

  private:
    using Traits = Eigen::internal::gebp_traits<T, T>;
    template <int order>
    using Reads = Eigen::internal::const_blas_data_mapper<T, Eigen::Index, order>;
    using Writes = Eigen::internal::blas_data_mapper<T, Eigen::Index, Eigen::ColMajor, Eigen::Unaligned, 1>;

    // Rows `from` on and columns `first` on of the matrix; where they stand packed.
    struct Block {
        int64_t from, depth, first, extent, place;
    };

    // The kernel loads whole registers from each block's begin.
    static int64_t room(int64_t numbers) {
        constexpr int64_t line = 64 / sizeof(T);
        return (numbers + line - 1) / line * line;
    }

    template <typename F>
    void for_each_block(F&& f) const {
        int64_t place = 0;
        for (int64_t k = 0; k < depth_; k += depth_block_)
            for (int64_t i = 0; i < extent_; i += extent_block_) {
                const Block block{k, std::min<int64_t>(depth_block_, depth_ - k), i,
                                  std::min<int64_t>(extent_block_, extent_ - i), place};
                f(block);
                place += room(block.depth * block.extent);
            }
    }

    template <int order>
    void pack_as(layers::Matrix<const T> b) {
        Eigen::internal::gemm_pack_lhs<T, Eigen::Index, Reads<order>, Traits::mr, Traits::LhsProgress,
                                       typename Traits::LhsPacket4Packing, order>
            pack;
        const Reads<order> from(b.data, b.stride);
        for_each_block([&](Block block) {
            pack(packed_.data() + block.place, from.getSubMapper(block.first, block.from), block.depth,
                 block.extent);
        });
    }

    int64_t depth_ = 0, extent_ = 0, left_block_ = 0;
    Eigen::Index depth_block_ = 0, extent_block_ = 0;
    layers::Buffer<T> packed_, left_;
};

}  // namespace timetrial::eigen
