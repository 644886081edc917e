// A training step is a list of operations, made once and run in order.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "onednn/tensor.h"
#include "timetrial/backend.h"

namespace timetrial::onednn {

// In which steps an operation is done: in those that learn, where nothing is learned, or in both.
enum class Runs { kAlways, kTraining, kInference };

struct Operation {
    std::size_t node;  // for which it is done
    tt_direction direction;
    std::function<void()> run;
    Runs runs = Runs::kAlways;

    bool runs_in(Runs step) const { return runs == Runs::kAlways || runs == step; }
};

// A primitive with its arguments. The C function takes them as an array that is made here once, where the
// C++ one would make a map into an array at every call.
class Call {
  public:
    using Arguments = std::vector<std::pair<int, dnnl::memory>>;

    Call(dnnl::stream stream, dnnl::primitive primitive, Arguments arguments)
        : stream_(std::move(stream)), primitive_(std::move(primitive)), arguments_(std::move(arguments)) {
        for (const auto& [argument, memory] : arguments_) raw_.push_back({argument, memory.get()});
    }

    void operator()() const {
        dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive_.get(), stream_.get(),
                                                       static_cast<int>(raw_.size()), raw_.data()),
                                "oneDNN could not run a primitive");
    }

  private:
    dnnl::stream stream_;
    dnnl::primitive primitive_;
    Arguments arguments_;  // keeps what raw_ points to
    std::vector<dnnl_exec_arg_t> raw_;
};

inline dnnl::primitive reorder_primitive(const dnnl::engine& engine, const Desc& from, const Desc& to) {
    return dnnl::reorder(dnnl::reorder::primitive_desc(engine, from, engine, to));
}

inline Call reorder_call(const dnnl::engine& engine, const dnnl::stream& stream, const Tensor& from,
                         const Tensor& to) {
    return {stream,
            reorder_primitive(engine, from.desc, to.desc),
            {{DNNL_ARG_FROM, from.memory}, {DNNL_ARG_TO, to.memory}}};
}

}  // namespace timetrial::onednn
