// batch_norm, by oneDNN's primitive over images: flat values are images of one pixel, channels last. Mean and
// biased variance of the batch are computed here, more exactly than by the primitive, and the running ones
// moved. A relu behind it is applied by the same primitive, which keeps in a workspace what the way back
// needs of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "onednn/join.h"
#include "onednn/statistics.h"

namespace timetrial::onednn {

class BatchNorm final : public Join {
  public:
    explicit BatchNorm(const Attributes& attributes)
        : epsilon_(static_cast<float>(attributes.number("epsilon"))),
          momentum_(attributes.number("momentum")) {}

    void build_forward(Builder& builder, const Inputs& inputs, Node& output) override {
        const Purpose purpose = output.purpose(TT_DIRECTION_FORWARD);
        source_ = as_images(builder, sources(builder, inputs, purpose).front()->made());
        const Desc& desc = source_.desc();
        const Desc channels = plain({output.shape[1]});
        make_parameters(builder, channels);
        // Where a primitive of another kind would be taken for the relu's sake, the relu is one of its own.
        const auto with_relu = flags | fused;
        if (output.fused &&
            !(is_fast(builder, desc, with_relu) && is_fast(builder, desc, with_relu | running)))
            output.fused.reset();
        if (output.fused) output.masks_gradient = true;
        const Tensor made = output.is_recomputed ? builder.lend(desc) : allocate(builder.engine(), desc);
        if (builder.learns()) {
            builder.runs = Runs::kTraining;
            build_training(builder, purpose, output.fused ? fused | flags : flags, made);
            builder.runs = Runs::kInference;
        }
        const Form form =
            append_known(builder, builder.forward, output, states[0]->value, states[1]->value, made);
        builder.facts.emplace_back(builder.learns() ? purpose.text() + " in inference" : purpose.text(),
                                   form.text());
        builder.runs = Runs::kAlways;
        output.value =
            Value(output.shape.size() == 2 ? alias(builder.engine(), made, plain(output.shape)) : made);
    }

    bool needs_its_output() const override { return false; }

    void build_again(Builder& builder, const Inputs&, Node& output) override {
        const Tensor made = builder.lend(source_.desc());
        append_known(builder, builder.backward, output, mean_, variance_, made);
        output.value = Value(made);
    }

    void build_backward(Builder& builder, const Inputs& inputs, Node& output) override {
        const Purpose purpose = output.purpose(TT_DIRECTION_BACKWARD);
        const Desc& desc = source_.desc();
        Value gradient = as_images(
            builder, builder.in(builder.backward, purpose, output.gradient, output.value.desc(), "gradient"));
        const auto description = describe_norm_backward(builder.engine(), builder.attributes(), *hint_, desc,
                                                        epsilon_, output.fused ? fused | flags : flags);
        Form form{description.impl_info_str(),
                  {{DNNL_ARG_SRC, desc},
                   {DNNL_ARG_DIFF_DST, desc},
                   {DNNL_ARG_MEAN, mean_.desc()},
                   {DNNL_ARG_VARIANCE, variance_.desc()},
                   {DNNL_ARG_SCALE, parameters[0]->value.desc()}},
                  {{DNNL_ARG_DIFF_SRC, desc},
                   {DNNL_ARG_DIFF_SCALE, parameters[0]->gradient.desc},
                   {DNNL_ARG_DIFF_SHIFT, parameters[1]->gradient.desc}},
                  description.scratchpad_desc(),
                  [description] { return dnnl::batch_normalization_backward(description); }};
        std::map<int, Value*> reads{{DNNL_ARG_SRC, &source_},
                                    {DNNL_ARG_DIFF_DST, &gradient},
                                    {DNNL_ARG_MEAN, &mean_},
                                    {DNNL_ARG_VARIANCE, &variance_},
                                    {DNNL_ARG_SCALE, &parameters[0]->value}};
        if (workspace_.exists()) {
            form.reads.push_back({DNNL_ARG_WORKSPACE, workspace_.desc()});
            reads[DNNL_ARG_WORKSPACE] = &workspace_;
        }
        const Tensor made = builder.lend(desc);
        builder.facts.emplace_back(purpose.text(), form.text());
        builder.append(builder.backward, purpose, form, reads,
                       {{DNNL_ARG_DIFF_SRC, &made},
                        {DNNL_ARG_DIFF_SCALE, &parameters[0]->gradient},
                        {DNNL_ARG_DIFF_SHIFT, &parameters[1]->gradient}});
        if (!inputs[0]->learns) return;
        Value part(output.shape.size() == 2 ? alias(builder.engine(), made, plain(output.shape)) : made);
        hand_back(builder, purpose, *inputs[0], part_of(builder, purpose, part, *inputs[0]));
    }

  private:
    inline static const auto flags =
        dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
    static constexpr auto fused = dnnl::normalization_flags::fuse_norm_relu;
    static constexpr auto running = dnnl::normalization_flags::use_global_stats;

    static Value as_images(const Builder& builder, const Tensor& tensor) {
        const dnnl::memory::dims dims = dims_of(tensor.desc);
        if (dims.size() == 4) return Value(tensor);
        const Desc images({dims[0], dims[1], 1, 1}, f32, dnnl::memory::format_tag::acdb);
        return Value(alias(builder.engine(), tensor, images));
    }

    void make_parameters(Builder& builder, const Desc& channels) {
        for (const auto* group : {&parameters, &states}) {
            for (const auto& one : *group) {
                one->outside = channels;
                one->value = Value(allocate(builder.engine(), channels));
                if (group == &states || !builder.learns()) continue;
                one->gradient = allocate(builder.engine(), channels);
                for (auto& [name, state] : one->states) state = allocate(builder.engine(), channels);
            }
        }
        mean_ = Value(allocate(builder.engine(), channels));
        variance_ = Value(allocate(builder.engine(), channels));
    }

    bool is_fast(const Builder& builder, const Desc& desc, dnnl::normalization_flags asked) const {
        try {
            const auto found = describe_norm(builder.engine(), builder.attributes(), builder.purpose(), desc,
                                             epsilon_, builder.learns() ? asked : asked | running);
            return !std::string(found.impl_info_str()).starts_with("ref");
        } catch (const dnnl::error& error) {
            if (error.status != dnnl_unimplemented) throw;
            return false;
        }
    }

    void build_training(Builder& builder, const Purpose& purpose, dnnl::normalization_flags asked,
                        const Tensor& made) {
        hint_ = describe_norm(builder.engine(), builder.attributes(), dnnl::prop_kind::forward_training,
                              source_.desc(), epsilon_, asked);
        auto description =
            describe_norm(builder.engine(), builder.attributes(), dnnl::prop_kind::forward_training,
                          source_.desc(), epsilon_, asked | running);
        std::optional<Lanes> lanes = Lanes::of(source_.desc());
        if (description.workspace_desc() != hint_->workspace_desc()) lanes.reset();  // of another primitive
        if (lanes)
            builder.forward.push_back({purpose.node, purpose.direction,
                                       Statistics(*lanes, source_.made(), mean_.made(), variance_.made()),
                                       builder.runs});
        else
            description = *hint_;
        Form form{description.impl_info_str(),
                  {{DNNL_ARG_SRC, source_.desc()},
                   {DNNL_ARG_SCALE, parameters[0]->value.desc()},
                   {DNNL_ARG_SHIFT, parameters[1]->value.desc()}},
                  {{DNNL_ARG_DST, made.desc}},
                  description.scratchpad_desc(),
                  [description] { return dnnl::batch_normalization_forward(description); }};
        std::map<int, Value*> reads{{DNNL_ARG_SRC, &source_},
                                    {DNNL_ARG_SCALE, &parameters[0]->value},
                                    {DNNL_ARG_SHIFT, &parameters[1]->value}};
        std::map<int, const Tensor*> writes{{DNNL_ARG_DST, &made}};
        for (const auto& [argument, value] :
             {std::pair{DNNL_ARG_MEAN, &mean_}, std::pair{DNNL_ARG_VARIANCE, &variance_}}) {
            (lanes ? form.reads : form.writes).push_back({argument, value->desc()});
            if (lanes)
                reads[argument] = value;
            else
                writes[argument] = &value->made();
        }
        if (description.workspace_desc().get_size() > 0) {
            workspace_ = Value(allocate(builder.engine(), description.workspace_desc()));
            form.writes.push_back({DNNL_ARG_WORKSPACE, workspace_.desc()});
            writes[DNNL_ARG_WORKSPACE] = &workspace_.made();
        }
        builder.facts.emplace_back(purpose.text(), form.text());
        builder.append(builder.forward, purpose, form, reads, writes);
        const Tensor now[] = {mean_.made(), variance_.made()};
        for (std::size_t i = 0; i < 2; ++i)
            builder.forward.push_back({purpose.node, purpose.direction,
                                       [momentum = momentum_, to = states[i]->value.made(), from = now[i]] {
                                           for (std::int64_t c = 0; c < to.stored_elements(); ++c)
                                               to.data()[c] = static_cast<float>(
                                                   (1 - momentum) * to.data()[c] + momentum * from.data()[c]);
                                       },
                                       builder.runs});
    }

    // By a mean and a variance that are known.
    Form append_known(Builder& builder, std::vector<Operation>& program, const Node& output, Value& mean,
                      Value& variance, const Tensor& made) {
        const auto description =
            describe_norm(builder.engine(), builder.attributes(), dnnl::prop_kind::forward_inference,
                          source_.desc(), epsilon_, (output.fused ? fused | flags : flags) | running);
        const Form form{description.impl_info_str(),
                        {{DNNL_ARG_SRC, source_.desc()},
                         {DNNL_ARG_SCALE, parameters[0]->value.desc()},
                         {DNNL_ARG_SHIFT, parameters[1]->value.desc()},
                         {DNNL_ARG_MEAN, mean.desc()},
                         {DNNL_ARG_VARIANCE, variance.desc()}},
                        {{DNNL_ARG_DST, made.desc}},
                        description.scratchpad_desc(),
                        [description] { return dnnl::batch_normalization_forward(description); }};
        builder.append(program, output.purpose(TT_DIRECTION_FORWARD), form,
                       {{DNNL_ARG_SRC, &source_},
                        {DNNL_ARG_SCALE, &parameters[0]->value},
                        {DNNL_ARG_SHIFT, &parameters[1]->value},
                        {DNNL_ARG_MEAN, &mean},
                        {DNNL_ARG_VARIANCE, &variance}},
                       {{DNNL_ARG_DST, &made}});
        return form;
    }

    const float epsilon_;
    const double momentum_;
    Value source_, mean_, variance_, workspace_;
    std::optional<Described<dnnl::batch_normalization_forward>> hint_;
};

}  // namespace timetrial::onednn
