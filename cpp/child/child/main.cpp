// timetrial-child: the native contender. Takes a job file, obeys commands on descriptor 3, answers on 4,
// stamps into 5. python/timetrial/processes/PROTOCOL.md is all that both sides agree on.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "clock/clock.h"
#include "commands.h"
#include "contender.h"
#include "events.h"
#include "job.h"
#include "loader/context.h"
#include "loader/plugin.h"
#include "stacks.h"
#include "words.h"

namespace {

using namespace timetrial;
using Json = nlohmann::ordered_json;

constexpr int commands_fd = 3;
constexpr int events_fd = 4;
constexpr int recorder_fd = 5;

Json phase(const char* name) {
    return {
        {"name", name}, {"ns", now_ns()}, {"rss_bytes", resident_bytes()}, {"mapped_bytes", mapped_bytes()}};
}

std::string outcome_of(tt_status status) {
    if (status == TT_UNSUPPORTED) return "unavailable";
    return status == TT_OUT_OF_MEMORY ? "oom" : "crash";
}

// Called in a catch block: what was thrown, as the last event.
Json failure(const std::string& where) {
    std::string outcome = "crash";
    std::string text;
    try {
        throw;
    } catch (const BackendError& error) {
        outcome = outcome_of(error.status());
        text = error.what();
    } catch (const PluginError& error) {
        outcome = "unavailable";
        text = error.what();
    } catch (const std::bad_alloc&) {
        outcome = "oom";
        text = "an allocation of timetrial-child failed";
    } catch (const std::exception& error) {
        text = error.what();
    }
    return {{"event", "failed"}, {"outcome", outcome}, {"where", where}, {"text", text}};
}

// Everything between the start and the end of a contender. True if the parent said goodbye.
bool serve(const char* job_file, Json phases, const Events& events, std::string& where) {
    where = "job";
    Contender contender(read_job(job_file), recorder_fd);
    where = "load";
    contender.load();
    phases.push_back(phase("import"));
    where = "settings";
    contender.apply_settings();
    where = "build";
    contender.build();
    phases.push_back(phase("build"));
    where = "settings";
    const Json settings = contender.read_settings();
    events.send({{"event", "ready"},
                 {"phases", phases},
                 {"settings", settings},
                 {"facts", contender.facts()},
                 {"backend", contender.description()}});
    Lines lines(commands_fd);
    return obey_commands(lines, contender, events, where);
}

int run_job(const char* job_file) {
    const Json start = phase("start");
    std::signal(SIGPIPE, SIG_IGN);  // a parent that is gone shows as a failed write
    write_stacks_when_dying();
    const Events events(events_fd);
    std::string where;
    try {
        if (serve(job_file, Json::array({start}), events, where)) events.send({{"event", "finished"}});
        return 0;
    } catch (...) {
        events.send(failure(where));
        std::fflush(nullptr);
        _exit(1);  // the plug-in is in an unknown state: its destructors might hang
    }
}

// Configures a context and reads everything back: what a contender would do before build().
Json try_settings(const Plugin& plugin, char** settings) {
    PluginContext context(plugin);
    std::vector<std::string> names;
    for (; *settings != nullptr; ++settings) {
        const std::string word = *settings;
        const std::size_t equals = word.find('=');
        if (equals == std::string::npos) throw std::invalid_argument("'" + word + "' is no name=value");
        names.push_back(word.substr(0, equals));
        context.configure(names.back(), word.substr(equals + 1));
    }
    Json readings = Json::object();
    for (const std::string& name : names) readings[name] = context.read_setting(name).effective;
    return readings;
}

// Libraries may print when they load; standard output is for the description alone.
int describe(const char* path, char** rest) {
    const int output = dup(STDOUT_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    try {
        for (; *rest != nullptr && std::strcmp(*rest, "--") != 0; ++rest) preload_library(*rest);
        const Plugin plugin(path);
        Json description = full_description(plugin.table());
        if (*rest != nullptr) description["tried"] = try_settings(plugin, rest + 1);
        Events(output).send(description);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "timetrial-child: %s\n", error.what());
        return 1;
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 2 && std::strcmp(argv[1], "--version") == 0) return std::puts(TIMETRIAL_VERSION) < 0;
    if (argc >= 3 && std::strcmp(argv[1], "--describe") == 0) return describe(argv[2], argv + 3);
    if (argc == 2 && argv[1][0] != '-') return run_job(argv[1]);
    std::fputs(
        "usage: timetrial-child JOB.json | --describe PLUGIN.so [LIBRARY...] [-- NAME=VALUE...] | "
        "--version\n",
        stderr);
    return 2;
}
