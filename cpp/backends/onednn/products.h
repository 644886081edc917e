// The weight gradient of a convolution as products: the unfolded images of a whole batch, transposed, by the
// gradient of the output. Where images are small (4 x 4 pixels of 512 channels) oneDNN 3.2's own kernels for
// AVX2 take three times as long, or none is fast (2 x 2).
#pragma once

#include <algorithm>
#include <cstdint>

#include "onednn/column_sums.h"
#include "onednn/forms.h"
#include "onednn/unfolding.h"

namespace timetrial::onednn {

class ProductsOfUnfolded {
  public:
    ProductsOfUnfolded(const Unfolding& images, std::int64_t channels)
        : images_(images), channels_(channels) {}

    // What is unfolded at a time is as large as the gradient, so that adding to that costs little; at least
    // what stays in the nearer caches.
    std::int64_t lines_at_once() const {
        if (images_.is_as_it_lies()) return images_.lines();
        const std::int64_t floats = std::max(images_.row() * channels_, least);
        return std::clamp(floats / (images_.output.w * images_.row()), std::int64_t{1}, images_.lines());
    }
    std::int64_t room() const {  // floats
        return images_.is_as_it_lies() ? 1 : lines_at_once() * images_.output.w * images_.row();
    }

    // weights[kh][kw][ic][oc] of values[n][h][w][ic] and gradient[n][oh][ow][oc].
    void operator()(const float* values, const float* gradient, float* room, float* weights) const {
        const std::int64_t row = images_.row(), at_once = lines_at_once();
        const bool as_it_lies = images_.is_as_it_lies();
        for (std::int64_t first = 0; first < images_.lines(); first += at_once) {
            const std::int64_t count = std::min(at_once, images_.lines() - first);
            if (!as_it_lies) images_.unfold(values, first, count, room);
            dnnl::error::wrap_c_api(
                dnnl_sgemm('T', 'N', row, channels_, count * images_.output.w, 1, as_it_lies ? values : room,
                           row, gradient + first * images_.output.w * channels_, channels_, first > 0 ? 1 : 0,
                           weights, channels_),
                "oneDNN could not multiply");
        }
    }

    void add_up(const float* gradient, float* bias) const {
        sum_columns(gradient, images_.lines() * images_.output.w, channels_, bias);
    }

  private:
    static constexpr std::int64_t least = std::int64_t{2} << 18;  // 2 MB

    Unfolding images_;
    std::int64_t channels_;  // of the output
};

// As one of the forms of an operation.
inline Form form_of(const ProductsOfUnfolded& products, const Desc& source, const Desc& destination,
                    const Desc& weights, bool has_bias) {
    Form form{"unfolded:sgemm",
              {{DNNL_ARG_SRC, source}, {DNNL_ARG_DIFF_DST, destination}},
              {{DNNL_ARG_DIFF_WEIGHTS, weights}},
              plain({products.room()}),
              nullptr};
    if (has_bias) form.writes.push_back({DNNL_ARG_DIFF_BIAS, plain({dims_of(destination)[1]})});
    form.own = [products](const Call::Arguments& arguments) {
        const auto memory = [&](int argument) {
            for (const auto& [name, found] : arguments)
                if (name == argument) return found;
            return dnnl::memory();
        };
        const auto at = [](const dnnl::memory& one) { return static_cast<float*>(one.get_data_handle()); };
        return [=, values = memory(DNNL_ARG_SRC), gradient = memory(DNNL_ARG_DIFF_DST),
                room = memory(DNNL_ARG_SCRATCHPAD), made = memory(DNNL_ARG_DIFF_WEIGHTS),
                sums = memory(DNNL_ARG_DIFF_BIAS)] {
            products(at(values), at(gradient), at(room), at(made));
            if (sums) products.add_up(at(gradient), at(sums));
        };
    };
    return form;
}

}  // namespace timetrial::onednn
