// Stochastic gradient descent in one pass over gradient, velocity and weights, in the weights' own format.
#pragma once

#include <omp.h>

#include <cstdint>
#include <vector>

#include "layers/threads.h"
#include "onednn/tensor.h"

#ifndef _OPENMP
#error "compile with -fopenmp: the update shares OpenMP's threads with oneDNN"
#endif

namespace timetrial::onednn {

struct SgdRange {
    float* __restrict weights;
    float* __restrict velocity;
    const float* __restrict gradient;
    int64_t count;
};

namespace kernels {

// The compiler makes one version for each function below that it is inlined into.
__attribute__((always_inline)) inline void sgd(const SgdRange& range, float rate, float momentum,
                                               float decay) {
    for (int64_t i = 0; i < range.count; ++i) {
        range.velocity[i] = momentum * range.velocity[i] + (range.gradient[i] + decay * range.weights[i]);
        range.weights[i] -= rate * range.velocity[i];
    }
}

using SgdFunction = void (*)(const SgdRange&, float, float, float);

inline void sgd_plain(const SgdRange& range, float rate, float momentum, float decay) {
    sgd(range, rate, momentum, decay);
}
__attribute__((target("avx2,fma"))) inline void sgd_avx2(const SgdRange& range, float rate, float momentum,
                                                         float decay) {
    sgd(range, rate, momentum, decay);
}
__attribute__((target("avx512f,prefer-vector-width=512"))) inline void sgd_avx512(const SgdRange& range,
                                                                                  float rate, float momentum,
                                                                                  float decay) {
    sgd(range, rate, momentum, decay);
}

// Within the limit that `onednn.max_cpu_isa` sets for the primitives.
inline SgdFunction sgd_for(dnnl_cpu_isa_t isa) {
    if ((isa & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core) return sgd_avx512;
    if ((isa & dnnl_cpu_isa_avx2) == dnnl_cpu_isa_avx2) return sgd_avx2;
    return sgd_plain;
}

}  // namespace kernels

class Update {
  public:
    explicit Update(const Sgd& sgd)
        : rate_(static_cast<float>(sgd.learning_rate)),
          momentum_(static_cast<float>(sgd.momentum)),
          decay_(static_cast<float>(sgd.weight_decay)),
          function_(kernels::sgd_for(dnnl_get_effective_cpu_isa())) {}

    void add(const Parameter& parameter) {
        parameters_.push_back({parameter.value.made(), parameter.velocity, parameter.gradient});
    }

    void operator()() const {
        int64_t largest = 0;
        for (const Tensors& p : parameters_) largest = std::max(largest, p.weights.stored_elements());
#pragma omp parallel if (largest > worth_sharing)
        for (const Tensors& p : parameters_) {
            const layers::Share mine =
                layers::share_of(p.weights.stored_elements(), omp_get_thread_num(), omp_get_num_threads());
            function_({p.weights.data() + mine.begin, p.velocity.data() + mine.begin,
                       p.gradient.data() + mine.begin, mine.end - mine.begin},
                      rate_, momentum_, decay_);
        }
    }

  private:
    struct Tensors {
        Tensor weights, velocity, gradient;
    };
    static constexpr int64_t worth_sharing = 1 << 14;  // below, waking the threads costs more

    float rate_, momentum_, decay_;
    kernels::SgdFunction function_;
    std::vector<Tensors> parameters_;
};

}  // namespace timetrial::onednn
