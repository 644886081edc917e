#include "failures.h"

#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "timetrial/backend.hpp"

namespace timetrial {
namespace {

struct Row {
    const char* word;
    Failure failure;
    const char* what;
};

constexpr Row table[] = {
    {"none", Failure::none, "does not fail"},
    {"throw", Failure::throws, "throws std::runtime_error"},
    {"abort", Failure::aborts, "calls abort(): SIGABRT"},
    {"segv", Failure::segfaults, "raises SIGSEGV with the default action"},
    {"exit", Failure::exits, "calls exit(7) in the middle of its work"},
    {"hang", Failure::hangs, "never returns, and uses no CPU"},
    {"nan", Failure::nan, "returns NaN as loss"},
    {"oom", Failure::oom, "asks for 4 EiB, which no machine has"},
    {"grow", Failure::grows, "keeps 16 MiB more at each call; gives up as out of memory at 1 GiB"},
    {"print", Failure::prints, "writes on stdout and stderr in every phase; does not fail"},
    {"wrong_threads", Failure::wrong_threads, "reports one thread more than asked"},
    {"unsupported_layer", Failure::unsupported_layer, "lacks the network's first layer, at build"},
    {"slow_start", Failure::slow_start, "sleeps 3 s in build"},
};

void grow() {
    constexpr std::size_t piece = std::size_t{16} << 20;
    static std::vector<std::vector<char>> kept;
    if (kept.size() >= 64) throw std::bad_alloc();
    kept.emplace_back(piece, '\1');
}

}  // namespace

Failure failure_named(std::string_view word) {
    std::string known;
    for (const Row& row : table) {
        if (word == row.word) return row.failure;
        known += std::string("\n  ") + row.word + ": " + row.what;
    }
    throw Unsupported("null.fail = '" + std::string(word) + "': expected one of" + known);
}

void fail(Failure failure) {
    switch (failure) {
        case Failure::throws:
            throw std::runtime_error("null.fail = throw: an exception, as asked");
        case Failure::aborts:
            std::abort();
        case Failure::segfaults:
            std::signal(SIGSEGV, SIG_DFL);
            std::raise(SIGSEGV);
            break;
        case Failure::exits:
            std::exit(7);
        case Failure::hangs:
            for (;;) pause();
        case Failure::oom:
            // The kernel's refusal, not the allocator's: a sanitizer's allocator would end the process.
            if (mmap(nullptr, std::size_t{1} << 62, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
                MAP_FAILED)
                throw std::bad_alloc();
            break;
        case Failure::grows:
            grow();
            break;
        default:
            break;
    }
}

}  // namespace timetrial
