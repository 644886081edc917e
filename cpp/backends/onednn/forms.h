// The forms in which one operation is to be had: which implementation, reading and writing which formats.
#pragma once

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "onednn/operation.h"
#include "onednn/tensor.h"

namespace timetrial::onednn {

struct Port {
    int argument;  // DNNL_ARG_*
    Desc desc;
    bool operator==(const Port& other) const { return argument == other.argument && desc == other.desc; }
};

struct Form {
    std::string implementation;
    std::vector<Port> reads, writes;
    Desc scratchpad;
    std::function<dnnl::primitive()> make;  // compiles the kernel
    // Instead, for what is no primitive of oneDNN's: what runs it with these arguments.
    std::function<std::function<void()>(const Call::Arguments&)> own = nullptr;

    std::function<void()> call(const dnnl::stream& stream, Call::Arguments arguments) const {
        if (own) return own(arguments);
        return Call(stream, make(), std::move(arguments));
    }

    bool is_product() const { return implementation.find("gemm:jit") != std::string::npos; }

    const Desc& desc(int argument) const {
        for (const std::vector<Port>* ports : {&reads, &writes})
            for (const Port& port : *ports)
                if (port.argument == argument) return port.desc;
        throw std::logic_error("a primitive has no argument " + std::to_string(argument));
    }

    // "jit:avx512_core abcd:Acdb16a -> acdb"; vectors have only one format.
    std::string text() const {
        std::string words = implementation;
        for (const std::vector<Port>* ports : {&reads, &writes}) {
            words += ports == &reads ? " " : " -> ";
            bool first = true;
            for (const Port& port : *ports) {
                if (port.argument == DNNL_ARG_WORKSPACE || dims_of(port.desc).size() < 2) continue;
                words += (first ? "" : ":") + format_of(port.desc);
                first = false;
            }
        }
        return words;
    }
};

// 0: the name tells no instruction set.
inline int isa_rank(const std::string& implementation) {
    constexpr const char* isas[] = {"sse41", "avx", "avx2", "avx512"};
    int rank = 0;
    for (int i = 0; i < 4; ++i)
        if (implementation.find(isas[i]) != std::string::npos) rank = i + 1;
    return rank;
}

// Collects the forms of one operation.
class Forms {
  public:
    // Without `products`, a convolution as a product of unfolded images is left out: it is worth a trial only
    // where the channels fill no vector.
    explicit Forms(bool products) : products_(products) {}

    // All implementations of what `describe` describes, if oneDNN has any. `ports` gives the reads and
    // writes. A forward form given as hint must outlive this call: next_impl() looks at it.
    template <class Primitive, class Describe, class Ports>
    void add(const Describe& describe, const Ports& ports) {
        try {
            Described<Primitive> found = describe();
            do {
                auto [reads, writes] = ports(found);
                // next_impl() changes what all handles refer to; made from a C handle, this one is a copy.
                const typename Primitive::primitive_desc copy(found.get());
                add({found.impl_info_str(), std::move(reads), std::move(writes), found.scratchpad_desc(),
                     [copy] { return Primitive(copy); }});
            } while (found.next_impl());
        } catch (const dnnl::error& error) {
            if (error.status != dnnl_unimplemented) throw;
        }
    }

    // Left out: what is there already, and what has a format that nobody else can read.
    void add(Form form) {
        // Parameters live in the format that the forward form reads, and are updated there number by number.
        const auto is_readable = [](const Port& port) {
            return port.argument == DNNL_ARG_WORKSPACE || is_open(port.desc);
        };
        if (!std::ranges::all_of(form.reads, is_readable) || !std::ranges::all_of(form.writes, is_readable))
            return;
        const auto same = [&](const Form& other) {
            return form.implementation == other.implementation && form.reads == other.reads &&
                   form.writes == other.writes;
        };
        if (std::none_of(all_.begin(), all_.end(), same)) all_.push_back(std::move(form));
    }

    // Whether there is more than the plain loops with which oneDNN checks itself, a thousand times slower.
    bool has_fast() const {
        return std::any_of(all_.begin(), all_.end(), [](const Form& form) { return is_fast(form); });
    }

    // In the order in which oneDNN recommends them. Left out where there are better ones: the plain loops,
    // and kernels for lesser instruction sets.
    std::vector<Form> worth_trying() const {
        if (!has_fast()) return {all_.begin(), all_.begin() + (all_.empty() ? 0 : 1)};
        int best = 0;
        bool only_products = true;
        for (const Form& form : all_) {
            best = std::max(best, isa_rank(form.implementation));
            only_products = only_products && (form.own || form.is_product() || !is_fast(form));
        }
        std::vector<Form> kept;
        for (const Form& form : all_) {
            const int rank = isa_rank(form.implementation);
            if (!is_fast(form) || (form.is_product() && !products_ && !only_products)) continue;
            if (rank == 0 || rank == best) kept.push_back(form);
        }
        return kept;
    }

  private:
    static bool is_fast(const Form& form) { return !form.implementation.starts_with("ref"); }

    bool products_;
    std::vector<Form> all_;
};

}  // namespace timetrial::onednn
