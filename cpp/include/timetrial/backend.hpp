// A backend as a C++ class: derive from timetrial::Backend, then write
//
//     extern "C" TT_EXPORT const tt_backend* tt_backend_table(uint32_t host_abi) {
//         return timetrial::backend_table<MyBackend>(host_abi, my_description);
//     }
//
// Header-only; a plug-in links nothing of timetrial. What the class throws becomes a status and its
// words at the border: Unsupported -> TT_UNSUPPORTED, std::bad_alloc -> TT_OUT_OF_MEMORY, anything
// else -> TT_FAILED. cpp/backends/reference is the example to read first.
#ifndef TIMETRIAL_BACKEND_HPP
#define TIMETRIAL_BACKEND_HPP

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "timetrial/backend.h"

namespace timetrial {

// "This backend does not have it": a row of the table, not a failure.
class Unsupported : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// What read_setting() answers: the value in force and where it was read.
struct Reading {
    std::string effective;
    std::string how_read;
};

// Time of one layer in one direction of a profiled step; `node` lives as long as the backend.
struct LayerTime {
    const char* node;
    tt_direction direction;
    uint64_t ns;
};

// For profile(): does a piece of work and keeps its wall time. Times of the same layer and direction add up.
class LayerTimer {
  public:
    template <class Work>
    void time(const char* node, tt_direction direction, Work&& work) {
        const auto before = std::chrono::steady_clock::now();
        work();
        const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - before;
        times.push_back({node, direction, static_cast<uint64_t>(took.count())});
    }
    std::vector<LayerTime> times;
};

// The same shape for a step that is not profiled: only does the work.
struct NoTimer {
    template <class Work>
    void time(const char*, tt_direction, Work&& work) const {
        work();
    }
};

using Facts = std::vector<std::pair<std::string, std::string>>;  // name, value

class Backend {
  public:
    Backend() = default;
    Backend(const Backend&) = delete;
    Backend& operator=(const Backend&) = delete;
    virtual ~Backend() = default;

    // Before build(). Throws Unsupported for a name or a value that cannot be.
    virtual void configure(std::string_view name, std::string_view value) = 0;
    virtual Reading read_setting(std::string_view name) = 0;

    // Everything `build` points to stays readable until the backend is destroyed.
    virtual void build(const tt_build& build) = 0;
    // Mean loss over the batch, before the update; NaN for TT_FORWARD.
    virtual double step(uint32_t task, const tt_batch& batch) = 0;
    // One tt_part of a TT_TRAIN step; only asked of a backend whose description has parts.
    virtual double part(uint32_t part, const tt_batch& batch);
    // Prediction (N x classes) into `output`; not asked of a backend marked TT_UNPROVABLE.
    virtual void evaluate(const tt_batch& batch, float* output);
    virtual void wait() {}
    virtual void reset() = 0;

    // The tensors of a role; names live as long as the backend. If `data` points to the values, the
    // default read_tensor() and write_tensor() copy from and to it; a backend that keeps a tensor in
    // another layout overrides them.
    virtual std::vector<tt_tensor> tensors(uint32_t role) = 0;
    virtual void read_tensor(tt_tensor& tensor);
    virtual void write_tensor(const tt_tensor& tensor);

    // What the record should know about what was built: see tt_backend::facts.
    virtual Facts facts() { return {}; }
    // One training step, layer by layer; only asked of a backend marked TT_PROFILES.
    virtual std::vector<LayerTime> profile(const tt_batch& batch);

  protected:
    // The entry of tensors() with this role and name. Throws if there is none, or if dtype or shape differ.
    tt_tensor find_tensor(const tt_tensor& like);
};

// --- Reading what the host passes -----------------------------------------------------------------

// Element i of an array from the host. The host may know longer structs than we do, so the distance
// between elements is the size they state, not ours.
template <class Struct>
const Struct& element(const Struct* array, std::size_t i) {
    return *reinterpret_cast<const Struct*>(reinterpret_cast<const char*>(array) + i * array->size);
}

struct Attribute {
    std::string name;
    double number;
    std::string text;
    std::vector<double> numbers;
};

// The attributes of a layer or an optimizer. `owner` is for error messages.
class Attributes {
  public:
    Attributes() = default;
    Attributes(std::string owner, const tt_attribute* array, std::size_t count) : owner_(std::move(owner)) {
        for (std::size_t i = 0; i < count; ++i) {
            const tt_attribute& attribute = element(array, i);
            Attribute one{attribute.name, attribute.number, attribute.text ? attribute.text : "", {}};
            // A host from before lists passes a shorter struct.
            const bool knows_lists =
                attribute.size >= offsetof(tt_attribute, numbers) + sizeof attribute.numbers;
            if (knows_lists && attribute.numbers)
                one.numbers.assign(attribute.numbers, attribute.numbers + attribute.n_numbers);
            all_.push_back(std::move(one));
        }
    }
    double number(std::string_view name) const { return get(name).number; }
    double number(std::string_view name, double otherwise) const {
        const Attribute* found = find(name);
        return found ? found->number : otherwise;
    }
    int64_t integer(std::string_view name) const { return static_cast<int64_t>(number(name)); }
    int64_t integer(std::string_view name, int64_t otherwise) const {
        return static_cast<int64_t>(number(name, static_cast<double>(otherwise)));
    }

    // "" for an attribute that is no word.
    const std::string& word(std::string_view name) const { return get(name).text; }
    const std::vector<double>& numbers(std::string_view name) const { return get(name).numbers; }

  private:
    const Attribute& get(std::string_view name) const {
        if (const Attribute* found = find(name)) return *found;
        throw std::invalid_argument(owner_ + " lacks the attribute '" + std::string(name) + "'");
    }
    const Attribute* find(std::string_view name) const {
        for (const Attribute& attribute : all_)
            if (attribute.name == name) return &attribute;
        return nullptr;
    }
    std::string owner_;
    std::vector<Attribute> all_;
};

using Shape = std::vector<int64_t>;

inline Shape shape_of(const tt_tensor& tensor) { return {tensor.shape, tensor.shape + tensor.rank}; }

inline int64_t elements(const Shape& shape) {
    int64_t product = 1;
    for (const int64_t extent : shape) product *= extent;
    return product;
}

inline std::size_t bytes_per_element(uint32_t dtype) { return dtype == TT_F32 ? 4 : 8; }

// A tensor as the ABI wants it. `name` must outlive what is returned.
inline tt_tensor make_tensor(const char* name, uint32_t role, uint32_t dtype, const Shape& shape,
                             void* data = nullptr) {
    tt_tensor tensor{};
    tensor.size = sizeof tensor;
    tensor.dtype = dtype;
    tensor.role = role;
    tensor.rank = static_cast<uint32_t>(shape.size());
    for (std::size_t i = 0; i < shape.size() && i < TT_MAX_RANK; ++i) tensor.shape[i] = shape[i];
    tensor.name = name;
    tensor.data = data;
    return tensor;
}

struct ParameterSpec {
    std::string name;
    Shape shape;
    const float* initial;          // nullptr if the host passes none (the backend reads no data)
    uint32_t role = TT_PARAMETER;  // or TT_STATE
    bool decays = true;
};

// A node of the network in C++ dress. Shapes begin with the batch size.
struct Layer {
    std::string name;
    std::string kind;
    std::vector<std::size_t> inputs;  // indices of earlier layers
    Shape shape;                      // of the output
    Attributes attributes;
    std::vector<ParameterSpec> parameters;
    uint32_t dtype = TT_F32;          // of the output
    uint32_t role = TT_ACTIVATION;    // of the output, or what an input of the network is for
    bool is_read_by_a_layer = false;  // by another one than a loss
    std::optional<std::size_t> tied =
        std::nullopt;  // index of the embedding whose weight is this layer's too

    bool is_loss() const { return shape.empty(); }  // or a sum of losses
};

inline std::vector<Layer> read_layers(const tt_network& network) {
    std::vector<Layer> layers;
    for (std::size_t i = 0; i < network.n_nodes; ++i) {
        const tt_node& node = element(network.nodes, i);
        Layer layer{node.name,         node.kind,       {}, shape_of(node.output), {}, {},
                    node.output.dtype, node.output.role};
        layer.inputs.assign(node.inputs, node.inputs + node.n_inputs);
        layer.attributes = {"layer '" + layer.name + "' (" + layer.kind + ")", node.attributes,
                            node.n_attributes};
        for (std::size_t p = 0; p < node.n_parameters; ++p) {
            const tt_tensor& tensor = element(node.parameters, p);
            // A host from before flags passes a shorter struct.
            const bool has_flags =
                node.size >= offsetof(tt_node, parameter_flags) + sizeof node.parameter_flags;
            const bool decays = !has_flags || (node.parameter_flags[p] & TT_UNDECAYED) == 0;
            layer.parameters.push_back(
                {tensor.name, shape_of(tensor), static_cast<const float*>(tensor.data), tensor.role, decays});
        }
        for (std::size_t before = 0; layer.kind == "tied_dense" && before < i; ++before)
            if (layers[before].name == layer.attributes.word("tied")) layer.tied = before;
        if (!layer.is_loss())
            for (const std::size_t input : layer.inputs) layers[input].is_read_by_a_layer = true;
        layers.push_back(std::move(layer));
    }
    return layers;
}

// The batch's tensor of this name.
inline const tt_tensor& batch_tensor(const tt_batch& batch, std::string_view name) {
    for (std::size_t i = 0; i < batch.n_tensors; ++i)
        if (const tt_tensor& tensor = element(batch.tensors, i); name == tensor.name) return tensor;
    throw std::invalid_argument("the batch has no tensor '" + std::string(name) + "'");
}

// What a loss holds the prediction (N x F) against: a class for each sample, or as many numbers. Of a
// prediction for each step (N x T x F): a class for each step, in rows of T, or -1 where nothing counts.
struct Target {
    const int64_t* labels = nullptr;
    const float* values = nullptr;
    int64_t counted = 0;  // rows of the prediction that the loss is the mean of
};

// Which of a batch's tensors that is.
struct TargetSpec {
    std::string name;
    bool is_labels = true;
    int64_t n = 0;  // rows of the prediction: samples, or their steps
    int64_t classes = 0;
    bool skips_minus_one = false;

    TargetSpec() = default;
    // Of a network with one loss.
    TargetSpec(const std::vector<Layer>& layers, const tt_network& network)
        : TargetSpec(layers, layers[network.loss]) {}
    TargetSpec(const std::vector<Layer>& layers, const Layer& loss) {
        const Layer& target = layers[loss.inputs[1]];
        const Shape& prediction = layers[loss.inputs[0]].shape;
        name = target.name;
        is_labels = target.dtype == TT_I64;
        classes = prediction.back();
        n = elements(prediction) / classes;
        skips_minus_one = loss.kind == "sequence_cross_entropy";
    }

    // Labels are checked: they are used as indices, and libraries leave some out without a word.
    Target of(const tt_batch& batch) const {
        const void* data = batch_tensor(batch, name).data;
        if (!is_labels) return {nullptr, static_cast<const float*>(data), n};
        const auto* labels = static_cast<const int64_t*>(data);
        const int64_t least = skips_minus_one ? -1 : 0;
        int64_t counted = 0;
        for (int64_t i = 0; i < n; ++i) {
            if (labels[i] < least || labels[i] >= classes)
                throw std::invalid_argument("label " + std::to_string(labels[i]) + " of " +
                                            (skips_minus_one ? "place " : "sample ") + std::to_string(i) +
                                            " is outside " + std::to_string(least) + " to " +
                                            std::to_string(classes - 1));
            if (labels[i] >= 0) ++counted;
        }
        if (counted == 0) throw std::invalid_argument("every label of the batch is -1: no place counts");
        return {labels, nullptr, counted};
    }
};

// One loss of a network, and what its share of the whole is.
struct LossSpec {
    std::size_t node = 0;
    std::size_t prediction = 0;  // the node that it is of
    TargetSpec target;
    double weight = 1;
};

// Of a network whose loss is one, that one with the weight 1; of a sum ("loss_sum") all that it adds. The
// first is that of the network's output.
inline std::vector<LossSpec> read_losses(const std::vector<Layer>& layers, const tt_network& network) {
    const Layer& whole = layers[network.loss];
    if (whole.kind != "loss_sum") return {{network.loss, whole.inputs[0], TargetSpec(layers, whole), 1}};
    const std::vector<double> weights = whole.attributes.numbers("weights");
    std::vector<LossSpec> losses;
    for (const std::size_t node : whole.inputs)
        losses.push_back(
            {node, layers[node].inputs[0], TargetSpec(layers, layers[node]), weights[losses.size()]});
    return losses;
}

// Of a backend whose training step uses each gradient where it is made.
inline Unsupported gradients_not_kept(const std::string& name) {
    return Unsupported("the gradient of '" + name +
                       "' is kept by a step of task gradient, or one that runs in parts or clips: the last "
                       "step was none of these");
}

// --- Settings ------------------------------------------------------------------------------------

inline Unsupported unknown_setting(std::string_view name, const tt_description& description) {
    std::string known;
    for (const char* const* setting = description.settings; *setting; ++setting)
        known += (known.empty() ? "" : ", ") + std::string(*setting);
    return Unsupported("backend '" + std::string(description.name) + "' has no setting '" +
                       std::string(name) + "'; it has: " + (known.empty() ? "none" : known));
}

// The value of a setting as a whole number between `least` and `most`.
inline int64_t setting_integer(std::string_view name, std::string_view value, int64_t least,
                               int64_t most = std::numeric_limits<int64_t>::max()) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc{} || end != value.data() + value.size() || number < least || number > most)
        throw Unsupported(std::string(name) + " = '" + std::string(value) +
                          "': expected a whole number from " + std::to_string(least) +
                          (most == std::numeric_limits<int64_t>::max() ? "" : " to " + std::to_string(most)));
    return number;
}

// --- The border ----------------------------------------------------------------------------------

inline double Backend::part(uint32_t, const tt_batch&) {
    throw Unsupported("the backend cannot run parts of a step");
}
inline void Backend::evaluate(const tt_batch&, float*) {
    throw Unsupported("the backend makes no predictions");
}

inline std::vector<LayerTime> Backend::profile(const tt_batch&) {
    throw Unsupported("the backend does not time its layers");
}

inline tt_tensor Backend::find_tensor(const tt_tensor& like) {
    for (const tt_tensor& tensor : tensors(like.role)) {
        if (std::strcmp(tensor.name, like.name) != 0) continue;
        if (tensor.dtype != like.dtype || shape_of(tensor) != shape_of(like))
            throw std::invalid_argument("tensor '" + std::string(like.name) +
                                        "': dtype and shape must be as tensor_info() gave them");
        return tensor;
    }
    throw std::invalid_argument("the backend has no tensor '" + std::string(like.name) + "' of role " +
                                std::to_string(like.role));
}

inline void Backend::read_tensor(tt_tensor& tensor) {
    const tt_tensor own = find_tensor(tensor);
    std::memcpy(tensor.data, own.data,
                static_cast<std::size_t>(elements(shape_of(own))) * bytes_per_element(own.dtype));
}

inline void Backend::write_tensor(const tt_tensor& tensor) {
    const tt_tensor own = find_tensor(tensor);
    std::memcpy(own.data, tensor.data,
                static_cast<std::size_t>(elements(shape_of(own))) * bytes_per_element(own.dtype));
}

}  // namespace timetrial

// The context behind the C table: the object, and the words of its last failure.
struct tt_context {
    std::unique_ptr<timetrial::Backend> backend;
    std::string error;
};

namespace timetrial {
namespace border {

// The words of a failed open(), which has no context to keep them in.
inline std::string& open_error() {
    static std::string words;
    return words;
}

inline void keep(std::string& words, const char* text) noexcept {
    try {
        words = text;
    } catch (...) {
        words.clear();
    }
}

// Runs `call`; nothing that it throws gets past this line.
template <class Call>
tt_status guarded(std::string& words, Call&& call) noexcept {
    try {
        call();
        return TT_OK;
    } catch (const Unsupported& error) {
        keep(words, error.what());
        return TT_UNSUPPORTED;
    } catch (const std::bad_alloc&) {
        keep(words, "out of memory");
        return TT_OUT_OF_MEMORY;
    } catch (const std::exception& error) {
        keep(words, error.what());
        return TT_FAILED;
    } catch (...) {
        keep(words, "an exception that is no std::exception");
        return TT_FAILED;
    }
}

// A struct from a host that is older than this header lacks fields we would read.
template <class Struct>
void check_size(const Struct& from_host, const char* name) {
    if (from_host.size < sizeof(Struct))
        throw std::invalid_argument(std::string(name) + ": the host passes " +
                                    std::to_string(from_host.size) + " bytes, this plug-in needs " +
                                    std::to_string(sizeof(Struct)));
}

template <class Class>
tt_status open(tt_context** context) {
    return guarded(open_error(), [&] {
        auto created = std::make_unique<tt_context>();
        created->backend = std::make_unique<Class>();
        *context = created.release();
    });
}

inline const char* last_error(tt_context* context) {
    return (context ? context->error : open_error()).c_str();
}
inline tt_status configure(tt_context* context, const char* name, const char* value) {
    return guarded(context->error, [&] { context->backend->configure(name, value); });
}
inline tt_status read_setting(tt_context* context, const char* name, tt_setting_reading* reading) {
    return guarded(context->error, [&] {
        check_size(*reading, "tt_setting_reading");
        const Reading answer = context->backend->read_setting(name);
        std::snprintf(reading->effective, sizeof reading->effective, "%s", answer.effective.c_str());
        std::snprintf(reading->how_read, sizeof reading->how_read, "%s", answer.how_read.c_str());
    });
}
inline tt_status build(tt_context* context, const tt_build* build) {
    return guarded(context->error, [&] {
        check_size(*build, "tt_build");
        context->backend->build(*build);
    });
}
inline tt_status step(tt_context* context, uint32_t task, const tt_batch* batch, double* loss) {
    return guarded(context->error, [&] { *loss = context->backend->step(task, *batch); });
}
inline tt_status part(tt_context* context, uint32_t part, const tt_batch* batch, double* loss) {
    return guarded(context->error, [&] {
        const double value = context->backend->part(part, *batch);
        if (part == TT_PART_LOSS) *loss = value;
    });
}
inline tt_status evaluate(tt_context* context, const tt_batch* batch, tt_tensor* output) {
    return guarded(context->error,
                   [&] { context->backend->evaluate(*batch, static_cast<float*>(output->data)); });
}
inline tt_status wait(tt_context* context) {
    return guarded(context->error, [&] { context->backend->wait(); });
}
inline tt_status reset(tt_context* context) {
    return guarded(context->error, [&] { context->backend->reset(); });
}
inline uint32_t tensor_count(tt_context* context, uint32_t role) {
    uint32_t count = TT_COUNT_FAILED;
    guarded(context->error, [&] { count = static_cast<uint32_t>(context->backend->tensors(role).size()); });
    return count;
}
inline tt_status tensor_info(tt_context* context, uint32_t role, uint32_t index, tt_tensor* info) {
    return guarded(context->error, [&] {
        tt_tensor found = context->backend->tensors(role).at(index);
        found.size = info->size;  // the caller's struct, as long as it says
        found.data = nullptr;
        std::memcpy(info, &found, std::min<std::size_t>(info->size, sizeof found));
    });
}
inline tt_status read_tensor(tt_context* context, tt_tensor* tensor) {
    return guarded(context->error, [&] { context->backend->read_tensor(*tensor); });
}
inline tt_status write_tensor(tt_context* context, const tt_tensor* tensor) {
    return guarded(context->error, [&] { context->backend->write_tensor(*tensor); });
}
inline void close(tt_context* context) { delete context; }
inline tt_status facts(tt_context* context, tt_fact_function say, void* user) {
    return guarded(context->error, [&] {
        for (const auto& [name, value] : context->backend->facts()) say(user, name.c_str(), value.c_str());
    });
}
inline tt_status profile(tt_context* context, const tt_batch* batch, tt_time_function say, void* user) {
    return guarded(context->error, [&] {
        for (const LayerTime& time : context->backend->profile(*batch))
            say(user, time.node, time.direction, time.ns);
    });
}

}  // namespace border

// The table of a class. `description` must live as long as the plug-in is loaded.
template <class Class>
const tt_backend* backend_table(uint32_t host_abi, const tt_description& description) {
    static_assert(std::is_base_of_v<Backend, Class>);
    if (host_abi != TT_BACKEND_ABI) return nullptr;
    static const tt_backend table{
        .size = sizeof(tt_backend),
        .abi_version = TT_BACKEND_ABI,
        .description = &description,
        .open = border::open<Class>,
        .last_error = border::last_error,
        .configure = border::configure,
        .read_setting = border::read_setting,
        .build = border::build,
        .step = border::step,
        .part = description.parts ? border::part : nullptr,
        .evaluate = description.flags & TT_UNPROVABLE ? nullptr : border::evaluate,
        .wait = border::wait,
        .reset = border::reset,
        .tensor_count = border::tensor_count,
        .tensor_info = border::tensor_info,
        .read_tensor = border::read_tensor,
        .write_tensor = border::write_tensor,
        .close = border::close,
        .facts = border::facts,
        .profile = description.flags & TT_PROFILES ? border::profile : nullptr,
    };
    return &table;
}

}  // namespace timetrial

#endif  // TIMETRIAL_BACKEND_HPP
