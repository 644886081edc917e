// A timed trial among the forms of one operation, each with the reorders that it would need here.
//
// oneDNN lists its implementations by expected speed. The expectation is wrong where a shape is unusual: the
// weight gradient of a first layer with one channel, or channels that fill no vector.
#pragma once

#include <omp.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "layers/trial.h"
#include "onednn/forms.h"

namespace timetrial::onednn {

// In which formats a value is at hand (reads), or the one in which it is wanted (writes). What is not listed
// takes the format that the primitive likes.
using Homes = std::map<int, std::vector<Desc>>;

class Trial {
  public:
    using Result = layers::TrialResult;

    Trial(dnnl::engine engine, dnnl::stream stream)
        : engine_(std::move(engine)), stream_(std::move(stream)) {}

    Result fastest(const std::vector<Form>& forms, const Homes& homes) const {
        std::vector<std::string> names;
        for (const Form& form : forms) names.push_back(form.text());
        return layers::fastest_of(names, omp_get_max_threads() == 1, [&](std::size_t i) {
            return [calls = rehearsal(forms[i], homes)] {
                for (const auto& call : calls) call();
            };
        });
    }

  private:
    std::vector<std::function<void()>> rehearsal(const Form& form, const Homes& homes) const {
        std::vector<std::function<void()>> before, after;
        Call::Arguments arguments;
        for (const Port& port : form.reads) {
            const Tensor& tensor = stage(arguments, port);
            const auto home = homes.find(port.argument);
            if (home == homes.end()) continue;
            const auto& [argument, at_hand] = *home;
            if (std::find(at_hand.begin(), at_hand.end(), port.desc) == at_hand.end())
                before.push_back(reorder_call(engine_, stream_, allocate(engine_, at_hand.front()), tensor));
        }
        for (const Port& port : form.writes) {
            const Tensor& tensor = stage(arguments, port);
            const auto home = homes.find(port.argument);
            if (home != homes.end() && home->second.front() != port.desc)
                after.push_back(
                    reorder_call(engine_, stream_, tensor, allocate(engine_, home->second.front())));
        }
        arguments.push_back({DNNL_ARG_SCRATCHPAD, dnnl::memory(form.scratchpad, engine_)});
        before.push_back(form.call(stream_, std::move(arguments)));
        before.insert(before.end(), after.begin(), after.end());
        return before;
    }

    Tensor stage(Call::Arguments& arguments, const Port& port) const {
        Tensor tensor = allocate(engine_, port.desc);
        arguments.push_back({port.argument, tensor.memory});
        return tensor;
    }

    dnnl::engine engine_;
    dnnl::stream stream_;
};

}  // namespace timetrial::onednn
