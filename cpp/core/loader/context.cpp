#include "loader/context.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "npy/npy.h"

namespace timetrial {
namespace {

tt_tensor c_form(const TensorInfo& info, void* data) {
    tt_tensor tensor{};
    tensor.size = sizeof tensor;
    tensor.dtype = info.dtype;
    tensor.role = info.role;
    tensor.rank = static_cast<std::uint32_t>(info.shape.size());
    std::copy(info.shape.begin(), info.shape.end(), tensor.shape);
    tensor.name = info.name.c_str();
    tensor.data = data;
    return tensor;
}

// Whether the plug-in's table is long enough to have a function that was added after ABI 1 began.
bool reaches(const tt_backend& table, std::size_t end) { return table.size >= end; }

// The work of a call is part of what is timed, so a call ends when the work does.
int finished(const PluginCall& call, tt_status status) {
    return status != TT_OK ? status : call.table->wait(call.context);
}

}  // namespace

int PluginCall::step(void* user, double* loss) {
    const auto& call = *static_cast<const PluginCall*>(user);
    return finished(call, call.table->step(call.context, call.what, call.batch, loss));
}

int PluginCall::part(void* user, double* loss) {
    const auto& call = *static_cast<const PluginCall*>(user);
    return finished(call, call.table->part(call.context, call.what, call.batch, loss));
}

std::size_t TensorInfo::elements() const {
    std::size_t product = 1;
    for (const std::int64_t extent : shape) product *= static_cast<std::size_t>(extent);
    return product;
}

std::size_t TensorInfo::bytes() const { return elements() * dtype_bytes(dtype); }

PluginContext::PluginContext(const Plugin& plugin) : plugin_(plugin) {
    const tt_status status = plugin_.table().open(&context_);
    if (status == TT_OK && context_ == nullptr) throw BackendError(TT_FAILED, "open() gave no context");
    check(status);
}

PluginContext::~PluginContext() { plugin_.table().close(context_); }

void PluginContext::fail(tt_status status) {
    const char* words = plugin_.table().last_error(context_);
    const std::string text = words == nullptr || *words == '\0'
                                 ? "the backend gave status " + std::to_string(status) + " and no reason"
                                 : words;
    throw BackendError(status, text);
}

void PluginContext::configure(const std::string& name, const std::string& value) {
    check(plugin_.table().configure(context_, name.c_str(), value.c_str()));
}

SettingReading PluginContext::read_setting(const std::string& name) {
    tt_setting_reading reading{};
    reading.size = sizeof reading;
    check(plugin_.table().read_setting(context_, name.c_str(), &reading));
    reading.effective[TT_SETTING_TEXT - 1] = reading.how_read[TT_SETTING_TEXT - 1] = '\0';
    return {reading.effective, reading.how_read};
}

void PluginContext::build(const tt_build& build) { check(plugin_.table().build(context_, &build)); }

double PluginContext::step(tt_task task, const tt_batch& batch) {
    double loss = std::numeric_limits<double>::quiet_NaN();
    check(plugin_.table().step(context_, task, &batch, &loss));
    wait();
    return loss;
}

double PluginContext::part(tt_part part, const tt_batch& batch) {
    if (plugin_.table().part == nullptr)
        throw BackendError(TT_UNSUPPORTED, "the backend has fused steps only");
    double loss = std::numeric_limits<double>::quiet_NaN();
    check(plugin_.table().part(context_, part, &batch, &loss));
    wait();
    return loss;
}

void PluginContext::evaluate(const tt_batch& batch, tt_tensor& prediction) {
    if (plugin_.table().evaluate == nullptr)
        throw BackendError(TT_UNSUPPORTED, "the backend makes no predictions");
    check(plugin_.table().evaluate(context_, &batch, &prediction));
}

std::vector<Fact> PluginContext::facts() {
    std::vector<Fact> found;
    const tt_backend& table = plugin_.table();
    if (!reaches(table, offsetof(tt_backend, facts) + sizeof table.facts) || table.facts == nullptr)
        return found;
    const auto say = [](void* user, const char* name, const char* value) {
        static_cast<std::vector<Fact>*>(user)->push_back({name, value});
    };
    check(table.facts(context_, say, &found));
    return found;
}

std::vector<ProfiledTime> PluginContext::profile(const tt_batch& batch) {
    std::vector<ProfiledTime> found;
    const tt_backend& table = plugin_.table();
    if (!reaches(table, offsetof(tt_backend, profile) + sizeof table.profile) || table.profile == nullptr)
        throw BackendError(TT_UNSUPPORTED, "the backend does not time its layers");
    const auto say = [](void* user, const char* node, std::uint32_t direction, std::uint64_t ns) {
        static_cast<std::vector<ProfiledTime>*>(user)->push_back(
            {node, static_cast<tt_direction>(direction), ns});
    };
    check(table.profile(context_, &batch, say, &found));
    return found;
}

void PluginContext::wait() { check(plugin_.table().wait(context_)); }

void PluginContext::reset() { check(plugin_.table().reset(context_)); }

std::vector<TensorInfo> PluginContext::tensors(tt_role role) {
    std::vector<TensorInfo> found;
    const std::uint32_t count = plugin_.table().tensor_count(context_, role);
    if (count == TT_COUNT_FAILED) check(TT_FAILED);
    for (std::uint32_t index = 0; index < count; ++index) {
        tt_tensor info{};
        info.size = sizeof info;
        check(plugin_.table().tensor_info(context_, role, index, &info));
        const bool known = info.dtype == TT_F32 || info.dtype == TT_F64 || info.dtype == TT_I64;
        if (info.name == nullptr || info.rank > TT_MAX_RANK || !known) {
            throw BackendError(TT_FAILED, "tensor_info() described tensor " + std::to_string(index) +
                                              " of role " + std::to_string(role) + " with no name, rank " +
                                              std::to_string(info.rank) + " or dtype " +
                                              std::to_string(info.dtype));
        }
        found.push_back(
            {info.name, role, static_cast<tt_dtype>(info.dtype), {info.shape, info.shape + info.rank}});
    }
    return found;
}

void PluginContext::read_tensor(const TensorInfo& info, void* data) {
    tt_tensor tensor = c_form(info, data);
    check(plugin_.table().read_tensor(context_, &tensor));
}

void PluginContext::write_tensor(const TensorInfo& info, const void* data) {
    const tt_tensor tensor =
        c_form(info, const_cast<void*>(data));  // one struct for both directions; write only reads
    check(plugin_.table().write_tensor(context_, &tensor));
}

}  // namespace timetrial
