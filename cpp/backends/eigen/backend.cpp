// Eigen: the products of the layers engine through Eigen::Map, or by a matrix that is packed once
// (prepacked.h), one thread each. Header-only, so the variant for an ISA is this file compiled for it.
#include <Eigen/Core>

#include "eigen/prepacked.h"
#include "layers/engine.h"
#include "timetrial/backend.hpp"

namespace {

using timetrial::layers::Matrix;

struct EigenProduct {
    template <typename T>
    using Prepacked = timetrial::eigen::Prepacked<T>;

    template <typename T>
    using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    template <typename T>
    using Map = Eigen::Map<T, Eigen::Unaligned, Eigen::OuterStride<>>;

    template <typename T>
    static void multiply(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool add) {
        const Map<const RowMajor<T>> left(a.data, a.rows, a.columns, Eigen::OuterStride<>(a.stride));
        const Map<const RowMajor<T>> right(b.data, b.rows, b.columns, Eigen::OuterStride<>(b.stride));
        Map<RowMajor<T>> result(c.data, c.rows, c.columns, Eigen::OuterStride<>(c.stride));
        // noalias: straight into the result. Eigen's kernels accumulate, so adding costs nothing more.
        const auto store = [&](const auto& product) {
            if (add) {
                result.noalias() += product;
            } else {
                result.noalias() = product;
            }
        };
        if (a.transposed && b.transposed) return store(left.transpose() * right.transpose());
        if (a.transposed) return store(left.transpose() * right);
        if (b.transposed) return store(left * right.transpose());
        store(left * right);
    }
};

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

constexpr const char* devices[] = {"cpu", nullptr};
constexpr const char* dtypes[] = {"f32", nullptr};
constexpr auto optimizers = timetrial::optimizer_words();
constexpr const char* settings[] = {"threads", "parallel", "convolution", "lengths", "recompute", nullptr};

constexpr tt_description description{
    .size = sizeof(tt_description),
    .name = "eigen",
    .version = "0.1.0",
    .library = "Eigen " TEXT(EIGEN_WORLD_VERSION) "." TEXT(EIGEN_MAJOR_VERSION) "." TEXT(EIGEN_MINOR_VERSION),
    .isa = TIMETRIAL_ISA,
    .tasks = TT_TRAIN | TT_GRADIENT | TT_FORWARD,
    .parts = TT_PART_FORWARD | TT_PART_LOSS | TT_PART_BACKWARD | TT_PART_UPDATE,
    .flags = TT_PROFILES,
    .devices = devices,
    .dtypes = dtypes,
    .layers = timetrial::layers::kinds<EigenProduct>.data(),
    .optimizers = optimizers.data(),
    .settings = settings,
};

class EigenBackend final : public timetrial::layers::Engine<float, EigenProduct> {
  public:
    EigenBackend() : Engine(description) {}
};

}  // namespace

extern "C" TT_EXPORT const tt_backend* tt_backend_table(uint32_t host_abi) {
    return timetrial::backend_table<EigenBackend>(host_abi, description);
}
