// Why a plug-in cannot be loaded: each reason in the words that a person needs.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "loader/context.h"
#include "loader/plugin.h"

namespace timetrial {
namespace {

std::string plugin_path(const std::string& name) { return TIMETRIAL_TEST_PLUGINS_DIR "/" + name + ".so"; }

void expect_refusal(const std::string& path, const std::string& words) {
    try {
        const Plugin plugin(path);
        FAIL() << path << " was loaded";
    } catch (const PluginError& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find("plug-in '" + path + "' "), std::string::npos) << text;
        EXPECT_NE(text.find(words), std::string::npos) << text;
    }
}

TEST(Loader, MissingFile) { expect_refusal("/nowhere/eigen.so", "No such file"); }

TEST(Loader, Folder) { expect_refusal("/tmp", "is not a file"); }

TEST(Loader, FileThatIsNoLibrary) {
    const std::string path = testing::TempDir() + "text.so";
    std::ofstream(path) << "I am no library\n";
    expect_refusal(path, "cannot be loaded");
    std::remove(path.c_str());
}

TEST(Loader, MissingLibraryIsNamed) {
    expect_refusal(plugin_path("needs-absent"), "needs the library 'libtimetrial-test-absent.so'");
}

TEST(Loader, LibraryThatIsNoPlugin) {
    expect_refusal(plugin_path("no-symbol"), "is a library but no plug-in: it exports no tt_backend_table()");
}

TEST(Loader, OtherAbiNamesBothVersions) {
    expect_refusal(plugin_path("abi-7"), "has ABI version 7, this timetrial has 1.");
    expect_refusal(plugin_path("abi-7-ignores-host"), "has ABI version 7, this timetrial has 1.");
}

TEST(Loader, ShortTable) { expect_refusal(plugin_path("short-table"), "has a table of 64 bytes"); }

TEST(Loader, TableWithAHole) {
    expect_refusal(plugin_path("no-step"), "has no function 'step' in its table");
}

TEST(Loader, NoDescription) { expect_refusal(plugin_path("no-description"), "has no description"); }

TEST(Loader, CompletePlugin) {
    const Plugin plugin(plugin_path("complete"));
    EXPECT_STREQ(plugin.description().name, "complete");
    EXPECT_EQ(word_list(plugin.description().settings), std::vector<std::string>{"words"});
    EXPECT_TRUE(word_list(nullptr).empty());
}

TEST(PluginContext, CarriesThePluginsWords) {
    PluginContext context{Plugin(plugin_path("complete"))};
    try {
        context.configure("threads", "2");
        FAIL();
    } catch (const BackendError& error) {
        EXPECT_EQ(error.status(), TT_UNSUPPORTED);
        EXPECT_STREQ(error.what(), "no such setting here");
    }
}

TEST(PluginContext, HasWordsWhereThePluginHasNone) {
    PluginContext context{Plugin(plugin_path("complete"))};
    try {
        context.step(TT_TRAIN, {});
        FAIL();
    } catch (const BackendError& error) {
        EXPECT_STREQ(error.what(), "the backend gave status 1 and no reason");
    }
}

TEST(PluginContext, SurvivesTextWithoutEndAndImpossibleTensors) {
    PluginContext context{Plugin(plugin_path("complete"))};
    EXPECT_EQ(context.read_setting("words").effective.size(), TT_SETTING_TEXT - 1u);
    EXPECT_TRUE(context.tensors(TT_PARAMETER).empty());
    EXPECT_THROW(context.tensors(TT_STATE), BackendError);
}

TEST(PluginContext, TensorsThatCannotBeCountedAreNotNone) {
    PluginContext context{Plugin(plugin_path("count-fails"))};
    try {
        context.tensors(TT_PARAMETER);
        FAIL();
    } catch (const BackendError& error) {
        EXPECT_STREQ(error.what(), "lost count");
    }
}

TEST(PluginContext, WhatThePluginLacksIsUnsupported) {
    PluginContext context{Plugin(plugin_path("complete"))};
    tt_tensor prediction{};
    EXPECT_THROW(context.evaluate({}, prediction), BackendError);
    EXPECT_THROW(context.part(TT_PART_LOSS, {}), BackendError);
}

}  // namespace
}  // namespace timetrial
