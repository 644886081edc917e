// The gradient of a large dense weight in parts (backends/onednn/in_parts.h), whatever format the backend's
// trial takes: against the sum that defines it. Integers, so that both are exact.
#include "onednn/in_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace timetrial::onednn {
namespace {

using Tag = dnnl::memory::format_tag;

class InParts : public testing::TestWithParam<std::pair<Tag, const char*>> {
  protected:
    static constexpr std::int64_t samples = 3, outputs = 1050, inputs = 2048;  // 1050: blocks are padded

    InParts() : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

    Tensor integers(const dnnl::memory::dims& dims, std::int64_t seed) const {
        Tensor made = allocate(engine_, plain(dims));
        for (std::int64_t i = 0; i < made.stored_elements(); ++i)
            made.data()[i] = static_cast<float>((i * 7919 + seed) % 7 - 3);
        return made;
    }

    // sign * sum over samples of gradient[n][o] * values[n][i]
    void expect_sums(const Tensor& found, float sign) const {
        const Tensor row_major = allocate(engine_, plain({outputs, inputs}));
        reorder_call(engine_, stream_, found, row_major)();
        std::int64_t wrong = 0;
        for (std::int64_t o = 0; o < outputs; ++o)
            for (std::int64_t i = 0; i < inputs; ++i) {
                float sum = 0;
                for (std::int64_t n = 0; n < samples; ++n)
                    sum += gradient_.data()[n * outputs + o] * values_.data()[n * inputs + i];
                wrong += row_major.data()[o * inputs + i] != sign * sum;
            }
        EXPECT_EQ(wrong, 0);
    }

    void expect_bias(const Tensor& bias) const {
        for (std::int64_t o = 0; o < outputs; ++o) {
            float sum = 0;
            for (std::int64_t n = 0; n < samples; ++n) sum += gradient_.data()[n * outputs + o];
            ASSERT_EQ(bias.data()[o], sum) << o;
        }
    }

    dnnl::engine engine_;
    dnnl::stream stream_;
    Tensor values_ = integers({samples, inputs}, 1), gradient_ = integers({samples, outputs}, 2);
};

TEST_P(InParts, AreUsedAtOnceOrKept) {
    const Desc desc({outputs, inputs}, f32, GetParam().first);
    const auto slices = Slices::of(desc);
    ASSERT_TRUE(slices && slices->is_worth_it());
    Decisions decisions;
    Builder builder(engine_, stream_, Layout::kChannelsLast, Algorithm::kDirect, Way::kPadded, true,
                    decisions);
    builder.numbers = std::make_shared<layers::UpdateNumbers<float>>();
    builder.numbers->rate = 1;
    builder.numbers->momentum = builder.numbers->decay = 0;
    builder.numbers->kind = RuleKind::kSgd;
    builder.numbers->plain = true;

    Parameter weight;
    weight.value = Value(allocate(engine_, desc));
    weight.gradient = Tensor{desc, dnnl::memory(desc, engine_, DNNL_MEMORY_NONE)};
    weight.states.emplace_back("velocity", allocate(engine_, desc));
    const Tensor bias = allocate(engine_, plain({outputs}));
    Value source(values_), gradient(gradient_);
    append_in_parts(builder, {0, "dense", TT_DIRECTION_BACKWARD_WEIGHTS}, *slices, {&source, &gradient},
                    weight, &bias);
    const SharedMemory shared = builder.finish();
    ASSERT_EQ(weight.parts.size(), 5);  // the last one is smaller
    EXPECT_LT(shared.passing.get_desc().get_size(), desc.get_size() / 3);

    // Whatever lies there, padding stays 0.
    std::fill_n(static_cast<float*>(shared.passing.get_data_handle()),
                weight.parts[0].gradient.stored_elements(), std::nanf(""));
    for (const Operation& operation : builder.backward) operation.run();
    expect_sums(weight.value.made(), -1);  // of a rate of 1, from 0
    const float* stored = weight.value.made().data();
    EXPECT_TRUE(std::all_of(stored, stored + weight.value.made().stored_elements(),
                            [](float one) { return std::isfinite(one); }));
    expect_bias(bias);

    const Tensor own = allocate(engine_, desc);
    weight.keep_at(own.data());
    for (const Operation& operation : builder.backward)
        if (operation.direction != TT_DIRECTION_UPDATE) operation.run();
    expect_sums(own, 1);
    expect_sums(weight.value.made(), -1);
    for (const Operation& operation : builder.backward)
        if (operation.direction == TT_DIRECTION_UPDATE) operation.run();
    expect_sums(weight.value.made(), -2);
}

INSTANTIATE_TEST_SUITE_P(Formats, InParts,
                         testing::Values(std::pair{Tag::ab, "ab"}, std::pair{Tag::ba, "ba"},
                                         std::pair{Tag::AB8b16a, "AB8b16a"},
                                         std::pair{Tag::AB8b24a, "AB8b24a"}),
                         [](const auto& of) { return std::string(of.param.second); });

TEST(Slices, LieInOnePieceOrThereAreNone) {
    EXPECT_FALSE(Slices::of(Desc({64, 3, 11, 11}, f32, Tag::abcd)));
    EXPECT_FALSE(Slices::of(Desc({2048, 1050}, f32, Tag::AB8b16a)));  // inputs are padded
    EXPECT_FALSE(Slices::of(Desc({1056, 2048}, f32, Tag::BA16a16b)));
    EXPECT_FALSE(Slices::of(Desc({1056, 2048}, f32, Tag::AB8b16a2b)));
    EXPECT_FALSE(Slices::of(Desc({512, 512}, f32, Tag::ab))->is_worth_it());
}

}  // namespace
}  // namespace timetrial::onednn
