// max_pool2d and avg_pool2d, in the format in which the images come.
#pragma once

#include <optional>

#include "onednn/layer.h"

namespace timetrial::onednn {

class Pooling final : public LayerOfOne {
  public:
    Pooling(dnnl::algorithm algorithm, const PoolWindow& window) : algorithm_(algorithm), window_(window) {}

    bool takes_maximum() const { return algorithm_ == dnnl::algorithm::pooling_max; }

    void build_forward(Builder& builder, Node& input, Node& output) override {
        forward_ = describe_pooling(builder.engine(), builder.attributes(), builder.purpose(), algorithm_,
                                    input.value.desc(), any(output.shape), window_);
        const Described<dnnl::pooling_forward>& description = *forward_;
        Form form{description.impl_info_str(),
                  {{DNNL_ARG_SRC, description.src_desc()}},
                  {{DNNL_ARG_DST, description.dst_desc()}},
                  description.scratchpad_desc(),
                  [description] { return dnnl::pooling_forward(description); }};
        output.value = Value(allocate(builder.engine(), description.dst_desc()));
        std::map<int, const Tensor*> writes{{DNNL_ARG_DST, &output.value.made()}};
        if (builder.learns() && takes_maximum()) {  // which of a window was the largest
            workspace_ = Value(allocate(builder.engine(), description.workspace_desc()));
            form.writes.push_back({DNNL_ARG_WORKSPACE, workspace_.desc()});
            writes[DNNL_ARG_WORKSPACE] = &workspace_.made();
        }
        const Purpose purpose = output.purpose(TT_DIRECTION_FORWARD);
        builder.facts.emplace_back(purpose.text(), form.text());
        builder.append(builder.forward, purpose, form, {{DNNL_ARG_SRC, &input.value}}, writes);
    }

    void build_backward(Builder& builder, Node& input, Node& output) override {
        if (!input.learns) return;
        const Desc& source = input.value.desc();
        const auto description = describe_pooling_backward(builder.engine(), builder.attributes(), *forward_,
                                                           algorithm_, source, output.value.desc(), window_);
        Form form{description.impl_info_str(),
                  {{DNNL_ARG_DIFF_DST, description.diff_dst_desc()}},
                  {{DNNL_ARG_DIFF_SRC, description.diff_src_desc()}},
                  description.scratchpad_desc(),
                  [description] { return dnnl::pooling_backward(description); }};
        std::map<int, Value*> reads{{DNNL_ARG_DIFF_DST, &output.gradient}};
        if (takes_maximum()) {
            form.reads.push_back({DNNL_ARG_WORKSPACE, workspace_.desc()});
            reads[DNNL_ARG_WORKSPACE] = &workspace_;
        }
        const Tensor gradient = allocate(builder.engine(), source);
        const Purpose purpose = output.purpose(TT_DIRECTION_BACKWARD_DATA);
        builder.facts.emplace_back(purpose.text(), form.text());
        builder.append(builder.backward, purpose, form, reads, {{DNNL_ARG_DIFF_SRC, &gradient}});
        hand_back(builder, purpose, input, gradient);
    }

  private:
    const dnnl::algorithm algorithm_;
    const PoolWindow window_;
    std::optional<Described<dnnl::pooling_forward>> forward_;
    Value workspace_;
};

}  // namespace timetrial::onednn
