// onednn.max_cpu_isa: oneDNN takes the limit once per process, before anything else, and ignores what it does
// not know. We don't. onednn.math_mode: what primitives get that are made from then on; `strict` unless
// asked, whatever the environment says.
#pragma once

#include <string>
#include <string_view>

#include "onednn/version.h"
#include "timetrial/backend.hpp"

namespace timetrial::onednn {

inline std::string effective_isa() {
    const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
    for (const auto& [name, value] : isa_names)
        if (value == isa) return std::string(name);
    return "default";
}

inline void limit_isa(std::string_view word) {
    const std::string asked = "onednn.max_cpu_isa = '" + std::string(word) + "': ";
    std::string known;
    for (const auto& [name, isa] : isa_names) {
        known += (known.empty() ? "" : ", ") + std::string(name);
        if (name != word) continue;
        const bool was_first = dnnl_set_max_cpu_isa(isa) == dnnl_success;
        const std::string effective = effective_isa();
        if (effective == word) return;
        throw Unsupported(asked +
                          (was_first ? "this CPU lacks it; without a limit oneDNN uses "
                                     : "oneDNN takes the limit once per process, and it is already ") +
                          effective);
    }
    throw Unsupported(asked + "expected one of " + known);
}

inline std::string math_mode() {
    const dnnl::fpmath_mode mode = dnnl::get_default_fpmath_mode();
    for (const auto& [name, value] : math_mode_names)
        if (value == mode) return std::string(name);
    return std::to_string(static_cast<int>(mode));
}

inline void set_math_mode(std::string_view word) {
    std::string known;
    for (const auto& [name, mode] : math_mode_names) {
        known += (known.empty() ? "" : ", ") + std::string(name);
        if (name != word) continue;
        dnnl::set_default_fpmath_mode(mode);
        return;
    }
    throw Unsupported("onednn.math_mode = '" + std::string(word) + "': expected one of " + known);
}

}  // namespace timetrial::onednn
