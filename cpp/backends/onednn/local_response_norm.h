// local_response_norm: oneDNN's primitive where it has more than plain loops for both ways, otherwise our own
// over plain images. (It has none for the way back below AVX-512, and none for most betas and windows.)
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "layers/local_response_norm.h"
#include "onednn/layer.h"

namespace timetrial::onednn {

class LocalResponseNorm final : public LayerOfOne {
  public:
    explicit LocalResponseNorm(const Attributes& attributes) : own_(attributes) {
        const auto size = static_cast<float>(attributes.integer("size"));
        const auto alpha = static_cast<float>(attributes.number("alpha"));
        // oneDNN divides by the size.
        numbers_ = {
            attributes.integer("size"), attributes.integer("alpha_over_size") != 0 ? alpha : alpha * size,
            static_cast<float>(attributes.number("beta")), static_cast<float>(attributes.number("k"))};
    }

    void build_forward(Builder& builder, Node& input, Node& output) override {
        find_primitives(builder, input.value.desc());
        const Purpose purpose = output.purpose(TT_DIRECTION_FORWARD);
        if (!forward_) {
            const Shape& shape = output.shape;
            own_.prepare(image(shape, nullptr, nullptr), {}, omp_get_max_threads());
            const Tensor source =
                builder.in(builder.forward, purpose, input.value, plain(output.shape), "source");
            const Desc ours = plain(shape);
            hand_on(builder, output, ours);
            const Tensor& handed_on = output.value.made();
            const Tensor made = handed_on.desc == ours ? handed_on : builder.lend(ours);
            builder.facts.emplace_back(purpose.text(), own_words);
            append_own(builder.forward, purpose, shape,
                       [this, shape, from = source.unleased(), to = made.unleased()](int64_t n, int thread) {
                           own_.forward(image(shape, at(from, shape, n), nullptr),
                                        image(shape, at(to, shape, n), nullptr), {0, 1}, thread);
                       });
            if (handed_on.desc != made.desc)
                builder.append_reorder(builder.forward, purpose, made, handed_on, "destination");
            return;
        }
        const auto& description = *forward_;
        Form form{description.impl_info_str(),
                  {{DNNL_ARG_SRC, description.src_desc()}},
                  {{DNNL_ARG_DST, description.dst_desc()}},
                  description.scratchpad_desc(),
                  [description] { return dnnl::lrn_forward(description); }};
        output.value = Value(allocate(builder.engine(), description.dst_desc()));
        std::map<int, const Tensor*> writes{{DNNL_ARG_DST, &output.value.made()}};
        if (builder.learns() && description.workspace_desc().get_size() > 0) {
            workspace_ = Value(allocate(builder.engine(), description.workspace_desc()));
            form.writes.push_back({DNNL_ARG_WORKSPACE, workspace_.desc()});
            writes[DNNL_ARG_WORKSPACE] = &workspace_.made();
        }
        builder.facts.emplace_back(purpose.text(), form.text());
        builder.append(builder.forward, purpose, form, {{DNNL_ARG_SRC, &input.value}}, writes);
    }

    void build_backward(Builder& builder, Node& input, Node& output) override {
        if (!input.learns) return;
        const Purpose purpose = output.purpose(TT_DIRECTION_BACKWARD_DATA);
        if (!backward_) return build_own_backward(builder, purpose, input, output);
        const auto& description = *backward_;
        Form form{description.impl_info_str(),
                  {{DNNL_ARG_SRC, description.src_desc()}, {DNNL_ARG_DIFF_DST, description.diff_dst_desc()}},
                  {{DNNL_ARG_DIFF_SRC, description.diff_src_desc()}},
                  description.scratchpad_desc(),
                  [description] { return dnnl::lrn_backward(description); }};
        std::map<int, Value*> reads{{DNNL_ARG_SRC, &input.value}, {DNNL_ARG_DIFF_DST, &output.gradient}};
        if (workspace_.exists()) {
            form.reads.push_back({DNNL_ARG_WORKSPACE, workspace_.desc()});
            reads[DNNL_ARG_WORKSPACE] = &workspace_;
        }
        const Tensor gradient = builder.lend(input.value.desc());
        builder.facts.emplace_back(purpose.text(), form.text());
        builder.append(builder.backward, purpose, form, reads, {{DNNL_ARG_DIFF_SRC, &gradient}});
        hand_back(builder, purpose, input, gradient);
    }

  private:
    static constexpr const char* own_words = "timetrial's own loops: oneDNN has none that are fast";

    // Both, or none: they share a workspace.
    void find_primitives(const Builder& builder, const Desc& desc) {
        const auto is_slow = [](const auto& found) {
            return std::string(found.impl_info_str()).starts_with("ref");
        };
        try {
            auto forward =
                describe_lrn(builder.engine(), builder.attributes(), builder.purpose(), desc, numbers_);
            if (is_slow(forward)) return;
            if (builder.learns()) {
                auto backward =
                    describe_lrn_backward(builder.engine(), builder.attributes(), forward, desc, numbers_);
                if (is_slow(backward)) return;
                backward_ = backward;
            }
            forward_ = forward;
        } catch (const dnnl::error& error) {
            if (error.status != dnnl_unimplemented) throw;
        }
    }

    void build_own_backward(Builder& builder, const Purpose& purpose, Node& input, Node& output) {
        const Shape& shape = output.shape;
        const Tensor source = builder.in(builder.backward, purpose, input.value, plain(shape), "source");
        const Tensor gradient =
            builder.in(builder.backward, purpose, output.gradient, plain(shape), "gradient");
        Value made(builder.lend(plain(shape)));
        builder.facts.emplace_back(purpose.text(), own_words);
        append_own(builder.backward, purpose, shape,
                   [this, shape, source = source.unleased(), from = gradient.unleased(),
                    to = made.made().unleased()](int64_t n, int thread) {
                       own_.backward_data(image(shape, at(source, shape, n), at(to, shape, n)),
                                          image(shape, nullptr, at(from, shape, n)), {0, 1}, thread, false);
                   });
        hand_back(builder, purpose, input,
                  builder.in(builder.backward, purpose, made, input.value.desc(), "gradient"));
    }

    // work(image, thread) for each.
    template <class Work>
    static void append_own(std::vector<Operation>& program, const Purpose& purpose, const Shape& shape,
                           Work work) {
        program.push_back({purpose.node, purpose.direction, [images = shape[0], work] {
#pragma omp parallel for schedule(static)
                               for (int64_t n = 0; n < images; ++n) work(n, omp_get_thread_num());
                           }});
    }

    // One image is C x 1 x H x W, as the layers of the engine want it.
    static layers::Edge<float> image(const Shape& shape, float* value, float* gradient) {
        return {{1, shape[1], shape[2], shape[3], false}, value, gradient};
    }
    static float* at(const Tensor& tensor, const Shape& shape, int64_t n) {
        return tensor.data() + n * shape[1] * shape[2] * shape[3];
    }

    LrnNumbers numbers_{};
    layers::LocalResponseNorm<float> own_;
    std::optional<Described<dnnl::lrn_forward>> forward_;
    std::optional<Described<dnnl::lrn_backward>> backward_;
    Value workspace_;
};

}  // namespace timetrial::onednn
