// The null backend: everything a backend has, except arithmetic. It tests the instrument against a
// known truth: a step of a known length, and each way to fail (failures.cpp).
//
//   threads           1, and nothing else
//   null.step_us      a step waits until this long after it was called (busy, on the clock); default 0
//   null.work_units   a step does this many units of fixed work (1024 dependent multiplications each),
//                     without looking at a clock; default 0
//   null.fail         see failures.cpp; default none
//   null.fail_at      step (default) or build
//   null.fail_after   steps that go well before one fails; default 3

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <ctime>
#include <limits>

#include "failures.h"
#include "timetrial/backend.hpp"

namespace timetrial {
namespace {

constexpr const char* devices[] = {"cpu", nullptr};
constexpr const char* dtypes[] = {"f32", nullptr};
constexpr const char* layers[] = {nullptr};  // it computes none, so any network will do
constexpr const char* optimizers[] = {"sgd", nullptr};
constexpr const char* settings[] = {
    "threads", "null.step_us", "null.work_units", "null.fail", "null.fail_at", "null.fail_after", nullptr};
constexpr tt_description description{
    .size = sizeof(tt_description),
    .name = "null",
    .version = "1",
    .library = "",
    .isa = "",
    .tasks = TT_TRAIN | TT_GRADIENT | TT_FORWARD,
    .parts = TT_PART_FORWARD | TT_PART_LOSS | TT_PART_BACKWARD | TT_PART_UPDATE,
    .flags = TT_READS_NO_DATA | TT_UNPROVABLE,
    .devices = devices,
    .dtypes = dtypes,
    .layers = layers,
    .optimizers = optimizers,
    .settings = settings,
};

int64_t now_ns() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return int64_t{1'000'000'000} * time.tv_sec + time.tv_nsec;
}

class Null final : public Backend {
  public:
    ~Null() override { print("close"); }

    void configure(std::string_view name, std::string_view value) override {
        if (name == "threads") {
            setting_integer(name, value, 1, 1);
        } else if (name == "null.step_us") {
            step_ns_ = 1000 * setting_integer(name, value, 0, 3'600'000'000);
        } else if (name == "null.work_units") {
            work_units_ = setting_integer(name, value, 0);
        } else if (name == "null.fail") {
            failure_ = failure_named(value);
            failure_word_ = value;
        } else if (name == "null.fail_at") {
            if (value != "step" && value != "build")
                throw Unsupported("null.fail_at = '" + std::string(value) + "': expected step or build");
            at_build_ = value == "build";
        } else if (name == "null.fail_after") {
            fail_after_ = setting_integer(name, value, 0);
        } else {
            throw unknown_setting(name, description);
        }
        print("configure");
    }

    Reading read_setting(std::string_view name) override {
        if (name == "threads")
            return {failure_ == Failure::wrong_threads ? "2" : "1", "null: has no threads of its own"};
        const std::string own = "null: own variable";
        if (name == "null.step_us") return {std::to_string(step_ns_ / 1000), own};
        if (name == "null.work_units") return {std::to_string(work_units_), own};
        if (name == "null.fail") return {failure_word_, own};
        if (name == "null.fail_at") return {at_build_ ? "build" : "step", own};
        if (name == "null.fail_after") return {std::to_string(fail_after_), own};
        throw unknown_setting(name, description);
    }

    void build(const tt_build& build) override {
        print("build");
        if (failure_ == Failure::slow_start) sleep(3);
        if (failure_ == Failure::unsupported_layer) {
            for (const Layer& layer : read_layers(*build.network))
                if (layer.kind != "input")
                    throw Unsupported("the backend has no layer '" + layer.kind + "' (layer '" + layer.name +
                                      "')");
        }
        if (at_build_) fail(failure_);
    }

    double step(uint32_t task, const tt_batch&) override {
        work();
        return finish_step(task == TT_FORWARD);
    }

    // A step's work is its forward part; the others are empty.
    double part(uint32_t part, const tt_batch&) override {
        if (part == TT_PART_FORWARD) work();
        return part == TT_PART_LOSS ? finish_step(false) : 0.0;
    }

    void reset() override { steps_ = 0; }
    std::vector<tt_tensor> tensors(uint32_t) override { return {}; }

  private:
    void work() {
        if (step_ns_ > 0) {
            const int64_t deadline = now_ns() + step_ns_;
            while (now_ns() < deadline) {
            }
        }
        for (int64_t i = 0; i < 1024 * work_units_; ++i)
            state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        if (failure_ == Failure::prints) print("step");
    }

    double finish_step(bool inference) {
        const bool due = failure_ != Failure::none && !at_build_ && steps_++ >= fail_after_;
        if (due) fail(failure_);
        return inference || (due && failure_ == Failure::nan) ? std::numeric_limits<double>::quiet_NaN()
                                                              : 0.0;
    }

    void print(const char* phase) const {
        if (failure_ != Failure::prints) return;
        std::printf("null prints on stdout: %s {\"event\": \"done\"}\n", phase);
        std::fflush(stdout);
        std::fprintf(stderr, "null prints on stderr: %s\n", phase);
    }

    int64_t step_ns_ = 0;
    int64_t work_units_ = 0;
    int64_t fail_after_ = 3;
    int64_t steps_ = 0;
    bool at_build_ = false;
    Failure failure_ = Failure::none;
    std::string failure_word_ = "none";
    volatile uint64_t state_ = 1;  // volatile: the work must be done although nobody wants its result
};

}  // namespace
}  // namespace timetrial

extern "C" TT_EXPORT const tt_backend* tt_backend_table(uint32_t host_abi) {
    return timetrial::backend_table<timetrial::Null>(host_abi, timetrial::description);
}
