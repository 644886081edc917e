// cblas: the products of the layers engine by any CBLAS, in single or (as a judge) double precision. The
// engine's own loops are compiled for an ISA; the library's kernels are its own choice.
#include <algorithm>
#include <cstdint>
#include <memory>

#include "cblas/library.h"
#include "layers/engine.h"
#include "timetrial/backend.hpp"

namespace {

using timetrial::layers::Matrix;
namespace cblas = timetrial::cblas;

struct CblasProduct {
    template <typename T>
    static void multiply(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool add) {
        const auto gemm = [] {
            if constexpr (sizeof(T) == 4)
                return cblas::library().sgemm;
            else
                return cblas::library().dgemm;
        }();
        gemm(cblas::row_major, a.transposed ? cblas::transpose : cblas::no_transpose,
             b.transposed ? cblas::transpose : cblas::no_transpose, c.rows, c.columns,
             a.transposed ? a.rows : a.columns, 1, a.data, a.stride, b.data, b.stride, add ? T(1) : T(0),
             c.data, c.stride);
    }

    // Few libraries have a door to their packing (MKL, BLIS). OpenBLAS multiplies few rows by a matrix that
    // is not transposed up to twice as fast as by one that is.
    template <typename T>
    class Prepacked {
      public:
        static int64_t room(Matrix<const T> b, int64_t) { return b.transposed ? b.rows * b.columns : 0; }

        void pack(Matrix<const T> b, int64_t, T* room) {
            b_ = b;
            if (!b.transposed) return;
            constexpr int64_t tile = 8;  // rows that are read side by side, in as many ways of a cache
            for (int64_t i = 0; i < b.rows; i += tile)
                for (int64_t j = 0; j < b.columns; ++j)
                    for (int64_t k = i; k < std::min(i + tile, b.rows); ++k)
                        room[j * b.rows + k] = b.data[k * b.stride + j];
            b_ = timetrial::layers::matrix<const T>(room, b.columns, b.rows);
        }

        void multiply(Matrix<const T> a, Matrix<T> c, bool add) const {
            CblasProduct::multiply<T>(a, b_, c, add);
        }

      private:
        Matrix<const T> b_{};
    };
};

constexpr const char* devices[] = {"cpu", nullptr};
constexpr const char* dtypes[] = {"f32", "f64", nullptr};
constexpr auto optimizers = timetrial::optimizer_words();
constexpr const char* settings[] = {"threads",   "parallel",     "convolution",    "lengths",
                                    "recompute", "blas.library", "blas.core_type", nullptr};

constexpr tt_description description{
    .size = sizeof(tt_description),
    .name = "cblas",
    .version = "0.1.0",
    .library = "",
    .isa = TIMETRIAL_ISA,
    .tasks = TT_TRAIN | TT_GRADIENT | TT_FORWARD,
    .parts = TT_PART_FORWARD | TT_PART_LOSS | TT_PART_BACKWARD | TT_PART_UPDATE,
    .flags = TT_PROFILES,
    .devices = devices,
    .dtypes = dtypes,
    .layers = timetrial::layers::kinds<CblasProduct>.data(),
    .optimizers = optimizers.data(),
    .settings = settings,
};

class CblasBackend final : public timetrial::Backend {
  public:
    void configure(std::string_view name, std::string_view value) override {
        if (name == "threads") {
            threads_ = static_cast<int>(timetrial::setting_integer(name, value, 1, 1024));
        } else if (name == "parallel") {
            if (value != "images" && value != "product")
                throw timetrial::Unsupported(
                    "parallel = '" + std::string(value) +
                    "': cblas has images (a thread of the engine for each share of them) and "
                    "product (threads of the library)");
            in_product_ = value == "product";
        } else if (name == "convolution") {
            convolution_ = timetrial::layers::read_algorithm(name, value);
        } else if (name == "lengths") {
            lengths_ = timetrial::read_way(name, value);
        } else if (name == "recompute") {
            recompute_ = timetrial::layers::read_recompute(name, value);
        } else if (name == "blas.library") {
            path_ = value;
        } else if (name == "blas.core_type") {
            core_type_ = value;
        } else {
            throw timetrial::unknown_setting(name, description);
        }
    }

    // Opens the library, so that a wrong path is known before there is a network.
    timetrial::Reading read_setting(std::string_view name) override {
        if (name == "parallel") return {in_product_ ? "product" : "images", "what the plug-in does"};
        if (name == "convolution" && engine_) return engine_->read_setting(name);
        if (name == "convolution")
            return {timetrial::layers::word_of(convolution_),
                    "what was asked: build() decides for each layer"};
        if (name == "lengths" && engine_) return engine_->read_setting(name);
        if (name == "lengths") return {timetrial::word_of(lengths_), "what was asked"};
        if (name == "recompute" && engine_) return engine_->read_setting(name);
        if (name == "recompute") return timetrial::layers::read_back(recompute_, false, {});
        if (name != "threads" && name != "blas.library" && name != "blas.core_type")
            throw timetrial::unknown_setting(name, description);
        open();
        const cblas::Library& library = cblas::library();
        if (name == "blas.library") return {library.path, "file of " + library.names + "(), dladdr()"};
        if (name == "blas.core_type") {
            if (library.control->vendor() != std::string_view("OpenBLAS"))
                throw timetrial::Unsupported("only OpenBLAS has core types");
            return {library.control->kernel(), library.control->kernel_getter()};
        }
        const timetrial::Library& control = *library.control;
        const auto own = control.threads();
        const std::string getter =
            own ? control.threads_getter() + " " + std::to_string(*own) : "the library does not tell";
        if (in_product_) return {std::to_string(own.value_or(1)), getter};
        const timetrial::Reading pool =
            engine_ ? engine_->read_setting(name) : timetrial::Reading{std::to_string(threads_), ""};
        return {pool.effective, pool.how_read + "; " + getter};
    }

    void build(const tt_build& build) override {
        open();
        if (build.dtype == TT_F64) {
            engine_ = std::make_unique<timetrial::layers::Engine<double, CblasProduct>>(description);
        } else {
            engine_ = std::make_unique<timetrial::layers::Engine<float, CblasProduct>>(description);
        }
        engine_->configure("threads", std::to_string(in_product_ ? 1 : threads_));
        engine_->configure("convolution", timetrial::layers::word_of(convolution_));
        engine_->configure("lengths", timetrial::word_of(lengths_));
        if (recompute_ != timetrial::layers::Recompute::kByDefault)
            engine_->configure("recompute", timetrial::layers::word_of(recompute_));
        engine_->build(build);
    }

    timetrial::Facts facts() override {
        const cblas::Library& library = cblas::library();
        const std::string kernel = library.control->kernel(), version = library.control->version();
        timetrial::Facts all{{"blas.version", version.empty() ? "the library does not tell" : version},
                             {"blas.kernel", kernel.empty() ? "the library does not tell" : kernel},
                             {"blas.symbols", library.names},
                             {"blas.integers", std::to_string(library.integer_bits) + " bits"}};
        const timetrial::Facts chosen = engine_->facts();
        all.insert(all.end(), chosen.begin(), chosen.end());
        return all;
    }

    double step(uint32_t task, const tt_batch& batch) override { return engine_->step(task, batch); }
    double part(uint32_t part, const tt_batch& batch) override { return engine_->part(part, batch); }
    void evaluate(const tt_batch& batch, float* output) override { engine_->evaluate(batch, output); }
    std::vector<timetrial::LayerTime> profile(const tt_batch& batch) override {
        return engine_->profile(batch);
    }
    void reset() override { engine_->reset(); }
    std::vector<tt_tensor> tensors(uint32_t role) override { return engine_->tensors(role); }
    void read_tensor(tt_tensor& tensor) override { engine_->read_tensor(tensor); }
    void write_tensor(const tt_tensor& tensor) override { engine_->write_tensor(tensor); }

  private:
    void open() {
        if (path_.empty())
            throw timetrial::Unsupported("blas.library is not set: expected the absolute path of a CBLAS");
        const int inside = in_product_ ? threads_ : 1;
        cblas::open(path_, inside, core_type_);
        if (!in_product_ && threads_ > 1 && !cblas::library().control->allows_concurrent_calls())
            throw timetrial::Unsupported(
                "threads = '" + std::to_string(threads_) + "', parallel = 'images', blas.library = '" +
                path_ +
                "': it was built for one thread and without locks (SINGLE_THREADED), so "
                "several threads must not call "
                "it at once; expected threads = 1, or another library");
        cblas::library().control->set_threads(inside);
    }

    int threads_ = 1;
    bool in_product_ = false;
    timetrial::layers::Algorithm convolution_ = timetrial::layers::Algorithm::kByShape;
    timetrial::Way lengths_ = timetrial::Way::kPacked;
    timetrial::layers::Recompute recompute_ = timetrial::layers::Recompute::kByDefault;
    std::string path_;
    std::string core_type_;  // "": the library's own choice
    std::unique_ptr<timetrial::Backend> engine_;
};

}  // namespace

extern "C" TT_EXPORT const tt_backend* tt_backend_table(uint32_t host_abi) {
    return timetrial::backend_table<CblasBackend>(host_abi, description);
}
