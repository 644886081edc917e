// The one place that knows which oneDNN it is compiled against. Major version 2 describes an operation first
// and makes the primitive from that; 3 takes the same arguments directly. Everything else here is a name that
// differs between the two.
#pragma once

#include <oneapi/dnnl/dnnl_debug.h>
#include <oneapi/dnnl/dnnl.hpp>

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace timetrial::onednn {

using Desc = dnnl::memory::desc;

// The form of a forward operation, and of a backward one (which needs its forward form as a hint).
#if DNNL_VERSION_MAJOR >= 3
template <class Primitive>
using Described = typename Primitive::primitive_desc;

template <class Primitive, class... Arguments>
Described<Primitive> describe(const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
                              const Arguments&... arguments) {
    return {engine, arguments..., attributes};
}
template <class Primitive, class Hint, class... Arguments>
Described<Primitive> describe_backward(const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
                                       const Hint& hint, const Arguments&... arguments) {
    return {engine, arguments..., hint, attributes};
}
#else
// next_impl() of version 2 looks again at the description of the operation, which must still be there.
template <class Primitive>
class Described : public Primitive::primitive_desc {
  public:
    using Operation = typename Primitive::desc;
    template <class... Arguments>
    explicit Described(std::shared_ptr<const Operation> operation, const Arguments&... arguments)
        : Primitive::primitive_desc(*operation, arguments...), operation_(std::move(operation)) {}

  private:
    std::shared_ptr<const Operation> operation_;
};

template <class Primitive, class... Arguments>
Described<Primitive> describe(const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
                              const Arguments&... arguments) {
    return Described<Primitive>(std::make_shared<const typename Primitive::desc>(arguments...), attributes,
                                engine);
}
template <class Primitive, class Hint, class... Arguments>
Described<Primitive> describe_backward(const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
                                       const Hint& hint, const Arguments&... arguments) {
    return Described<Primitive>(std::make_shared<const typename Primitive::desc>(arguments...), attributes,
                                engine, hint);
}
#endif

// False after a constructor that was allowed to fail.
inline bool is_valid(const Desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
    return static_cast<bool>(desc);
#else
    return !desc.is_zero();
#endif
}

// Whether it says where each number lies; what Winograd's weights look like is nobody's business.
inline bool is_open(const Desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
    return desc.get_format_kind() != dnnl::memory::format_kind::opaque;
#else
    return desc.data.format_kind != dnnl_format_kind_wino &&
           desc.data.format_kind != dnnl_format_kind_rnn_packed;
#endif
}

inline dnnl::memory::dims dims_of(const Desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
    return desc.get_dims();
#else
    return desc.dims();
#endif
}

// A function of one value, with its numbers: the slope of a leaky relu, both edges of a clip.
struct Eltwise {
    dnnl::algorithm algorithm;
    float alpha = 0;
    float beta = 0;
};

inline void append_eltwise(dnnl::post_ops& operations, const Eltwise& function) {
#if DNNL_VERSION_MAJOR >= 3
    operations.append_eltwise(function.algorithm, function.alpha, function.beta);
#else
    operations.append_eltwise(1.0F, function.algorithm, function.alpha, function.beta);
#endif
}

inline Described<dnnl::eltwise_forward> describe_eltwise(const dnnl::engine& engine,
                                                         const dnnl::primitive_attr& attributes,
                                                         dnnl::prop_kind purpose, const Eltwise& f,
                                                         const Desc& data) {
#if DNNL_VERSION_MAJOR >= 3
    return describe<dnnl::eltwise_forward>(engine, attributes, purpose, f.algorithm, data, data, f.alpha,
                                           f.beta);
#else
    return describe<dnnl::eltwise_forward>(engine, attributes, purpose, f.algorithm, data, f.alpha, f.beta);
#endif
}

inline Described<dnnl::eltwise_backward> describe_eltwise_backward(
    const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
    const Described<dnnl::eltwise_forward>& hint, const Eltwise& f, const Desc& data) {
#if DNNL_VERSION_MAJOR >= 3
    return describe_backward<dnnl::eltwise_backward>(engine, attributes, hint, f.algorithm, data, data, data,
                                                     f.alpha, f.beta);
#else
    return describe_backward<dnnl::eltwise_backward>(engine, attributes, hint, f.algorithm, data, data,
                                                     f.alpha, f.beta);
#endif
}

// Batch normalization, all in one format.
inline Described<dnnl::batch_normalization_forward> describe_norm(const dnnl::engine& engine,
                                                                  const dnnl::primitive_attr& attributes,
                                                                  dnnl::prop_kind purpose, const Desc& data,
                                                                  float epsilon,
                                                                  dnnl::normalization_flags flags) {
#if DNNL_VERSION_MAJOR >= 3
    return describe<dnnl::batch_normalization_forward>(engine, attributes, purpose, data, data, epsilon,
                                                       flags);
#else
    return describe<dnnl::batch_normalization_forward>(engine, attributes, purpose, data, epsilon, flags);
#endif
}

inline Described<dnnl::batch_normalization_backward> describe_norm_backward(
    const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
    const Described<dnnl::batch_normalization_forward>& hint, const Desc& data, float epsilon,
    dnnl::normalization_flags flags) {
    constexpr auto both = dnnl::prop_kind::backward;
#if DNNL_VERSION_MAJOR >= 3
    return describe_backward<dnnl::batch_normalization_backward>(engine, attributes, hint, both, data, data,
                                                                 data, epsilon, flags);
#else
    return describe_backward<dnnl::batch_normalization_backward>(engine, attributes, hint, both, data, data,
                                                                 epsilon, flags);
#endif
}

// Local response normalization: y = x / (k + alpha / size * sum of squares)^beta.
struct LrnNumbers {
    dnnl::memory::dim size;
    float alpha, beta, k;
};

inline Described<dnnl::lrn_forward> describe_lrn(const dnnl::engine& engine,
                                                 const dnnl::primitive_attr& attributes,
                                                 dnnl::prop_kind purpose, const Desc& data,
                                                 const LrnNumbers& n) {
    constexpr auto across = dnnl::algorithm::lrn_across_channels;
#if DNNL_VERSION_MAJOR >= 3
    return describe<dnnl::lrn_forward>(engine, attributes, purpose, across, data, data, n.size, n.alpha,
                                       n.beta, n.k);
#else
    return describe<dnnl::lrn_forward>(engine, attributes, purpose, across, data, n.size, n.alpha, n.beta,
                                       n.k);
#endif
}

inline Described<dnnl::lrn_backward> describe_lrn_backward(const dnnl::engine& engine,
                                                           const dnnl::primitive_attr& attributes,
                                                           const Described<dnnl::lrn_forward>& hint,
                                                           const Desc& data, const LrnNumbers& n) {
    constexpr auto across = dnnl::algorithm::lrn_across_channels;
#if DNNL_VERSION_MAJOR >= 3
    return describe_backward<dnnl::lrn_backward>(engine, attributes, hint, across, data, data, data, n.size,
                                                 n.alpha, n.beta, n.k);
#else
    return describe_backward<dnnl::lrn_backward>(engine, attributes, hint, across, data, data, n.size,
                                                 n.alpha, n.beta, n.k);
#endif
}

inline dnnl::sum::primitive_desc describe_sum(const dnnl::engine& engine,
                                              const dnnl::primitive_attr& attributes,
                                              const std::vector<Desc>& sources, const Desc& destination) {
    const std::vector<float> scales(sources.size(), 1.0F);
#if DNNL_VERSION_MAJOR >= 3
    return {engine, destination, scales, sources, attributes};
#else
    return {destination, scales, sources, engine, attributes};
#endif
}

// Of two tensors of one format, value by value.
inline Described<dnnl::binary> describe_product(const dnnl::engine& engine,
                                                const dnnl::primitive_attr& attributes, const Desc& data) {
    return describe<dnnl::binary>(engine, attributes, dnnl::algorithm::binary_mul, data, data, data);
}

inline dnnl::concat::primitive_desc describe_concat(const dnnl::engine& engine,
                                                    const dnnl::primitive_attr& attributes,
                                                    const Desc& destination, int axis,
                                                    const std::vector<Desc>& sources) {
#if DNNL_VERSION_MAJOR >= 3
    return {engine, destination, axis, sources, attributes};
#else
    return {destination, axis, sources, engine, attributes};
#endif
}

// Extents of a pooling window; {height, width} each.
struct PoolWindow {
    dnnl::memory::dims strides, kernel, padding, padding_end;
};

inline Described<dnnl::pooling_forward> describe_pooling(const dnnl::engine& engine,
                                                         const dnnl::primitive_attr& attributes,
                                                         dnnl::prop_kind purpose, dnnl::algorithm algorithm,
                                                         const Desc& source, const Desc& destination,
                                                         const PoolWindow& w) {
#if DNNL_VERSION_MAJOR >= 3
    return describe<dnnl::pooling_forward>(engine, attributes, purpose, algorithm, source, destination,
                                           w.strides, w.kernel, dnnl::memory::dims{0, 0}, w.padding,
                                           w.padding_end);
#else
    return describe<dnnl::pooling_forward>(engine, attributes, purpose, algorithm, source, destination,
                                           w.strides, w.kernel, w.padding, w.padding_end);
#endif
}

inline Described<dnnl::pooling_backward> describe_pooling_backward(
    const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
    const Described<dnnl::pooling_forward>& hint, dnnl::algorithm algorithm, const Desc& source_gradient,
    const Desc& destination_gradient, const PoolWindow& w) {
#if DNNL_VERSION_MAJOR >= 3
    return describe_backward<dnnl::pooling_backward>(engine, attributes, hint, algorithm, source_gradient,
                                                     destination_gradient, w.strides, w.kernel,
                                                     dnnl::memory::dims{0, 0}, w.padding, w.padding_end);
#else
    return describe_backward<dnnl::pooling_backward>(engine, attributes, hint, algorithm, source_gradient,
                                                     destination_gradient, w.strides, w.kernel, w.padding,
                                                     w.padding_end);
#endif
}

// The names of ONEDNN_MAX_CPU_ISA, in lower case, lowest first.
inline constexpr std::pair<std::string_view, dnnl_cpu_isa_t> isa_names[] = {
    {"sse41", dnnl_cpu_isa_sse41},
    {"avx", dnnl_cpu_isa_avx},
    {"avx2", dnnl_cpu_isa_avx2},
    {"avx2_vnni", dnnl_cpu_isa_avx2_vnni},
#if DNNL_VERSION_MAJOR >= 3
    {"avx2_vnni_2", dnnl_cpu_isa_avx2_vnni_2},
#endif
    {"avx512_core", dnnl_cpu_isa_avx512_core},
    {"avx512_core_vnni", dnnl_cpu_isa_avx512_core_vnni},
    {"avx512_core_bf16", dnnl_cpu_isa_avx512_core_bf16},
#if DNNL_VERSION_MAJOR >= 3
    {"avx512_core_fp16", dnnl_cpu_isa_avx512_core_fp16},
#endif
    {"avx512_core_amx", dnnl_cpu_isa_avx512_core_amx},
#if DNNL_VERSION_MAJOR >= 3
    {"avx512_core_amx_fp16", dnnl_cpu_isa_avx512_core_amx_fp16},
#endif
};

// Within the limit that `onednn.max_cpu_isa` sets for the primitives.
inline bool may_use(dnnl_cpu_isa_t isa) { return (dnnl_get_effective_cpu_isa() & isa) == isa; }

// How far oneDNN may round the factors of f32 products: the names of ONEDNN_DEFAULT_FPMATH_MODE, in lower
// case.
inline constexpr std::pair<std::string_view, dnnl::fpmath_mode> math_mode_names[] = {
    {"strict", dnnl::fpmath_mode::strict}, {"bf16", dnnl::fpmath_mode::bf16}, {"f16", dnnl::fpmath_mode::f16},
#if DNNL_VERSION_MAJOR >= 3
    {"tf32", dnnl::fpmath_mode::tf32},
#endif
    {"any", dnnl::fpmath_mode::any},
};

}  // namespace timetrial::onednn
