// Normalized values that are recomputed on the way back instead of kept.
#pragma once

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstddef>
#include <string>
#include <vector>

#include "support/against_reference.h"
#include "support/joined.h"
#include "support/states.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// Of the sanitizers' own allocator; not every compiler comes with its header.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();
#endif

namespace timetrial::testing {

// What the process has allocated and not freed.
inline std::size_t allocated_bytes() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return __sanitizer_get_current_allocated_bytes();
#else
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
#endif
}

inline NodeSpec plain_conv(const std::string& name, double channels, AttributeSpecs more) {
    more.insert({{"channels", channels}, {"bias", false}, {"padding", "same"}});
    return node(name, "conv2d", more);
}

// Values of three shapes that a convolution alone reads, behind an activation (wide, deep) and without one
// (thin), and one that two read (next).
inline std::vector<NodeSpec> inverted_residual(double wide, double thin) {
    return {plain_conv("wide", wide, {{"kernel", 1.0}}),
            node("wide_norm", "batch_norm"),
            node("wide_relu", "relu6"),
            plain_conv("deep", wide, {{"kernel", 3.0}, {"stride", 2.0}, {"groups", wide}}),
            node("deep_norm", "batch_norm"),
            node("deep_relu", "relu"),
            plain_conv("thin", thin, {{"kernel", 1.0}}),
            node("thin_norm", "batch_norm"),
            plain_conv("next", thin, {{"kernel", 3.0}}),
            node("next_norm", "batch_norm"),
            node("next_relu", "relu"),
            plain_conv("last", thin, {{"kernel", 3.0}}),
            node_of({"last", "next_relu"}, "sum", "add"),
            node("pool", "global_avg_pool2d"),
            node("fc", "dense", {{"units", 4.0}}),
            loss_of("fc")};
}

// The numbers, in training and in inference between steps; and that who reads what is not kept gets it
// computed once more.
inline void expect_recomputed(const MakeTrainer& make, double wide, double thin) {
    const SgdSpec sgd{0.01, 0.9, 0.01};
    const Problem problem(inverted_residual(wide, thin), 7, {3, 10, 12}, Numbers::kReal, 5);
    Trainer ours = make(problem, sgd), judge(plugin_path("reference"), problem, {}, sgd);
    expect_states(ours, judge, 1e-5, 6e-5);
    Trainer reader = make(problem, {}), shows(plugin_path("reference"), problem);
    reader.step(TT_GRADIENT), shows.step(TT_GRADIENT);
    expect_same(reader, shows, TT_ACTIVATION, 1e-5);
    for (const char* name : {"wide", "wide_relu", "deep", "deep_relu", "thin", "thin_norm", "next_relu"})
        EXPECT_TRUE(reader.read(TT_ACTIVATION).contains(name)) << name;
    EXPECT_EQ(ours.context().read_setting("recompute").effective, "on");
    const auto output = ours.evaluate();
    for (int again = 0; again < 20; ++again)
        EXPECT_EQ(ours.evaluate(), output) << "threads share one buffer in inference too";
}

// Every activation that a kept value has can be read, and the numbers are the same.
inline void expect_kept(const MakeTrainer& make) {
    const Problem problem(inverted_residual(6, 16), 7, {3, 10, 12}, Numbers::kReal, 5);
    Trainer ours = make(problem, {}), judge(plugin_path("reference"), problem);
    ours.step(TT_GRADIENT), judge.step(TT_GRADIENT);
    const auto shown = ours.read(TT_ACTIVATION);
    for (const char* name : {"wide_relu", "deep_relu", "thin_norm", "next_relu"})
        EXPECT_TRUE(shown.contains(name)) << name;
    expect_same(ours, judge, TT_ACTIVATION, 1e-5);
    expect_same(ours, judge, TT_ROLE_GRADIENT, 6e-5);
    EXPECT_EQ(ours.context().read_setting("recompute").effective, "off");
}

// A block of convolution, batch_norm and relu6 costs the convolution's output: the gradients and the
// normalized values of all are the same memory.
inline void expect_one_value_a_block(const MakeTrainer& make) {
    constexpr std::int64_t batch = 8, size = 40;
    const auto held = [&](int blocks) {
        std::vector<NodeSpec> specs;
        for (int block = 0; block < blocks; ++block) {
            const std::string name = std::to_string(block);
            specs.push_back(plain_conv("conv" + name, 16.0, {{"kernel", 3.0}}));
            specs.push_back(node("norm" + name, "batch_norm"));
            specs.push_back(node("relu" + name, "relu6"));
        }
        specs.push_back(node("pool", "global_avg_pool2d"));
        specs.push_back(loss_of("pool"));
        const Problem problem(specs, batch, {16, size, size}, Numbers::kReal);
        const std::size_t before = allocated_bytes();
        Trainer trainer = make(problem, {});
        trainer.step();
        return static_cast<double>(allocated_bytes() - before);
    };
    // So many blocks that it makes no odds what all share: kernels that are compiled once, and values on
    // their way to other formats, of which a timed trial may want some more or less.
    const double value = sizeof(float) * 16.0 * batch * size * size, grown = (held(36) - held(4)) / 32;
    EXPECT_GT(grown, value);
    EXPECT_LT(grown, 1.4 * value) << "and parameters";
}

}  // namespace timetrial::testing
