// Gradients that a training step uses where they are made, and does not keep.
#pragma once

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/recomputed.h"
#include "support/resident.h"

namespace timetrial::testing {

// Weights of two kinds, each much larger than the values of a batch.
inline std::vector<NodeSpec> heavy_layers(int layers) {
    std::vector<NodeSpec> specs;
    for (int i = 0; i < layers; ++i)
        specs.push_back(plain_conv("conv" + std::to_string(i), 192.0, {{"kernel", 3.0}}));
    specs.push_back(node("pool", "global_avg_pool2d"));
    for (int i = 0; i < layers; ++i)
        specs.push_back(node("fc" + std::to_string(i), "dense", {{"units", 192.0}}));
    specs.push_back(loss_of(specs.back().name));
    return specs;
}

// What a contender holds behind each step of these tasks, in bytes.
inline std::vector<double> held_behind(const MakeTrainer& make, const Problem& problem,
                                       const std::vector<tt_task>& tasks) {
    const std::size_t before = allocated_bytes();
    Trainer trainer = make(problem, {0.01, 0.9, 0.01});
    std::vector<double> bytes;
    for (const tt_task task : tasks) {
        trainer.step(task);
        bytes.push_back(static_cast<double>(allocated_bytes() - before));
    }
    return bytes;
}

// A process that trains has memory for weights and velocities, and for the largest gradient only; behind a
// step that keeps them it has all, and behind the next one no longer.
inline void expect_memory_of_no_gradients(const MakeTrainer& make) {
    const auto held = [&](int layers) {
        const Problem problem(heavy_layers(layers), 2, {192, 4, 4}, Numbers::kReal);
        return held_behind(make, problem, {TT_TRAIN, TT_GRADIENT, TT_TRAIN});
    };
    // What all layers share makes no odds, nor what a library keeps from its first use on.
    (void)held(1);
    const std::vector<double> few = held(4), many = held(12);
    const double weights = sizeof(float) * 8 * (192.0 * 192 * 9 + 192 * 192);
    std::vector<double> grown;
    for (std::size_t i = 0; i < few.size(); ++i) grown.push_back((many[i] - few[i]) / weights);
    EXPECT_GT(grown[0], 1.9) << "weights and velocities";
    EXPECT_LT(grown[0], 2.5);
    EXPECT_GT(grown[1], grown[0] + 0.9) << "and gradients";
    EXPECT_LT(grown[2], grown[0] + 0.1) << "no longer";
}

// Sanitizers hold back what is freed.
inline double held_bytes() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return static_cast<double>(allocated_bytes());
#else
    return static_cast<double>(resident_bytes());
#endif
}

// Behind the step that no longer keeps gradients the system has their memory, too.
inline void expect_memory_given_back(const MakeTrainer& make) {
    const Problem problem(heavy_layers(12), 2, {192, 4, 4}, Numbers::kReal);
    const double weights = sizeof(float) * 12 * (192.0 * 192 * 9 + 192 * 192);
    // As behind trials of large kernels: the allocator no longer maps each block of such a size for itself.
    void* const large = std::malloc(std::size_t{30} << 20);
    ASSERT_NE(large, nullptr);
    *static_cast<volatile char*>(large) = 0;  // or compilers leave both calls out
    std::free(large);
    Trainer trainer = make(problem, {0.01, 0.9, 0.01});
    trainer.step();
    malloc_trim(0);  // what the build has freed
    std::vector<double> held{held_bytes()};
    for (const tt_task task : {TT_GRADIENT, TT_TRAIN}) {
        trainer.step(task);
        held.push_back(held_bytes());
    }
    EXPECT_GT(held[1], held[0] + 0.7 * weights);
    EXPECT_LT(held[2], held[0] + 0.3 * weights);
}

// Room for the largest part, though the way back goes from small weights to large ones; and threads that have
// a row or two each have no room for more.
inline void expect_room_for_a_share(const MakeTrainer& make) {
    std::vector<NodeSpec> narrowing;
    for (const double units : {1024.0, 1024.0, 512.0, 512.0})
        narrowing.push_back(node("fc" + std::to_string(narrowing.size()), "dense", {{"units", units}}));
    narrowing.push_back(loss_of(narrowing.back().name));
    const double all = sizeof(float) * (2048.0 * 1024 + 1024 * 1024 + 1024 * 512 + 512 * 512);
    EXPECT_LT(held_behind(make, Problem(narrowing, 2, {2048}, Numbers::kReal), {TT_TRAIN})[0], 2.75 * all);
    const std::vector<NodeSpec> few_rows{node("fc", "dense", {{"units", 8.0}}), loss_of("fc")};
    const double row = sizeof(float) * (1 << 18);
    EXPECT_LT(held_behind(make, Problem(few_rows, 1, {1 << 18}, Numbers::kReal), {TT_TRAIN})[0],
              (2 * 8 + 10 + 6) * row)
        << "weights, velocities, gradients, values";
}

// Who asks for gradients in between reads the right ones, and trains as if it had not asked. `tolerance`: of
// two builds in the same steps.
inline void expect_gradients_between_steps(const MakeTrainer& make, double tolerance = 0) {
    const SgdSpec sgd{0.01, 0.9, 0.01};
    const Problem problem({plain_conv("conv", 40.0, {{"kernel", 3.0}}), node("flat", "flatten"),
                           node("fc", "dense", {{"units", 150.0}}), loss_of("fc")},
                          3, {5, 4, 4}, Numbers::kReal);
    Trainer asks = make(problem, sgd), trains = make(problem, sgd);
    Trainer judge(plugin_path("reference"), problem, {}, sgd);
    const auto step = [](Trainer& one) {
        one.step();
        EXPECT_THROW((void)one.read(TT_ROLE_GRADIENT), BackendError);
    };
    for (int i = 0; i < 3; ++i) {
        asks.step(TT_GRADIENT), judge.step(TT_GRADIENT);
        expect_same(asks, judge, TT_ROLE_GRADIENT, 1e-5);
        step(asks), step(trains), judge.step();
    }
    for (const tt_role role : {TT_PARAMETER, TT_OPTIMIZER}) {
        expect_same(asks, trains, role, tolerance);
        expect_same(asks, judge, role, 1e-5);
    }
}

}  // namespace timetrial::testing
