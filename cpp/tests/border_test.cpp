// What backend.hpp does at the border between a plug-in's class and the C ABI.
#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <vector>

#include "timetrial/backend.hpp"

namespace timetrial {
namespace {

const char* const nothing[] = {nullptr};
constexpr tt_description description{.size = sizeof(tt_description),
                                     .name = "border",
                                     .version = "1",
                                     .library = "",
                                     .isa = "",
                                     .tasks = TT_TRAIN,
                                     .parts = 0,
                                     .flags = TT_READS_NO_DATA,
                                     .devices = nothing,
                                     .dtypes = nothing,
                                     .layers = nothing,
                                     .optimizers = nothing,
                                     .settings = nothing};

class Mine final : public Backend {
  public:
    void configure(std::string_view name, std::string_view) override {
        throw unknown_setting(name, description);
    }
    Reading read_setting(std::string_view name) override { throw unknown_setting(name, description); }
    void build(const tt_build&) override {}
    double step(uint32_t, const tt_batch&) override { return 0; }
    void evaluate(const tt_batch&, float*) override {}
    void reset() override {}
    std::vector<tt_tensor> tensors(uint32_t role) override {
        if (role == TT_OPTIMIZER) throw std::runtime_error("the states are not here");
        return {make_tensor("fc.weight", role, TT_F32, {2, 3}, weights_)};
    }

  private:
    float weights_[6] = {};
};

class Border : public testing::Test {
  protected:
    void SetUp() override { ASSERT_EQ(table_->open(&context_), TT_OK); }
    void TearDown() override { table_->close(context_); }

    const tt_backend* table_ = backend_table<Mine>(TT_BACKEND_ABI, description);
    tt_context* context_ = nullptr;
};

TEST_F(Border, TensorsThatCannotBeCountedAreNotNone) {
    EXPECT_EQ(table_->tensor_count(context_, TT_PARAMETER), 1u);
    EXPECT_EQ(table_->tensor_count(context_, TT_OPTIMIZER), TT_COUNT_FAILED);
    EXPECT_STREQ(table_->last_error(context_), "the states are not here");
}

TEST_F(Border, AStructIsFilledAsFarAsItsOwnerSays) {
    tt_tensor info{};
    info.size = offsetof(tt_tensor, name);  // an older host, whose struct ends there
    const char* const untouched = "untouched";
    info.name = untouched;
    ASSERT_EQ(table_->tensor_info(context_, TT_PARAMETER, 0, &info), TT_OK);
    EXPECT_EQ(info.size, offsetof(tt_tensor, name));
    EXPECT_EQ(info.rank, 2u);
    EXPECT_EQ(info.shape[1], 3);
    EXPECT_EQ(info.name, untouched);
    info.size = sizeof info;
    ASSERT_EQ(table_->tensor_info(context_, TT_PARAMETER, 0, &info), TT_OK);
    EXPECT_STREQ(info.name, "fc.weight");
    EXPECT_EQ(info.data, nullptr);
}

}  // namespace
}  // namespace timetrial
