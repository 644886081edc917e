#include "words.h"

#include <stdexcept>
#include <utility>

#include "loader/plugin.h"
#include "text/text.h"

namespace timetrial {
namespace {

using Words = std::vector<std::pair<std::uint32_t, const char*>>;

std::vector<std::string> words_of(std::uint32_t mask, const Words& known) {
    std::vector<std::string> words;
    for (const auto& [bit, word] : known) {
        if ((mask & bit) != 0) words.emplace_back(word);
    }
    return words;
}

}  // namespace

std::vector<std::string> task_words(std::uint32_t mask) {
    return words_of(mask, {{TT_TRAIN, "train"}, {TT_GRADIENT, "gradient"}, {TT_FORWARD, "forward"}});
}

std::vector<std::string> part_words(std::uint32_t mask) {
    return words_of(mask, {{TT_PART_FORWARD, "forward"},
                           {TT_PART_LOSS, "loss"},
                           {TT_PART_BACKWARD, "backward"},
                           {TT_PART_UPDATE, "update"}});
}

std::vector<std::string> flag_words(std::uint32_t mask) {
    return words_of(
        mask,
        {{TT_READS_NO_DATA, "reads_no_data"}, {TT_UNPROVABLE, "unprovable"}, {TT_PROFILES, "profiles"}});
}

tt_role parse_role(const std::string& word) {
    static const std::pair<const char*, tt_role> roles[] = {
        {"parameter", TT_PARAMETER},   {"state", TT_STATE},         {"gradient", TT_ROLE_GRADIENT},
        {"activation", TT_ACTIVATION}, {"optimizer", TT_OPTIMIZER}, {"input_gradient", TT_INPUT_GRADIENT},
    };
    std::vector<std::string> known;
    for (const auto& [name, role] : roles) {
        if (word == name) return role;
        known.emplace_back(name);
    }
    throw std::invalid_argument("tensors have no role '" + word + "'." + nearest(word, known));
}

nlohmann::ordered_json short_description(const tt_description& description) {
    return {{"name", description.name},
            {"version", description.version},
            {"library", description.library},
            {"isa", description.isa},
            {"flags", flag_words(description.flags)},
            {"parts", part_words(description.parts)}};
}

nlohmann::ordered_json full_description(const tt_backend& table) {
    const tt_description& description = *table.description;
    nlohmann::ordered_json json = short_description(description);
    json["abi"] = table.abi_version;
    json["tasks"] = task_words(description.tasks);
    json["devices"] = word_list(description.devices);
    json["dtypes"] = word_list(description.dtypes);
    json["layers"] = word_list(description.layers);
    json["optimizers"] = word_list(description.optimizers);
    json["settings"] = word_list(description.settings);
    return json;
}

}  // namespace timetrial
