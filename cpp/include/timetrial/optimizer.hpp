// The optimizers of a job, as C++: the table of rules with the names of their states, and what a step's
// update needs to know. python/timetrial/optimizers/rules.py says what each rule computes, and cites it.
#ifndef TIMETRIAL_OPTIMIZER_HPP
#define TIMETRIAL_OPTIMIZER_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "timetrial/backend.hpp"

namespace timetrial {

enum class RuleKind { kSgd, kAdam, kAdamW, kRmsprop, kAdagrad, kAdadelta };

struct RuleEntry {
    const char* name;
    RuleKind kind;
    std::array<const char*, 2> states;  // behind "<parameter>."; nullptr where there is none
};

inline constexpr std::array rules{
    RuleEntry{"sgd", RuleKind::kSgd, {"velocity", nullptr}},
    RuleEntry{"adam", RuleKind::kAdam, {"first_moment", "second_moment"}},
    RuleEntry{"adamw", RuleKind::kAdamW, {"first_moment", "second_moment"}},
    RuleEntry{"rmsprop", RuleKind::kRmsprop, {"second_moment", nullptr}},
    RuleEntry{"adagrad", RuleKind::kAdagrad, {"squared_sum", nullptr}},
    RuleEntry{"adadelta", RuleKind::kAdadelta, {"second_moment", "squared_update"}},
};

// What a job may ask for beside a rule's numbers; words of tt_description.optimizers like the rules' names.
inline constexpr std::array optimizer_options{"nesterov", "decoupled", "rate_inside", "schedule",
                                              "clip_norm"};

// Every rule and option, and the NULL that ends a list of words: for a backend that has them all.
constexpr auto optimizer_words() {
    std::array<const char*, rules.size() + optimizer_options.size() + 1> words{};
    std::size_t at = 0;
    for (const RuleEntry& rule : rules) words[at++] = rule.name;
    for (const char* option : optimizer_options) words[at++] = option;
    return words;
}

// The same without one of them. An array has an empty end for it, which is another NULL.
constexpr auto optimizer_words_without(std::string_view lacking) {
    std::array<const char*, rules.size() + optimizer_options.size() + 1> words{};
    std::size_t at = 0;
    for (const char* word : optimizer_words())
        if (word != nullptr && lacking != word) words[at++] = word;
    return words;
}

// The numbers of one step's update, in double.
struct UpdateStep {
    double rate =
        0;  // of sgd, rmsprop, adagrad, adadelta; of adam and adamw with both bias corrections in it
    double scale = 1;  // of the gradient: clip_norm
    double keep = 1;   // of the weight: what a decoupled decay leaves
};

struct Optimizer {
    RuleEntry rule = rules[0];
    double learning_rate = 0, momentum = 0, weight_decay = 0;
    double beta1 = 0, beta2 = 0, rho = 0, epsilon = 0;
    double clip_norm = 0;  // 0: none
    bool nesterov = false, decoupled = false, rate_inside = false;
    std::vector<double> rates;  // of each step since reset(), then the last; empty: always learning_rate

    // Nothing but what today's fused loop computes: v = m v + (g + decay w), w -= rate v.
    bool is_plain_sgd() const {
        return rule.kind == RuleKind::kSgd && !nesterov && !decoupled && !rate_inside && clip_norm == 0;
    }

    // The full names of the states of a parameter.
    std::vector<std::string> states_of(const std::string& parameter) const {
        std::vector<std::string> names;
        for (const char* state : rule.states)
            if (state) names.push_back(parameter + "." + state);
        return names;
    }

    double rate_of(uint64_t step) const {
        return rates.empty() ? learning_rate : rates[std::min<std::size_t>(step, rates.size() - 1)];
    }

    // `step` counts from 0 behind reset(); `norm`: of all gradients together, used with clip_norm only.
    UpdateStep at(uint64_t step, double norm = 0) const {
        const double rate = rate_of(step);
        UpdateStep now{rate, 1, 1};
        if (clip_norm > 0 && norm > clip_norm) now.scale = clip_norm / norm;
        if (decoupled) now.keep = 1 - rate * weight_decay;
        if (rule.kind == RuleKind::kAdam || rule.kind == RuleKind::kAdamW) {
            const double t = static_cast<double>(step + 1);
            now.rate = rate * std::sqrt(1 - std::pow(beta2, t)) / (1 - std::pow(beta1, t));
        }
        return now;
    }
};

// Throws Unsupported for a rule that `words` (the backend's own list) lacks.
inline Optimizer read_optimizer(const tt_optimizer* from, const char* const* words) {
    if (!from) return {};
    std::string known;
    bool is_known = false;
    for (const char* const* word = words; *word; ++word) {
        is_known = is_known || std::string_view(from->name) == *word;
        known += (known.empty() ? "" : ", ") + std::string(*word);
    }
    const auto rule = std::find_if(rules.begin(), rules.end(), [&](const RuleEntry& one) {
        return std::string_view(one.name) == from->name;
    });
    if (!is_known || rule == rules.end())
        throw Unsupported("the backend has no optimizer '" + std::string(from->name) + "'; it has: " + known);
    const Attributes given("optimizer '" + std::string(from->name) + "'", from->attributes,
                           from->n_attributes);
    Optimizer found;
    found.rule = *rule;
    found.learning_rate = given.number("learning_rate");
    found.momentum = given.number("momentum", 0);
    found.weight_decay = given.number("weight_decay", 0);
    if (rule->kind == RuleKind::kAdam || rule->kind == RuleKind::kAdamW) {
        found.beta1 = given.number("beta1");
        found.beta2 = given.number("beta2");
    }
    if (rule->kind == RuleKind::kRmsprop || rule->kind == RuleKind::kAdadelta)
        found.rho = given.number("rho");
    if (rule->kind != RuleKind::kSgd) found.epsilon = given.number("epsilon");
    found.clip_norm = given.number("clip_norm", 0);
    found.nesterov = given.number("nesterov", 0) != 0;
    found.rate_inside = given.number("rate_inside", 0) != 0;
    found.decoupled = rule->kind == RuleKind::kAdamW || given.number("decoupled", 0) != 0;
    // A host from before schedules passes a shorter struct.
    if (from->size >= offsetof(tt_optimizer, rates) + sizeof from->rates && from->n_rates > 0)
        found.rates.assign(from->rates, from->rates + from->n_rates);
    return found;
}

}  // namespace timetrial

#endif  // TIMETRIAL_OPTIMIZER_HPP
