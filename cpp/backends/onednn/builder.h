// What layers build with: the programs that a step runs, and the reorders between formats.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "layers/rules.h"
#include "onednn/algorithm.h"
#include "onednn/decisions.h"
#include "onednn/step_tally.h"
#include "timetrial/backend.hpp"
#include "timetrial/lengths.hpp"

namespace timetrial::onednn {

// Format of images between layers. Neither is best everywhere: blocks of channels are padded where channels
// fill no block (20 -> 32), and channels last costs the weight gradient of layers with few channels.
enum class Layout { kChannelsLast, kBlocked };

inline std::string word_of(Layout layout) { return layout == Layout::kBlocked ? "blocked" : "channels last"; }
inline Layout read_layout(const std::string& word) {
    return word == word_of(Layout::kBlocked) ? Layout::kBlocked : Layout::kChannelsLast;
}

inline std::string argument_name(int argument) {
    switch (argument) {
        case DNNL_ARG_SRC:
            return "source";
        case DNNL_ARG_WEIGHTS:
            return "weights";
        case DNNL_ARG_BIAS:
            return "bias";
        case DNNL_ARG_DST:
            return "destination";
        case DNNL_ARG_DIFF_SRC:
            return "source gradient";
        case DNNL_ARG_DIFF_WEIGHTS:
            return "weight gradient";
        case DNNL_ARG_DIFF_BIAS:
            return "bias gradient";
        case DNNL_ARG_DIFF_DST:
            return "destination gradient";
    }
    if (argument >= DNNL_ARG_MULTIPLE_SRC)
        return "source " + std::to_string(argument - DNNL_ARG_MULTIPLE_SRC + 1);
    return "argument " + std::to_string(argument);
}

// What operations use one after the other; the programs need it as long as they run.
struct SharedMemory {
    dnnl::memory scratchpad;  // of all primitives
    dnnl::memory passing;     // of all gradients that pass
    std::vector<Tensor> lent;
};

class Builder {
  public:
    Builder(dnnl::engine engine, dnnl::stream stream, Layout layout, Algorithm convolution, Way way,
            bool learns, Decisions& decisions)
        : engine_(engine),
          stream_(stream),
          layout_(layout),
          convolution_(convolution),
          way_(way),
          learns_(learns),
          trial_(engine, stream),
          decisions_(decisions) {}

    const dnnl::engine& engine() const { return engine_; }
    const dnnl::stream& stream() const { return stream_; }
    bool learns() const { return learns_; }
    Algorithm convolution() const { return convolution_; }
    Way way() const { return way_; }
    dnnl::prop_kind purpose() const {
        return learns_ ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    }

    // The scratchpad is ours, so that all primitives share one.
    dnnl::primitive_attr attributes() const {
        dnnl::primitive_attr attributes;
        attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
        attributes.set_fpmath_mode(dnnl::get_default_fpmath_mode());
        return attributes;
    }

    // The format in which a layer should hand on what has these extents.
    Desc handed_on(const dnnl::memory::dims& dims) const {
        if (dims.size() < 4) return plain(dims);
        return layout_ == Layout::kChannelsLast ? Desc(dims, f32, dnnl::memory::format_tag::acdb) : any(dims);
    }

    // The format in which images that a layer makes in this one are handed to pooling: plain ones, which the
    // library would pool by slow loops, in that of the layout. (It makes such of 3 channels with a kernel of
    // 11x11, and the loops of local_response_norm do.) Fewer channels than fill a vector may stay so, and
    // images of one pixel, which lie the same either way.
    Desc handed_to_pooling(const Desc& made) const {
        const dnnl::memory::dims images = dims_of(made);
        if (images.size() < 4 || images[1] < 8 || images[2] * images[3] == 1) return made;
        if (made != plain(images)) return made;
        using Tag = dnnl::memory::format_tag;
        const bool is_wide = may_use(dnnl_cpu_isa_avx512_core);
        const bool fills_blocks = images[1] % (is_wide ? 16 : 8) == 0;
        if (layout_ == Layout::kChannelsLast || !fills_blocks) return {images, f32, Tag::acdb};
        return {images, f32, is_wide ? Tag::aBcd16b : Tag::aBcd8b};
    }

    Form choose(const Purpose& purpose, const Forms& forms, const Homes& homes) {
        std::vector<Form> all = forms.worth_trying();
        if (convolution_ == Algorithm::kWinograd) prefer_winograd(all);
        if (all.empty()) throw Unsupported("oneDNN has no implementation for " + purpose.text());
        const Choice& result = decisions_.of(purpose, all, homes, [&] { return trial_.fastest(all, homes); });
        const Form& form = all[result.chosen];
        facts.emplace_back(purpose.text(), form.text());
        if (!result.report.empty()) facts.emplace_back(purpose.text() + " trial", result.report);
        return form;
    }

    // Appends the primitive, and the reorders between the formats at hand and those that it wants.
    void append(std::vector<Operation>& program, const Purpose& purpose, const Form& form,
                const std::map<int, Value*>& reads, const std::map<int, const Tensor*>& writes) {
        Call::Arguments arguments;
        std::vector<Operation> after;
        std::vector<Tensor> held;  // until the last reorder is appended
        for (const Port& port : form.reads) {
            const std::string what = argument_name(port.argument);
            arguments.push_back(
                {port.argument, in(program, purpose, *reads.at(port.argument), port.desc, what).memory});
        }
        for (const Port& port : form.writes) {
            const Tensor& target = *writes.at(port.argument);
            if (port.desc == target.desc) {
                arguments.push_back({port.argument, target.memory});
                continue;
            }
            const Tensor& own = held.emplace_back(lend(port.desc));
            arguments.push_back({port.argument, own.memory});
            append_reorder(after, purpose, own, target, argument_name(port.argument));
        }
        scratchpads_.push_back(dnnl::memory(form.scratchpad, engine_, DNNL_MEMORY_NONE));
        arguments.push_back({DNNL_ARG_SCRATCHPAD, scratchpads_.back()});
        program.push_back({purpose.node, purpose.direction, form.call(stream_, std::move(arguments)), runs});
        program.insert(program.end(), after.begin(), after.end());
    }

    // Memory for what nobody reads any more when a step's operations have gone past it: gradients of values,
    // values that are recomputed, and results on their way to another format. Operations run in the order in
    // which they are appended, so whoever asks when no tensor holds it any more may have it: what fits most
    // tightly. Formats that pad channels rely on zeros there, so such memory stays with its own format.
    Tensor lend(const Desc& desc) {
        const auto fits = [&](const Tensor& one) {
            if (one.desc == desc) return true;
            return !is_padded(one.desc) && !is_padded(desc) && one.desc.get_size() >= desc.get_size();
        };
        const Tensor* tightest = nullptr;
        for (const Tensor& one : lent_)
            if (one.lease.use_count() == 1 && fits(one) &&
                (!tightest || one.desc.get_size() < tightest->desc.get_size()))
                tightest = &one;
        if (tightest) return alias(engine_, *tightest, desc);
        Tensor made = allocate(engine_, desc);
        made.lease = std::make_shared<char>();
        return lent_.emplace_back(std::move(made));
    }

    // The value in the format asked; a copy is made once a step.
    const Tensor& in(std::vector<Operation>& program, const Purpose& purpose, Value& value, const Desc& desc,
                     const std::string& what) {
        if (const Tensor* found = value.find(desc)) return *found;
        const Tensor& copy = value.add(value.made().lease ? lend(desc) : allocate(engine_, desc));
        append_reorder(program, purpose, value.made(), copy, what);
        return copy;
    }

    void append_reorder(std::vector<Operation>& program, const Purpose& purpose, const Tensor& from,
                        const Tensor& to, const std::string& what) {
        program.push_back(
            {purpose.node, TT_DIRECTION_REORDER, reorder_call(engine_, stream_, from, to), runs});
        ++reorders_;
        facts.emplace_back(
            "reorder " + purpose.name + " " + what + " " + tt_direction_word(purpose.direction),
            format_of(from.desc) + " -> " + format_of(to.desc));
    }

    // Memory for a gradient from its layer's way back until the update that is appended next. One is alive at
    // a time, so that all share a piece; with a format that pads, those of that format.
    void pass(Parameter& parameter) {
        if (!parameter.parts.empty() || !is_padded(parameter.gradient.desc))
            return passing_.push_back(&parameter);
        const Tensor lent = lend(parameter.gradient.desc);
        parameter.gradient.lease = lent.lease;
        parameter.pass_at(lent.data());
    }

    // When all is appended.
    SharedMemory finish() {
        std::vector<dnnl::memory> gradients;
        for (const Parameter* parameter : passing_) gradients.push_back(parameter->passes_in());
        SharedMemory shared{as_large_as(scratchpads_), as_large_as(gradients), std::move(lent_)};
        for (dnnl::memory& part : scratchpads_) part.set_data_handle(shared.scratchpad.get_data_handle());
        for (Parameter* parameter : passing_) parameter->pass_at(shared.passing.get_data_handle());
        facts.emplace_back("reorders per step", std::to_string(reorders_));
        return shared;
    }

    // Between two tensors of one format.
    void copy(std::vector<Operation>& program, const Purpose& purpose, const Tensor& from, const Tensor& to) {
        program.push_back({purpose.node, purpose.direction, reorder_call(engine_, stream_, from, to), runs});
    }

    std::vector<Operation> forward, backward;
    Runs runs = Runs::kAlways;  // of what is appended
    Facts facts;
    StepTally tally;
    // Of the update under way, for updates that a layer appends itself.
    std::shared_ptr<layers::UpdateNumbers<float>> numbers;

  private:
    // A piece of memory for any one of these.
    dnnl::memory as_large_as(const std::vector<dnnl::memory>& parts) const {
        std::size_t bytes = 1;
        for (const dnnl::memory& part : parts) bytes = std::max(bytes, part.get_desc().get_size());
        const auto floats = static_cast<std::int64_t>((bytes + sizeof(float) - 1) / sizeof(float));
        return {plain({floats}), engine_};
    }

    // No others, if there are such: it was asked for.
    static void prefer_winograd(std::vector<Form>& forms) {
        const auto is_other = [](const Form& form) { return !is_winograd(form.implementation); };
        if (!std::ranges::all_of(forms, is_other)) std::erase_if(forms, is_other);
    }

    dnnl::engine engine_;
    dnnl::stream stream_;
    Layout layout_;
    Algorithm convolution_;
    Way way_;
    bool learns_;
    Trial trial_;
    Decisions& decisions_;
    int reorders_ = 0;
    std::vector<dnnl::memory> scratchpads_;
    std::vector<Parameter*> passing_;
    std::vector<Tensor> lent_;  // ever, with the one lease that is ours
};

}  // namespace timetrial::onednn
