// What trials of onednn chose, kept in a folder: the file by itself, and the plug-in that reads and writes
// it.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>

#include "onednn/kept.h"
#include "support/against_reference.h"
#include "support/onednn.h"
#include "support/pools.h"
#include "timetrial/kept_folder.h"

namespace timetrial::testing {
namespace {

namespace fs = std::filesystem;
using timetrial::onednn::Kept;
using timetrial::onednn::KeptFile;

const auto* const kEndsPools = ::testing::AddGlobalTestEnvironment(new EndsPools);

// A folder of its own, gone behind the test.
class KeptChoices : public ::testing::Test {
  protected:
    KeptChoices() {
        std::string name = (fs::temp_directory_path() / "kept.XXXXXX").string();
        folder_ = mkdtemp(name.data());
        unsetenv(TT_KEPT_FOLDER);
    }
    ~KeptChoices() override {
        unsetenv(TT_KEPT_FOLDER);
        fs::remove_all(folder_);
    }

    std::size_t files() const {
        return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {}));
    }
    fs::path file() const { return fs::directory_iterator(folder_)->path(); }

    static std::string content(const fs::path& path) {
        return (std::ostringstream() << std::ifstream(path, std::ios::binary).rdbuf()).str();
    }
    static void write(const fs::path& path, const std::string& text) {
        std::ofstream(path, std::ios::binary) << text;
    }

    fs::path folder_;
};

Kept some(const std::string& form) {
    onednn::Choice choice;
    choice.chosen = 1;
    choice.among = 3;
    choice.form = form;
    choice.report = "a 1 ms; " + form + " 0.5 ms (chosen); c 2 ms";
    return {"blocked", "blocked 3 ms (chosen)", {{"a \"layer\"\nof two lines forward", choice}}};
}

std::string form_in(const std::optional<Kept>& kept) {
    return kept ? kept->choices.begin()->second.form : "nothing";
}

// ---- the file

TEST_F(KeptChoices, AreReadAsTheyWereWritten) {
    KeptFile file(folder_, "all \"conditions\"\nin two lines");
    EXPECT_FALSE(file.read());
    EXPECT_EQ(file.write(some("jit")), "");
    const std::optional<Kept> kept = file.read();
    ASSERT_TRUE(kept);
    EXPECT_EQ(kept->layout, "blocked");
    EXPECT_EQ(kept->report, "blocked 3 ms (chosen)");
    ASSERT_EQ(kept->choices.size(), 1U);
    const auto& [operation, choice] = *kept->choices.begin();
    EXPECT_EQ(operation, "a \"layer\"\nof two lines forward");
    EXPECT_EQ(choice.chosen, 1U);
    EXPECT_EQ(choice.among, 3U);
    EXPECT_EQ(choice.report, "a 1 ms; jit 0.5 ms (chosen); c 2 ms");
    EXPECT_EQ(files(), 1U);  // nothing temporary is left
}

TEST_F(KeptChoices, OfOtherConditionsAreOthers) {
    KeptFile one(folder_, "one"), other(folder_, "other");
    EXPECT_EQ(one.write(some("jit")), "");
    EXPECT_FALSE(other.read());
    fs::copy(one.path(), other.path());  // as if the hashes were the same
    EXPECT_FALSE(other.read());
    EXPECT_EQ(other.write(some("brgemm")), "");
    EXPECT_EQ(form_in(other.read()), "brgemm");
    EXPECT_EQ(form_in(one.read()), "jit");
}

// Wherever it is cut, and whichever character is another.
TEST_F(KeptChoices, ThatAreDamagedAreAsIfTheyWereNotThere) {
    KeptFile file(folder_, "conditions");
    EXPECT_EQ(file.write(some("jit")), "");
    const std::string whole = content(file.path());
    for (std::size_t i = 0; i < whole.size(); ++i) {
        write(file.path(), whole.substr(0, i));
        EXPECT_FALSE(file.read()) << "cut at " << i;
        std::string changed = whole;
        changed[i] = static_cast<char>(changed[i] ^ 1);
        write(file.path(), changed);
        EXPECT_FALSE(file.read()) << "changed at " << i;
    }
    EXPECT_EQ(file.write(some("brgemm")), "");
    EXPECT_EQ(form_in(file.read()), "brgemm");
}

TEST_F(KeptChoices, OfTwoThatTryAtOnceAreTheFirstOnes) {
    KeptFile first(folder_, "conditions"), second(folder_, "conditions");
    EXPECT_FALSE(first.read());
    EXPECT_FALSE(second.read());
    EXPECT_EQ(first.write(some("jit")), "");
    EXPECT_EQ(second.write(some("brgemm")), "another launch kept its own meanwhile");
    EXPECT_EQ(form_in(second.read()), "jit");
    EXPECT_EQ(files(), 1U);
    second.reject();  // they do not fit what is built
    EXPECT_EQ(second.write(some("brgemm")), "");
    EXPECT_EQ(form_in(first.read()), "brgemm");
}

TEST_F(KeptChoices, SayWhyTheyAreNotKept) {
    EXPECT_EQ(KeptFile(folder_ / "nowhere", "conditions").write(some("jit")), "No such file or directory");
    KeptFile nowhere("", "conditions");
    EXPECT_FALSE(nowhere.read());
}

// ---- the plug-in

struct Built {
    std::map<std::string, std::string> facts;
    std::string trials, cache;  // its fact about them; the setting `cache` as it reads it
    double loss;
};

// Small, so that threads that meet often on a busy machine wait for long in few places. A pair of channels
// fills no vector: there is more than one form to try.
Built build(const std::map<std::string, std::string>& settings = {{"threads", "1"}}, std::int64_t batch = 16,
            double stride = 1) {
    const AttributeSpecs shape{{"channels", 2.0}, {"kernel", 3.0}, {"padding", 1.0}, {"stride", stride}};
    const Problem problem({node("conv", "conv2d", shape), node("pool", "global_avg_pool2d"), loss_of("pool")},
                          batch, {2, 16, 16}, Numbers::kReal);
    Trainer trainer(testing::onednn(), problem, settings);
    Built built;
    for (const Fact& fact : trainer.context().facts()) built.facts[fact.name] = fact.value;
    built.trials = built.facts.at("trials");
    built.facts.erase("trials");
    built.cache = trainer.context().read_setting("cache").effective;
    built.loss = trainer.step();
    return built;
}

bool is_tried(const Built& built) { return built.trials.starts_with("tried: ") && built.cache == "cold"; }
bool is_kept(const Built& built) { return built.trials.starts_with("kept: ") && built.cache == "warm"; }

TEST_F(KeptChoices, AreTriedByTheFirstLaunchAlone) {
    setenv(TT_KEPT_FOLDER, folder_.c_str(), 1);
    const Built first = build(), second = build();
    EXPECT_TRUE(is_tried(first)) << first.trials;
    EXPECT_TRUE(first.trials.ends_with(", kept for those that follow")) << first.trials;
    EXPECT_TRUE(is_kept(second)) << second.trials;
    EXPECT_EQ(second.facts, first.facts);  // the same kernels, and what the trials found of them
    EXPECT_EQ(second.loss, first.loss);
    EXPECT_EQ(files(), 1U);
}

TEST_F(KeptChoices, OfADamagedFileAreTriedAgain) {
    setenv(TT_KEPT_FOLDER, folder_.c_str(), 1);
    EXPECT_TRUE(is_tried(build()));
    fs::resize_file(file(), fs::file_size(file()) / 2);
    EXPECT_TRUE(is_tried(build()));
    EXPECT_TRUE(is_kept(build()));
    EXPECT_EQ(files(), 1U);
}

// A sound file of the same conditions that names another kernel than there is.
TEST_F(KeptChoices, ThatDoNotFitAreTriedAgain) {
    setenv(TT_KEPT_FOLDER, folder_.c_str(), 1);
    EXPECT_TRUE(is_tried(build()));
    std::string text = content(file());
    const std::size_t of_hash = text.find('\n') + 1, body = text.find('\n', of_hash) + 1;
    const std::string operation = "\"conv forward\"";
    const std::size_t word = text.find(operation);
    ASSERT_NE(word, std::string::npos);
    text.insert(text.find('"', word + operation.size()) + 1, "another than ");
    text.replace(of_hash, 16, onednn::digits_of(onednn::hash_of(text.substr(body))));
    write(file(), text);
    EXPECT_TRUE(is_tried(build()));
    EXPECT_TRUE(is_kept(build()));
    EXPECT_EQ(files(), 1U);
}

TEST_F(KeptChoices, AreOfTheirConditionsAlone) {
    setenv(TT_KEPT_FOLDER, folder_.c_str(), 1);
    EXPECT_TRUE(is_tried(build()));
    Built (*const others[])() = {
        [] { return build({{"threads", "2"}}); },
        [] { return build({{"threads", "1"}}, 17); },
        [] { return build({{"threads", "1"}, {"convolution", "auto"}}); },
        [] { return build({{"threads", "1"}, {"onednn.math_mode", "bf16"}}); },
        [] { return build({{"threads", "1"}}, 16, 2); },
    };
    for (std::size_t i = 0; i < std::size(others); ++i) {
        EXPECT_TRUE(is_tried(others[i]())) << i;
        EXPECT_TRUE(is_kept(others[i]())) << i;
        EXPECT_EQ(files(), i + 2) << i;
    }
    setenv("OMP_OF_NOBODY", "1", 1);  // none that whoever runs the tests may have set
    EXPECT_TRUE(is_tried(build()));
    unsetenv("OMP_OF_NOBODY");
    EXPECT_TRUE(is_kept(build()));
}

TEST_F(KeptChoices, AreNotReadWhereTheSettingSaysCold) {
    setenv(TT_KEPT_FOLDER, folder_.c_str(), 1);
    EXPECT_TRUE(is_tried(build()));
    const Built cold = build({{"threads", "1"}, {"cache", "cold"}});
    EXPECT_TRUE(is_tried(cold));
    EXPECT_TRUE(cold.trials.ends_with(" in this launch")) << cold.trials;
    EXPECT_TRUE(is_kept(build({{"threads", "1"}, {"cache", "warm"}})));
    EXPECT_THROW(build({{"cache", "hot"}}), BackendError);
}

TEST_F(KeptChoices, AreTriedByAllWhereThereIsNoFolder) {
    for (int launch = 0; launch < 2; ++launch) {
        const Built built = build();
        EXPECT_TRUE(is_tried(built));
        EXPECT_TRUE(built.trials.ends_with(" in this launch")) << built.trials;
    }
    setenv(TT_KEPT_FOLDER, (folder_ / "nowhere").c_str(), 1);
    EXPECT_TRUE(build().trials.ends_with(", not kept: No such file or directory"));
}

}  // namespace
}  // namespace timetrial::testing
