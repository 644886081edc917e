// The update in one pass over gradient, states and weights, in the weights' own format.
#pragma once

#include <omp.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "layers/rules.h"
#include "layers/threads.h"
#include "onednn/tensor.h"

#ifndef _OPENMP
#error "compile with -fopenmp: the update shares OpenMP's threads with oneDNN"
#endif

namespace timetrial::onednn {

namespace kernels {

using Piece = layers::Piece<float>;
using Numbers = layers::UpdateNumbers<float>;
using Function = void (*)(const Piece&, const Numbers&);

// The compiler makes one version of every rule for each function below that it is inlined into.
inline void plain(const Piece& piece, const Numbers& numbers) { layers::update(piece, numbers); }
__attribute__((target("avx2,fma"))) inline void avx2(const Piece& piece, const Numbers& numbers) {
    layers::update(piece, numbers);
}
__attribute__((target("avx512f,prefer-vector-width=512"))) inline void avx512(const Piece& piece,
                                                                              const Numbers& numbers) {
    layers::update(piece, numbers);
}

inline Function best() {
    if (may_use(dnnl_cpu_isa_avx512_core)) return avx512;
    if (may_use(dnnl_cpu_isa_avx2)) return avx2;
    return plain;
}

}  // namespace kernels

class Update {
  public:
    // `numbers` are those of the step under way, when it runs.
    explicit Update(std::shared_ptr<const kernels::Numbers> numbers)
        : numbers_(std::move(numbers)), function_(kernels::best()) {}

    // `gradient`: of all its values, or of those from `begin` on.
    void add(const Parameter& parameter, const Tensor& gradient, int64_t begin = 0) {
        Tensors tensors{parameter.value.made(), gradient, {}, begin};
        for (const auto& [name, state] : parameter.states) tensors.states.push_back(state);
        parameters_.push_back(std::move(tensors));
    }

    void operator()() const {
        int64_t largest = 0;
        for (const Tensors& p : parameters_) largest = std::max(largest, p.gradient.stored_elements());
#pragma omp parallel if (largest > worth_sharing)
        for (const Tensors& p : parameters_) {
            const layers::Share mine =
                layers::share_of(p.gradient.stored_elements(), omp_get_thread_num(), omp_get_num_threads());
            const int64_t first = p.begin + mine.begin;
            const auto state = [&](std::size_t which) {
                return which < p.states.size() ? p.states[which].data() + first : nullptr;
            };
            function_({p.weights.data() + first, p.gradient.data() + mine.begin, state(0), state(1),
                       mine.end - mine.begin},
                      *numbers_);
        }
    }

  private:
    struct Tensors {
        Tensor weights, gradient;
        std::vector<Tensor> states;
        int64_t begin;
    };
    static constexpr int64_t worth_sharing = 1 << 14;  // below, waking the threads costs more

    std::shared_ptr<const kernels::Numbers> numbers_;
    kernels::Function function_;
    std::vector<Tensors> parameters_;
};

}  // namespace timetrial::onednn
