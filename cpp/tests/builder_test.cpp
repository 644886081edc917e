// What layers of onednn build with (backends/onednn/builder.h): formats, and memory that is lent.
#include "onednn/builder.h"

#include <gtest/gtest.h>

namespace timetrial::onednn {
namespace {

using Tag = dnnl::memory::format_tag;

class Building : public testing::Test {
  protected:
    Building() : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

    Builder builder(Layout layout) {
        return {engine_, stream_, layout, Algorithm::kDirect, Way::kPadded, true, decisions_};
    }

    dnnl::engine engine_;
    dnnl::stream stream_;
    Decisions decisions_;
};

TEST_F(Building, HandsNoPlainImagesToPooling) {
    const auto handed = [&](Layout layout, const dnnl::memory::dims& images) {
        return builder(layout).handed_to_pooling(plain(images));
    };
    const dnnl::memory::dims images{2, 64, 5, 6}, fill_no_block{2, 20, 5, 6};
    const Tag blocked = may_use(dnnl_cpu_isa_avx512_core) ? Tag::aBcd16b : Tag::aBcd8b;
    EXPECT_EQ(handed(Layout::kChannelsLast, images), Desc(images, f32, Tag::acdb));
    EXPECT_EQ(handed(Layout::kBlocked, images), Desc(images, f32, blocked));
    EXPECT_EQ(handed(Layout::kBlocked, fill_no_block), Desc(fill_no_block, f32, Tag::acdb));
    for (const dnnl::memory::dims& as_they_are : {dnnl::memory::dims{2, 4, 5, 6}, {2, 64, 1, 1}, {2, 64}})
        EXPECT_EQ(handed(Layout::kBlocked, as_they_are), plain(as_they_are));
    const Desc not_plain(images, f32, Tag::aBcd16b);
    EXPECT_EQ(builder(Layout::kChannelsLast).handed_to_pooling(not_plain), not_plain);
}

TEST_F(Building, LendsAgainWhatNobodyHolds) {
    Builder lends = builder(Layout::kChannelsLast);
    Tensor first = lends.lend(plain({64, 5}));
    const Tensor second = lends.lend(plain({64, 5}));
    EXPECT_NE(second.data(), first.data());
    const Tensor of_an_operation = first.unleased();
    first = {};
    EXPECT_EQ(lends.lend(plain({64, 4})).data(), of_an_operation.data());
}

}  // namespace
}  // namespace timetrial::onednn
