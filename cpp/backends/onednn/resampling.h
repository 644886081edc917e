// upsample2d, by oneDNN's resampling to the nearest: with a whole scale, each value is the nearest one of its
// own copies, and no other.
#pragma once

#include <optional>

#include "onednn/layer.h"

namespace timetrial::onednn {

class Upsample final : public LayerOfOne {
  public:
    void build_forward(Builder& builder, Node& input, Node& output) override {
        forward_ =
            describe<dnnl::resampling_forward>(builder.engine(), builder.attributes(), builder.purpose(),
                                               nearest, input.value.desc(), any(output.shape));
        const Described<dnnl::resampling_forward>& description = *forward_;
        const Form form{description.impl_info_str(),
                        {{DNNL_ARG_SRC, description.src_desc()}},
                        {{DNNL_ARG_DST, description.dst_desc()}},
                        description.scratchpad_desc(),
                        [description] { return dnnl::resampling_forward(description); }};
        output.value = Value(allocate(builder.engine(), description.dst_desc()));
        const Purpose purpose = output.purpose(TT_DIRECTION_FORWARD);
        builder.facts.emplace_back(purpose.text(), form.text());
        builder.append(builder.forward, purpose, form, {{DNNL_ARG_SRC, &input.value}},
                       {{DNNL_ARG_DST, &output.value.made()}});
    }

    void build_backward(Builder& builder, Node& input, Node& output) override {
        if (!input.learns) return;
        const auto description =
            describe_backward<dnnl::resampling_backward>(builder.engine(), builder.attributes(), *forward_,
                                                         nearest, input.value.desc(), output.value.desc());
        const Form form{description.impl_info_str(),
                        {{DNNL_ARG_DIFF_DST, description.diff_dst_desc()}},
                        {{DNNL_ARG_DIFF_SRC, description.diff_src_desc()}},
                        description.scratchpad_desc(),
                        [description] { return dnnl::resampling_backward(description); }};
        const Tensor gradient = builder.lend(input.value.desc());
        const Purpose purpose = output.purpose(TT_DIRECTION_BACKWARD_DATA);
        builder.facts.emplace_back(purpose.text(), form.text());
        builder.append(builder.backward, purpose, form, {{DNNL_ARG_DIFF_DST, &output.gradient}},
                       {{DNNL_ARG_DIFF_SRC, &gradient}});
        hand_back(builder, purpose, input, gradient);
    }

  private:
    static constexpr auto nearest = dnnl::algorithm::resampling_nearest;
    std::optional<Described<dnnl::resampling_forward>> forward_;
};

}  // namespace timetrial::onednn
