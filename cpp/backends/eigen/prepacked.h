// A right matrix that stays the same for many products with few rows on the left, in the layout that Eigen's
// kernel reads. Eigen packs both operands in each product; beside 20 rows that is a third of its time.
//
// Eigen has no public door to this: gemm_pack_lhs, gemm_pack_rhs and gebp_kernel are what its own
// general_matrix_matrix_product is made of (GeneralMatrixMatrix.h, 3.4), called here in another order, since
// one operand is packed already. The version of Eigen is pinned in pyproject.toml.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cstdint>

#include "layers/product.h"

namespace timetrial::eigen {

template <typename T>
class Prepacked {
  public:
    // Numbers that it takes, beside at most `most` rows on the left.
    static int64_t room(layers::Matrix<const T> b, int64_t most) {
        const Blocks blocks(b, most);
        return blocks.size + blocks.depth * blocks.left;
    }

    void pack(layers::Matrix<const T> b, int64_t most, T* room) {
        blocks_ = Blocks(b, most);
        packed_ = room, left_ = room + blocks_.size;
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
        for (int64_t n = 0; n < a.rows; n += blocks_.left) {
            const int64_t rows = std::min(blocks_.left, a.rows - n);
            blocks_.for_each([&](const Block& block) {
                if (block.first == 0) pack_left(left_, from.getSubMapper(block.from, n), block.depth, rows);
                kernel(to.getSubMapper(block.first, n), packed_ + block.place, left_, block.extent,
                       block.depth, rows, T(1));
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

    // As large as Eigen would take them, by the caches.
    struct Blocks {
        int64_t rows = 0, columns = 0, size = 0;
        Eigen::Index depth = 0, extent = 0, left = 0;

        Blocks() = default;
        Blocks(layers::Matrix<const T> b, int64_t most)
            : rows(b.transposed ? b.columns : b.rows),
              columns(b.transposed ? b.rows : b.columns),
              depth(rows),
              extent(columns),
              left(most) {
            Eigen::internal::computeProductBlockingSizes<T, T, 1>(depth, extent, left, Eigen::Index{1});
            for_each([&](const Block& block) { size = block.place + whole_lines(block); });
        }

        template <typename F>
        void for_each(F&& f) const {
            int64_t place = 0;
            for (int64_t k = 0; k < rows; k += depth)
                for (int64_t i = 0; i < columns; i += extent) {
                    const Block block{k, std::min<int64_t>(depth, rows - k), i,
                                      std::min<int64_t>(extent, columns - i), place};
                    f(block);
                    place += whole_lines(block);
                }
        }

        // The kernel loads whole registers from each block's begin.
        static int64_t whole_lines(const Block& block) {
            constexpr int64_t line = 64 / sizeof(T);
            return (block.depth * block.extent + line - 1) / line * line;
        }
    };

    template <int order>
    void pack_as(layers::Matrix<const T> b) {
        Eigen::internal::gemm_pack_lhs<T, Eigen::Index, Reads<order>, Traits::mr, Traits::LhsProgress,
                                       typename Traits::LhsPacket4Packing, order>
            pack;
        const Reads<order> from(b.data, b.stride);
        blocks_.for_each([&](const Block& block) {
            pack(packed_ + block.place, from.getSubMapper(block.first, block.from), block.depth,
                 block.extent);
        });
    }

    Blocks blocks_;
    T *packed_ = nullptr, *left_ = nullptr;
};

}  // namespace timetrial::eigen
