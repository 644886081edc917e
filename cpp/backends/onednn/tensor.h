// Values in memory in a format that oneDNN chose, and the copies of them in other formats.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onednn/version.h"
#include "timetrial/backend.hpp"

namespace timetrial::onednn {

constexpr auto f32 = dnnl::memory::data_type::f32;

// The format of the outside: dense and row-major.
inline Desc plain(const dnnl::memory::dims& dims) {
    dnnl::memory::dims strides(dims.size(), 1);
    for (std::size_t i = dims.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * dims[i + 1];
    return {dims, f32, strides};
}

// The library chooses.
inline Desc any(const dnnl::memory::dims& dims) { return {dims, f32, dnnl::memory::format_tag::any}; }

// Of a format that has a name.
inline std::optional<dnnl::memory::format_tag> tag_of(const Desc& desc) {
    const dnnl::memory::dims dims = dims_of(desc);
    for (int number = dnnl_format_tag_any + 1; number < dnnl_format_tag_last; ++number) {
        const auto tag = static_cast<dnnl::memory::format_tag>(number);
        const Desc candidate(dims, f32, tag, true);
        if (is_valid(candidate) && candidate == desc) return tag;
    }
    return std::nullopt;
}

// "acdb" and the like: letters are dimensions, outermost first; capitals are split into blocks.
inline std::string format_of(const Desc& desc) {
    const auto tag = tag_of(desc);
    return tag ? dnnl_fmt_tag2str(static_cast<dnnl_format_tag_t>(*tag)) : "blocked";
}

// Whether more is stored than the extents hold.
inline bool is_padded(const Desc& desc) {
    std::size_t bytes = sizeof(float);
    for (const dnnl::memory::dim extent : dims_of(desc)) bytes *= static_cast<std::size_t>(extent);
    return desc.get_size() != bytes;
}

struct Tensor {
    Desc desc;
    dnnl::memory memory;
    bool is_shared = false;                 // others read this memory too: nobody may write over it
    std::shared_ptr<void> lease = nullptr;  // of memory that Builder lends to others when nobody holds this

    float* data() const { return static_cast<float*>(memory.get_data_handle()); }
    // With the padding of blocked formats, which is 0 and stays so.
    std::int64_t stored_elements() const {
        return static_cast<std::int64_t>(desc.get_size() / sizeof(float));
    }
    // For an operation, which holds no lease: whoever asks for the memory next comes behind it.
    Tensor unleased() const {
        Tensor tensor = *this;
        tensor.lease = nullptr;
        return tensor;
    }
};

inline Tensor allocate(const dnnl::engine& engine, const Desc& desc) {
    Tensor tensor{desc, dnnl::memory(desc, engine)};
    std::memset(tensor.memory.get_data_handle(), 0, desc.get_size());
    return tensor;
}

// The same memory under another description: another shape of the same values in the same order.
inline Tensor alias(const dnnl::engine& engine, const Tensor& tensor, const Desc& desc) {
    return {desc, dnnl::memory(desc, engine, tensor.memory.get_data_handle()), tensor.is_shared,
            tensor.lease};
}

// What a layer hands on: in the format in which it was made, and in others that later layers asked for.
class Value {
  public:
    Value() = default;
    explicit Value(Tensor made) { forms_.push_back(std::move(made)); }

    bool exists() const { return !forms_.empty(); }
    const Tensor& made() const { return forms_.front(); }
    const Desc& desc() const { return forms_.front().desc; }
    std::vector<Desc> descs() const {
        std::vector<Desc> all;
        for (const Tensor& form : forms_) all.push_back(form.desc);
        return all;
    }
    const Tensor* find(const Desc& desc) const {
        for (const Tensor& form : forms_)
            if (form.desc == desc) return &form;
        return nullptr;
    }
    const Tensor& add(Tensor form) { return forms_.emplace_back(std::move(form)); }

  private:
    std::deque<Tensor> forms_;  // references stay good while it grows
};

// A value whose copies in other formats are needed no longer than this one: Builder lends them memory.
inline Value with_lent_copies(Tensor made) {
    made.lease = std::make_shared<char>();
    return Value(std::move(made));
}

// A parameter lives in the format that its layer's forward primitive reads, and so do gradient and states.
struct Parameter {
    std::string name;
    Shape shape;  // of the outside
    const float* initial = nullptr;
    Desc outside;  // plain; the extents that oneDNN sees (OC x C x H x W for a dense layer over images)
    Value value;
    Tensor gradient;
    // Null, or where the gradient lies, with others, until the update behind its layer's way back.
    void* passing = nullptr;
    Tensor own{};          // instead, for a step whose gradients are kept
    bool is_tied = false;  // a later layer reads it too, and leaves the first part of the gradient there
    std::vector<std::pair<std::string, Tensor>> states;  // of the optimizer, with their names

    // A range of the gradient in memory, where each is made and used before the next: see in_parts.h.
    struct Part {
        Tensor gradient;
        std::int64_t begin;  // of the stored elements
    };
    std::vector<Part> parts;  // the first is the largest; empty: the gradient is made in one piece

    const dnnl::memory& passes_in() const {
        return parts.empty() ? gradient.memory : parts[0].gradient.memory;
    }
    void pass_at(void* memory) {
        passing = memory;
        gradient.memory.set_data_handle(memory);
        for (const Part& part : parts) part.gradient.memory.set_data_handle(memory);
    }
    void keep_at(float* memory) {
        gradient.memory.set_data_handle(memory);
        for (const Part& part : parts) part.gradient.memory.set_data_handle(memory + part.begin);
    }
};

}  // namespace timetrial::onednn
