#include "support/trainer.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <stdexcept>

#include "network/initial.h"
#include "random/draws.h"
#include "support/inputs.h"

namespace timetrial::testing {
namespace {

void fill(std::vector<float>& values, Numbers numbers, std::uint64_t seed, const std::string& stream) {
    uniform(seed, stream, -1.0F, 1.0F, values);
    if (numbers == Numbers::kIntegers)
        for (float& value : values) value = std::round(3 * value);
}

// Below what the layers that read them take; lengths from 1.
std::vector<std::int64_t> draw_whole(const Network& network, std::uint32_t index, std::uint64_t seed) {
    const Node& input = network.node(index);
    const std::int64_t least = input.role == TT_LENGTHS ? 1 : 0, below = network.values_below(index);
    std::vector<float> draws(static_cast<std::size_t>(element_count(input.shape)));
    uniform(seed, input.name, 0.0F, 1.0F, draws);
    std::vector<std::int64_t> values;
    for (const float draw : draws)
        values.push_back(least + static_cast<std::int64_t>(draw * static_cast<float>(below - least)));
    if (input.role == TT_LENGTHS) values.front() = below - 1, values.back() = 1;
    return values;
}

}  // namespace

Problem::Problem(const std::vector<NodeSpec>& specs, std::int64_t batch_size, const Shape& input_shape,
                 Numbers numbers, std::uint64_t seed)
    : Problem(specs, images_and_labels(input_shape), batch_size, numbers, seed) {}

Problem::Problem(const std::vector<NodeSpec>& specs, const std::vector<InputSpec>& inputs,
                 std::int64_t batch_size, Numbers numbers, std::uint64_t seed)
    : network(specs, batch_size, inputs) {
    for (const Parameter& parameter : network.parameters()) {
        std::vector<float>& values = weights[parameter.name];
        values.resize(static_cast<std::size_t>(element_count(parameter.shape)));
        if (parameter.role == TT_STATE) {  // a variance is above 0
            uniform(seed, parameter.name, 0.5F, 1.5F, values);
        } else if (numbers == Numbers::kReal && parameter.shape.size() > 1) {
            draw_initial(seed, parameter, values);
        } else {
            fill(values, numbers, seed, parameter.name);
        }
    }
    images.resize(static_cast<std::size_t>(element_count(network.node(0).shape)));
    fill(images, numbers, seed, "images");
    const std::uint32_t target = network.node(network.output_loss()).inputs[1];
    const std::int64_t least = network.values_from(target), most = network.classes() - least;
    std::vector<float> draws(static_cast<std::size_t>(
        network.node(target).dtype == TT_I64 ? element_count(network.node(target).shape) : batch_size));
    uniform(seed, "labels", 0.0F, 1.0F, draws);
    for (const float draw : draws)
        labels.push_back(least + static_cast<std::int64_t>(draw * static_cast<float>(most)));
    for (const std::uint32_t index : network.inputs()) {
        const Node& input = network.node(index);
        if (input.dtype == TT_I64 && input.role != TT_TARGET)
            wholes[input.name] = draw_whole(network, index, seed);
        if (input.role != TT_MASK) continue;
        std::vector<float>& mask = masks[input.name];
        mask.resize(static_cast<std::size_t>(element_count(input.shape)));
        uniform(seed, input.name, 0.0F, 1.0F, mask);
        for (float& value : mask) value = value < 0.5F ? 0.0F : 2.0F;
    }
}

Trainer::Trainer(const std::string& plugin_path, const Problem& problem,
                 const std::map<std::string, std::string>& settings, const SgdSpec& sgd, tt_dtype dtype)
    : images(problem.images), labels(problem.labels), problem_(problem) {
    ParameterValues values;
    for (const auto& [name, weight] : problem.weights) values[name] = weight.data();
    c_network_ = std::make_unique<CNetwork>(problem.network, values);
    attributes_ = {{sizeof(tt_attribute), "learning_rate", sgd.learning_rate, nullptr, 0, nullptr},
                   {sizeof(tt_attribute), "momentum", sgd.momentum, nullptr, 0, nullptr},
                   {sizeof(tt_attribute), "weight_decay", sgd.weight_decay, nullptr, 0, nullptr}};
    sgd_ = sgd;
    for (const auto& [name, number] : sgd_.more)
        attributes_.push_back({sizeof(tt_attribute), name.c_str(), number, nullptr, 0, nullptr});
    optimizer_ = {sizeof(tt_optimizer), sgd_.rule.c_str(), static_cast<std::uint32_t>(attributes_.size()),
                  attributes_.data(),   sgd_.rates.size(), sgd_.rates.data()};
    build_ = {sizeof(tt_build),
              TT_TRAIN | TT_GRADIENT | TT_FORWARD,
              problem.network.batch_size(),
              c_network_->get(),
              &optimizer_,
              dtype,
              0,
              nullptr};
    context_ = std::make_unique<PluginContext>(Plugin(plugin_path));
    for (const auto& [name, value] : settings) context_->configure(name, value);
    context_->build(build_);
}

tt_batch Trainer::batch() {
    tensors_.clear();
    for (const std::uint32_t index : problem_.network.inputs()) {
        const Node& input = problem_.network.node(index);
        void* data = input.role == TT_MASK ? const_cast<float*>(problem_.masks.at(input.name).data())
                     : problem_.wholes.contains(input.name)
                         ? const_cast<std::int64_t*>(problem_.wholes.at(input.name).data())
                     : input.dtype == TT_I64 ? static_cast<void*>(labels.data())
                                             : images.data();
        tensors_.push_back(c_tensor(input.name, input.role, input.dtype, input.shape, data));
    }
    return {sizeof(tt_batch), static_cast<std::uint32_t>(tensors_.size()), tensors_.data()};
}

double Trainer::step(tt_task task) { return context_->step(task, batch()); }
std::vector<ProfiledTime> Trainer::profile() { return context_->profile(batch()); }

double Trainer::part(tt_part part) { return context_->part(part, batch()); }

std::vector<double> Trainer::evaluate() {
    const Node& node = problem_.network.node(problem_.network.output());
    std::vector<float> prediction(static_cast<std::size_t>(element_count(node.shape)));
    tt_tensor tensor = c_tensor(node.name, TT_ACTIVATION, TT_F32, node.shape, prediction.data());
    context_->evaluate(batch(), tensor);
    return {prediction.begin(), prediction.end()};
}

std::map<std::string, std::vector<double>> Trainer::read(tt_role role) {
    std::map<std::string, std::vector<double>> found;
    for (const TensorInfo& info : context_->tensors(role)) {
        std::vector<double> values(info.elements());
        if (info.dtype == TT_F64) {
            context_->read_tensor(info, values.data());
        } else {
            std::vector<float> single(info.elements());
            context_->read_tensor(info, single.data());
            values.assign(single.begin(), single.end());
        }
        found[info.name] = std::move(values);
    }
    return found;
}

void Trainer::write(tt_role role, const std::string& name, const std::vector<double>& values) {
    for (const TensorInfo& info : context_->tensors(role)) {
        if (info.name != name) continue;
        if (info.elements() != values.size()) throw std::invalid_argument("wrong size for " + name);
        if (info.dtype == TT_F64) return context_->write_tensor(info, values.data());
        const std::vector<float> single(values.begin(), values.end());
        return context_->write_tensor(info, single.data());
    }
    throw std::invalid_argument("no tensor " + name);
}

std::string plugin_path(const std::string& file) {
    return std::string(TIMETRIAL_NATIVE_DIR) + "/backends/" + file + ".so";
}

std::vector<std::string> variants_of(const std::string& backend) {
    std::vector<std::string> found;
    const auto add = [&](const char* isa, bool supported) {
        const std::string name = backend + "-" + isa;
        // By its manifest, which is there before anything is built: ctest's list of tests is made early.
        const auto manifest = std::filesystem::path(plugin_path(name)).replace_extension(".json");
        if (supported && std::filesystem::exists(manifest)) found.push_back(name);
    };
    add("avx512", __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"));
    add("avx2", __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
    add("sse2", true);
    return found;
}

std::string test_blas() { return TIMETRIAL_TEST_BLAS; }

double relative_l2(const std::vector<double>& a, const std::vector<double>& b) {
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < a.size() && a.size() == b.size(); ++i) {
        difference += (a[i] - b[i]) * (a[i] - b[i]);
        norm += b[i] * b[i];
    }
    const double error = difference == 0 ? 0 : std::sqrt(difference / norm);
    return a.size() == b.size() && std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

NodeSpec node(const std::string& name, const std::string& kind, const AttributeSpecs& attributes) {
    return {name, kind, std::nullopt, attributes};
}

NodeSpec loss_of(const std::string& prediction, const std::string& kind) {
    return {"loss", kind, std::vector<std::string>{prediction, "labels"}, {}};
}

std::vector<NodeSpec> lenet5() {
    return {node("conv1", "conv2d", {{"channels", 20.0}, {"kernel", 5.0}}),
            node("pool1", "max_pool2d", {{"kernel", 2.0}}),
            node("conv2", "conv2d", {{"channels", 50.0}, {"kernel", 5.0}}),
            node("pool2", "max_pool2d", {{"kernel", 2.0}}),
            node("flat", "flatten"),
            node("fc1", "dense", {{"units", 500.0}}),
            node("relu1", "relu"),
            node("fc2", "dense", {{"units", 10.0}}),
            loss_of("fc2")};
}

std::vector<NodeSpec> mlp() {
    return {node("flat", "flatten"), node("fc1", "dense", {{"units", 512.0}}),
            node("relu1", "relu"),   node("fc2", "dense", {{"units", 512.0}}),
            node("relu2", "relu"),   node("fc3", "dense", {{"units", 10.0}}),
            loss_of("fc3")};
}

}  // namespace timetrial::testing
