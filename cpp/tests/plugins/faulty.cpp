// A plug-in of the least that the ABI asks for. Macros of CMakeLists.txt put one fault each into it.
#include "timetrial/backend.h"

#ifndef ABI_VERSION
#define ABI_VERSION TT_BACKEND_ABI
#endif
#ifndef TABLE_SIZE
#define TABLE_SIZE sizeof(tt_backend)
#endif
#ifndef STEP
#define STEP step
#endif
#ifndef COUNT
#define COUNT (role == TT_STATE ? 1 : 0)
#endif
#ifndef DESCRIPTION
#define DESCRIPTION &description
#endif

#ifdef NEEDS_ABSENT
extern "C" int timetrial_test_absent();
static const int absent = timetrial_test_absent();
#endif

struct tt_context {
    const char* words;
};

namespace {

const char* const none[] = {nullptr};
const char* const settings[] = {"words", nullptr};
[[maybe_unused]] const tt_description description = {
    sizeof(tt_description),           "complete", "1",  "",   "",   TT_TRAIN, 0,
    TT_READS_NO_DATA | TT_UNPROVABLE, none,       none, none, none, settings};
tt_context only_context = {""};

tt_status open(tt_context** context) {
    *context = &only_context;
    return TT_OK;
}
const char* last_error(tt_context* context) { return context->words; }
tt_status configure(tt_context* context, const char*, const char*) {
    context->words = "no such setting here";
    return TT_UNSUPPORTED;
}
tt_status read_setting(tt_context*, const char*, tt_setting_reading* reading) {
    for (int i = 0; i < TT_SETTING_TEXT; ++i) reading->effective[i] = reading->how_read[i] = 'x';
    return TT_OK;
}
tt_status build(tt_context*, const tt_build*) { return TT_OK; }
[[maybe_unused]] tt_status step(tt_context* context, uint32_t, const tt_batch*, double*) {
    context->words = "";
    return TT_FAILED;
}
tt_status wait(tt_context*) { return TT_OK; }
tt_status reset(tt_context*) { return TT_OK; }
uint32_t tensor_count(tt_context* context, [[maybe_unused]] uint32_t role) {
    context->words = "lost count";
    return COUNT;
}
tt_status tensor_info(tt_context*, uint32_t, uint32_t, tt_tensor* info) {
    info->rank = TT_MAX_RANK + 1;
    return TT_OK;
}
tt_status read_tensor(tt_context*, tt_tensor*) { return TT_OK; }
tt_status write_tensor(tt_context*, const tt_tensor*) { return TT_OK; }
void close(tt_context*) {}

[[maybe_unused]] const tt_backend table = {TABLE_SIZE,  ABI_VERSION,  DESCRIPTION, open,         last_error,
                                           configure,   read_setting, build,       STEP,         nullptr,
                                           nullptr,     wait,         reset,       tensor_count, tensor_info,
                                           read_tensor, write_tensor, close,       nullptr,      nullptr};

}  // namespace

#ifndef NO_SYMBOL
extern "C" TT_EXPORT const tt_backend* tt_backend_table([[maybe_unused]] uint32_t host_abi) {
#ifndef IGNORES_HOST
    if (host_abi != ABI_VERSION) return nullptr;
#endif
    return &table;
}
#endif
