/* The ABI between timetrial and a native backend.
 *
 * A backend is a shared object that exports one function, tt_backend_table(). It includes this header
 * and links nothing of timetrial, so it can be built by another compiler, later, on the user's machine.
 * C++ authors will find timetrial/backend.hpp more comfortable: it turns a class into this table.
 *
 * Rules
 * - Every struct begins with its size. A field may be read only if it lies within that size; fields are
 *   only ever appended. A change that breaks this raises TT_BACKEND_ABI.
 * - No exception and no longjmp may cross a function of the table. Functions return a tt_status;
 *   after anything but TT_OK, last_error() has the reason in words.
 * - A context is used by one thread at a time. The backend may have threads of its own.
 * - Tensors are dense and row-major. Images are N x C x H x W. N is the batch size.
 */
#ifndef TIMETRIAL_BACKEND_H
#define TIMETRIAL_BACKEND_H

#include <stdint.h>

#include "timetrial/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TT_BACKEND_ABI 1u
#define TT_MAX_RANK 6
#define TT_COUNT_FAILED UINT32_MAX

typedef enum tt_status {
    TT_OK = 0,
    TT_FAILED = 1,        /* see last_error() */
    TT_UNSUPPORTED = 2,   /* a layer, task, setting or value this backend does not have */
    TT_OUT_OF_MEMORY = 3, /* an allocation failed */
} tt_status;

typedef enum tt_dtype { TT_F32 = 1, TT_F64 = 2, TT_I64 = 3 } tt_dtype;

/* What a step does. Values are bits, so that a set of tasks is a mask. */
typedef enum tt_task {
    TT_TRAIN = 1,    /* forward, loss, backward, update */
    TT_GRADIENT = 2, /* the same without update */
    TT_FORWARD = 4,  /* forward in inference mode; no labels, no loss */
} tt_task;

/* Parts of a step, for backends that can run them one by one. Bits of a mask. */
typedef enum tt_part {
    TT_PART_FORWARD = 1,
    TT_PART_LOSS = 2,
    TT_PART_BACKWARD = 4,
    TT_PART_UPDATE = 8
} tt_part;

/* What a tensor is to the network. */
typedef enum tt_role {
    TT_PARAMETER = 1,      /* named "<node>.weight", "<node>.bias" */
    TT_STATE = 2,          /* not trained, but changed by training: running means */
    TT_ROLE_GRADIENT = 3,  /* of the loss (mean over the batch), named as its parameter; behind a step of
                              TT_GRADIENT, or the part TT_PART_BACKWARD: TT_TRAIN need not keep it */
    TT_ACTIVATION = 4,     /* output of a node, named as the node */
    TT_OPTIMIZER = 5,      /* optimizer state: "<parameter>.velocity", ... */
    TT_INPUT_GRADIENT = 6, /* of the loss with respect to a network input, named as the input */
    /* What the tensors of a batch are for, and the outputs of the nodes of kind "input". */
    TT_INPUT = 7,    /* what the first layers read: "images" */
    TT_TARGET = 8,   /* what the prediction is held against: "labels" */
    TT_MASK = 9,     /* which elements of an input count */
    TT_LENGTHS = 10, /* how much of each sample counts */
} tt_role;

typedef struct tt_tensor {
    uint32_t size;
    uint32_t dtype; /* tt_dtype */
    uint32_t role;  /* tt_role */
    uint32_t rank;
    int64_t shape[TT_MAX_RANK];
    const char* name;
    void* data;
} tt_tensor;

/* A number, a word (text is not NULL) or a list of numbers (n_numbers, also 0, where `numbers` is not NULL).
 * Integers are exact in `number` up to 2^53; a flag is 0 or 1. */
typedef struct tt_attribute {
    uint32_t size;
    const char* name;
    double number;
    const char* text;
    uint64_t n_numbers;
    const double* numbers;
} tt_attribute;

enum { TT_UNDECAYED = 1 }; /* weight decay is not for this parameter */

/* One layer. Attributes arrive complete and normalized (kernel_h, kernel_w, stride_h, ...): see
 * cpp/core/network/kinds for the kinds and what each carries. */
typedef struct tt_node {
    uint32_t size;
    const char* name;
    const char* kind;
    uint32_t n_inputs;
    const uint32_t* inputs; /* indices of earlier nodes */
    uint32_t n_attributes;
    const tt_attribute* attributes;
    tt_tensor output; /* shape with N as first extent; data is NULL */
    uint32_t n_parameters;
    /* Names, roles, shapes and initial values (f32), readable until close(): those that are trained
     * (TT_PARAMETER), then states of the layer (TT_STATE). */
    const tt_tensor* parameters;
    const uint32_t* parameter_flags; /* of each of them: a mask, TT_UNDECAYED */
} tt_node;

/* Nodes in topological order: each node's inputs stand before it. The first nodes are of kind "input", in the
 * order of a batch's tensors; the role of their output says what they are for. Every
 * other node leads to the output, which stands before the loss; a node's output may be read by several. */
typedef struct tt_network {
    uint32_t size;
    uint32_t n_nodes;
    const tt_node* nodes;
    uint32_t output; /* index of the node whose output is the prediction (N x classes) */
    uint32_t loss;   /* index of the loss node */
} tt_network;

/* A rule by its name, and its numbers (a flag is 0 or 1); optimizer.hpp has the table of rules, and
 * python/timetrial/optimizers/rules.py says what each computes. "sgd" alone: learning_rate, momentum,
 * weight_decay.
 *   g = gradient + weight_decay * w;  v = momentum * v + g  (v = 0 at first);  w = w - learning_rate * v
 * (Sutskever et al. 2013 in the form that torch.optim.SGD documents, without dampening.)
 * Where there are rates, step t since reset() (from 0) uses rates[t], and every step beyond them the last
 * one; they are readable until close(). */
typedef struct tt_optimizer {
    uint32_t size;
    const char* name;
    uint32_t n_attributes;
    const tt_attribute* attributes;
    uint64_t n_rates; /* 0: always the attribute learning_rate */
    const double* rates;
} tt_optimizer;

/* A layer at work, for a tt_definition. Arrays are dense, in the order of the node's inputs and parameters
 * (states behind them), with the shapes that network and node give them; whole numbers come as doubles. */
typedef struct tt_layer_call {
    uint32_t size;
    uint32_t node;     /* index */
    uint32_t training; /* 1 in a step that has a loss, 0 in inference */
    const tt_network* network;
    const double* const* inputs;
    const double* const* parameters;
} tt_layer_call;

/* What a layer of a kind computes that a user registered: for a backend that judges, in double. Others have
 * the kind built in, or not at all. Functions return NULL, or why they failed: words that are valid until the
 * next call. */
typedef struct tt_definition {
    uint32_t size;
    const char* kind;
    void* user;
    const char* (*forward)(void* user, const tt_layer_call* call, double* output);
    /* Adds to the gradients what the output's gradient makes of them: the chain rule. That of an input of
     * whole numbers, and of a state, is NULL. */
    const char* (*backward)(void* user, const tt_layer_call* call, const double* output,
                            const double* output_gradient, double* const* input_gradients,
                            double* const* parameter_gradients);
    /* The states behind a training step, one array each. Not called for a node without. */
    const char* (*next_states)(void* user, const tt_layer_call* call, double* const* states);
} tt_definition;

typedef struct tt_build {
    uint32_t size;
    uint32_t tasks; /* mask: what steps will be asked for */
    int64_t batch_size;
    const tt_network* network;
    const tt_optimizer* optimizer;
    uint32_t dtype;         /* of the arithmetic: one that description->dtypes lists (TT_F32, TT_F64) */
    uint32_t n_definitions; /* of the registered kinds among the network's; readable until close() */
    const tt_definition* definitions;
} tt_build;

/* The tensors of one batch, in the order of the network's input nodes, as these name and shape them. */
typedef struct tt_batch {
    uint32_t size;
    uint32_t n_tensors;
    const tt_tensor* tensors;
} tt_batch;

enum {
    TT_READS_NO_DATA = 1, /* steps never look at their batch: the loop need not gather one */
    TT_UNPROVABLE = 2,    /* computes no network, so its parity stays "unproven" */
    TT_PROFILES = 4,      /* profile() can tell where a step's time goes */
};

/* Which work of a layer a time is for. */
typedef enum tt_direction {
    TT_DIRECTION_FORWARD = 1,
    TT_DIRECTION_LOSS = 2,             /* loss and its gradient */
    TT_DIRECTION_BACKWARD = 3,         /* both of the next two, where they cannot be told apart */
    TT_DIRECTION_BACKWARD_DATA = 4,    /* the gradient of the layer's input */
    TT_DIRECTION_BACKWARD_WEIGHTS = 5, /* of its parameters, and through the states of a recurrent layer */
    TT_DIRECTION_UPDATE = 6,  /* the optimizer; the node is "*" where it updates all layers at once */
    TT_DIRECTION_REORDER = 7, /* moving data from one memory format to another for this layer */
} tt_direction;

/* The word of a direction in records and facts; "" for a number that tt_direction does not have. */
static inline const char* tt_direction_word(uint32_t direction) {
    static const char* const words[] = {
        "", "forward", "loss", "backward", "backward_data", "backward_weights", "update", "reorder"};
    return direction < sizeof words / sizeof *words ? words[direction] : "";
}

/* Receivers, given by the host. Texts are copied before they return. */
typedef void (*tt_fact_function)(void* user, const char* name, const char* value);
typedef void (*tt_time_function)(void* user, const char* node, uint32_t direction, uint64_t ns);

/* What a backend is. Lists of words end with NULL. Static: valid as long as the object is loaded. */
typedef struct tt_description {
    uint32_t size;
    const char* name;    /* "eigen" */
    const char* version; /* of the plug-in */
    const char* library; /* what computes, with version: "Eigen 3.4.1"; "" if nothing but the plug-in */
    const char* isa;     /* "avx512", "avx2", ... or "" where it does not matter */
    uint32_t tasks;      /* mask of tt_task */
    uint32_t parts;      /* mask of tt_part; 0 if steps are fused only */
    uint32_t flags;
    const char* const* devices;
    const char* const* dtypes;
    const char* const* layers;     /* kinds it can build; with TT_UNPROVABLE nobody asks */
    const char* const* optimizers; /* rules it can build, and options: see optimizer.hpp */
    const char* const* settings;   /* names configure() takes */
} tt_description;

typedef struct tt_context tt_context;

/* The table. A function that a backend does not have is NULL only where this says so. */
typedef struct tt_backend {
    uint32_t size;
    uint32_t abi_version; /* TT_BACKEND_ABI */
    const tt_description* description;

    tt_status (*open)(tt_context** context);
    /* The last failure in words; context may be NULL after a failed open(). Valid until the next call. */
    const char* (*last_error)(tt_context* context);

    /* Before build(). Unknown names and impossible values: TT_UNSUPPORTED, with the words a user needs. */
    tt_status (*configure)(tt_context* context, const char* name, const char* value);
    tt_status (*read_setting)(tt_context* context, const char* name, tt_setting_reading* reading);

    tt_status (*build)(tt_context* context, const tt_build* build);

    /* One fused step. `loss` gets the mean over the batch, before the update; NaN for TT_FORWARD. */
    tt_status (*step)(tt_context* context, uint32_t task, const tt_batch* batch, double* loss);
    /* One part of a TT_TRAIN step; called in the order of tt_part. NULL if description->parts is 0.
     * TT_PART_LOSS writes `loss`. */
    tt_status (*part)(tt_context* context, uint32_t part, const tt_batch* batch, double* loss);
    /* Inference on one batch: the prediction (N x classes, f32) into `output`. NULL if TT_UNPROVABLE. */
    tt_status (*evaluate)(tt_context* context, const tt_batch* batch, tt_tensor* output);
    /* Returns when everything asked so far has been computed. */
    tt_status (*wait)(tt_context* context);
    /* Back to the initial weights and an empty optimizer. */
    tt_status (*reset)(tt_context* context);

    /* TT_COUNT_FAILED: they could not be counted, see last_error(). */
    uint32_t (*tensor_count)(tt_context* context, uint32_t role);
    /* Name, dtype and shape (data is NULL) of tensor `index` of a role, into info->size bytes. */
    tt_status (*tensor_info)(tt_context* context, uint32_t role, uint32_t index, tt_tensor* info);
    /* Copies into (out of) tensor->data; name, role, dtype and shape as tensor_info gave them. */
    tt_status (*read_tensor)(tt_context* context, tt_tensor* tensor);
    tt_status (*write_tensor)(tt_context* context, const tt_tensor* tensor);

    void (*close)(tt_context* context);

    /* What the record should know about what was built and no setting asks for, after build(): the version
     * of the library, the kernel it chose ("kernel": "SkylakeX"), the implementation of each primitive
     * ("conv1 forward": "jit:avx512_core"). NULL, or absent in a shorter table: nothing to say. */
    tt_status (*facts)(tt_context* context, tt_fact_function say, void* user);
    /* One TT_TRAIN step with a clock around every layer and direction: `say` is called for each with the wall
     * time in nanoseconds (with several threads, that of the slowest). The clock's cost is small but not
     * nothing, so this is never the step that is measured. NULL or absent unless TT_PROFILES. */
    tt_status (*profile)(tt_context* context, const tt_batch* batch, tt_time_function say, void* user);
} tt_backend;

#if defined(__GNUC__)
#define TT_EXPORT __attribute__((visibility("default")))
#else
#define TT_EXPORT
#endif

/* The one exported symbol. `host_abi` is the TT_BACKEND_ABI of the caller; NULL says "cannot serve it". */
typedef const tt_backend* (*tt_backend_table_function)(uint32_t host_abi);
#define TT_BACKEND_TABLE_SYMBOL "tt_backend_table"
TT_EXPORT const tt_backend* tt_backend_table(uint32_t host_abi);

#ifdef __cplusplus
}
#endif

#endif /* TIMETRIAL_BACKEND_H */
