// Which form each operation of a layout gets: of a trial, or of one that an earlier launch has kept.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "onednn/kept.h"
#include "onednn/trial.h"

namespace timetrial::onednn {

// For which operation something is built: "conv1", backward_data.
struct Purpose {
    std::size_t node;
    std::string name;
    tt_direction direction;

    std::string text() const { return name + " " + tt_direction_word(direction); }
};

// What was found for a layout. Who builds an operation again needs no second trial, and operations that are
// alike (same direction, forms and formats at hand) need one between them.
class Decisions {
  public:
    // `kept`: of the same layout, if anybody has kept any; it must outlive this.
    explicit Decisions(const Choices* kept = nullptr) : kept_(kept) {}

    template <class Try>
    const Choice& of(const Purpose& purpose, const std::vector<Form>& forms, const Homes& homes,
                     const Try& tried) {
        const auto [found, is_new] = by_operation_.try_emplace(purpose.text());
        Choice& choice = found->second;
        if (!is_new) return choice;
        if (const Choice* kept = find_kept(found->first, forms)) return choice = *kept;
        const auto [same, is_first] = by_likeness_.try_emplace(likeness(purpose, forms, homes));
        if (is_first) {
            same->second = tried();
            if (forms.size() > 1) ++trials_;
        }
        static_cast<Trial::Result&>(choice) = same->second;
        choice.among = forms.size();
        choice.form = forms[choice.chosen].text();
        return choice;
    }

    int trials() const { return trials_; }
    const Choices& choices() const { return by_operation_; }

  private:
    // That of the same forms: where they differ, something counts that is not among the conditions.
    const Choice* find_kept(const std::string& operation, const std::vector<Form>& forms) const {
        if (!kept_) return nullptr;
        const auto found = kept_->find(operation);
        if (found == kept_->end()) return nullptr;
        const Choice& choice = found->second;
        const bool fits = choice.among == forms.size() && forms[choice.chosen].text() == choice.form;
        return fits ? &choice : nullptr;
    }

    static std::string likeness(const Purpose& purpose, const std::vector<Form>& forms, const Homes& homes) {
        std::string words = tt_direction_word(purpose.direction);
        const auto add = [&words](const Desc& desc) {
            words += ' ' + format_of(desc);
            for (const dnnl::memory::dim extent : dims_of(desc)) words += ',' + std::to_string(extent);
        };
        for (const Form& form : forms) {
            words += "; " + form.implementation;
            for (const std::vector<Port>* ports : {&form.reads, &form.writes})
                for (const Port& port : *ports) add(port.desc);
        }
        for (const auto& [argument, at_hand] : homes) {
            words += "; " + std::to_string(argument);
            for (const Desc& desc : at_hand) add(desc);
        }
        return words;
    }

    const Choices* kept_;
    Choices by_operation_;
    std::map<std::string, Trial::Result> by_likeness_;
    int trials_ = 0;
};

}  // namespace timetrial::onednn
