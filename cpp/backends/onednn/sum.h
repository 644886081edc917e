// Sums: of the inputs of a layer, and of the gradients that several readers of a value hand back.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "onednn/builder.h"

namespace timetrial::onednn {

// Appends the sum of the parts, in the format of `sum`, which may be the memory of the first part; `fact` is
// the name under which the record has it.
inline void append_sum(Builder& builder, std::vector<Operation>& program, const Purpose& purpose,
                       const std::string& fact, const std::vector<Value*>& parts, const Tensor& sum) {
    const Desc& desc = sum.desc;
    const auto description =
        describe_sum(builder.engine(), builder.attributes(), std::vector<Desc>(parts.size(), desc), desc);
    Form form{description.impl_info_str(),
              {},
              {{DNNL_ARG_DST, desc}},
              description.scratchpad_desc(),
              [description] { return dnnl::sum(description); }};
    std::map<int, Value*> reads;
    for (std::size_t k = 0; k < parts.size(); ++k) {
        const int argument = DNNL_ARG_MULTIPLE_SRC + static_cast<int>(k);
        form.reads.push_back({argument, desc});
        reads[argument] = parts[k];
    }
    builder.facts.emplace_back(fact, form.text());
    builder.append(program, purpose, form, reads, {{DNNL_ARG_DST, &sum}});
}

}  // namespace timetrial::onednn
