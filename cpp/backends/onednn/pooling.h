// max_pool2d, avg_pool2d and global_avg_pool2d, in the format in which the images come.
#pragma once

#include <optional>

#include "onednn/layer.h"

namespace timetrial::onednn {

class Pooling : public LayerOfOne {
  public:
    Pooling(dnnl::algorithm algorithm, const PoolWindow& window) : algorithm_(algorithm), window_(window) {}

    bool takes_maximum() const { return algorithm_ == dnnl::algorithm::pooling_max; }

    void build_forward(Builder& builder, Node& input, Node& output) override {
        window_ = window_over(input);
        dnnl::memory::dims extents = output.shape;
        extents.resize(4, 1);  // a global one's output is flat to the outside
        forward_ = describe_pooling(builder.engine(), builder.attributes(), builder.purpose(), algorithm_,
                                    input.value.desc(), any(extents), window_);
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
        const Tensor gradient = builder.lend(source);
        const Purpose purpose = output.purpose(TT_DIRECTION_BACKWARD_DATA);
        builder.facts.emplace_back(purpose.text(), form.text());
        builder.append(builder.backward, purpose, form, reads, {{DNNL_ARG_DIFF_SRC, &gradient}});
        hand_back(builder, purpose, input, gradient);
    }

  protected:
    virtual PoolWindow window_over(const Node&) const { return window_; }

  private:
    const dnnl::algorithm algorithm_;
    PoolWindow window_;
    std::optional<Described<dnnl::pooling_forward>> forward_;
    Value workspace_;
};

// The mean of whole images: the window is as large. What it hands on is flat and plain: the products of
// oneDNN 3.2 over images of one pixel and few channels have written behind their memory (brgemm_bwd_w).
class GlobalPooling final : public Pooling {
  public:
    GlobalPooling() : Pooling(dnnl::algorithm::pooling_avg_exclude_padding, {}) {}

    void build_forward(Builder& builder, Node& input, Node& output) override {
        Pooling::build_forward(builder, input, output);
        images_ = output.value;
        const Desc pixels = plain(dims_of(images_.desc()));
        const Tensor& made =
            builder.in(builder.forward, output.purpose(TT_DIRECTION_FORWARD), images_, pixels, "destination");
        output.value = Value(alias(builder.engine(), made, plain(output.shape)));
    }

    void build_backward(Builder& builder, Node& input, Node& output) override {
        if (!input.learns) return;
        const Tensor& flat = builder.in(builder.backward, output.purpose(TT_DIRECTION_BACKWARD_DATA),
                                        output.gradient, plain(output.shape), "gradient");
        const Value outside = output.value;
        output.gradient = Value(alias(builder.engine(), flat, plain(dims_of(images_.desc()))));
        output.value = images_;
        Pooling::build_backward(builder, input, output);
        output.value = outside;
    }

  protected:
    PoolWindow window_over(const Node& input) const override {
        const dnnl::memory::dims whole{input.shape[2], input.shape[3]}, none{0, 0};
        return {whole, whole, none, none};
    }

  private:
    Value images_;
};

}  // namespace timetrial::onednn
