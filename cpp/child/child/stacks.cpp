#include "stacks.h"

#include <execinfo.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>

namespace timetrial {
namespace {

constexpr int deepest = 64;
constexpr std::array deadly = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

// The default action has been restored (SA_RESETHAND): the signal that is raised again ends the process.
void write_stack(int number) {
    static std::array<char, 64> title;
    const int length =
        std::snprintf(title.data(), title.size(), "timetrial-child: stack at signal %d:\n", number);
    std::array<void*, deepest> frames;
    const int depth = backtrace(frames.data(), deepest);
    if (write(STDERR_FILENO, title.data(), static_cast<std::size_t>(length)) == length) {
        backtrace_symbols_fd(frames.data(), depth, STDERR_FILENO);
    }
    raise(number);
}

}  // namespace

void write_stacks_when_dying() {
    // A stack of its own, for a thread whose own is used up; the first backtrace() loads what it needs.
    static std::array<char, 64 * 1024> own_stack;
    stack_t stack{};
    stack.ss_sp = own_stack.data();
    stack.ss_size = own_stack.size();
    sigaltstack(&stack, nullptr);
    std::array<void*, 1> none;
    backtrace(none.data(), 1);
    for (const int number : deadly) {
        struct sigaction before{};
        if (sigaction(number, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) continue;
        struct sigaction action{};
        action.sa_handler = write_stack;
        action.sa_flags = SA_RESETHAND | SA_ONSTACK | SA_NODEFER;
        sigaction(number, &action, nullptr);
    }
}

}  // namespace timetrial
