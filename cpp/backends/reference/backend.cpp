// The reference backend: differentiation in double precision with plain loops, one thread. Each layer is what
// it computes, written once; no gradient is written anywhere. It judges the fast backends, and it is the
// example for those who write one: read function.h first, then dense.h and terms.h, then the step below.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "catalog.h"
#include "defined.h"
#include "disturb.h"
#include "rules.h"

namespace timetrial::reference {
namespace {

constexpr const char* devices[] = {"cpu", nullptr};
constexpr const char* dtypes[] = {"f32", nullptr};  // of weights and data; it computes in f64
constexpr auto optimizers = optimizer_words();
constexpr const char* ties_name = "reference.ties";
constexpr std::array conventions = std::to_array<std::pair<const char*, Ties>>({{"first", {}},
                                                                                {"all", {true, 0}},
                                                                                {"first-half", {false, 0.5}},
                                                                                {"first-one", {false, 1}},
                                                                                {"all-half", {true, 0.5}},
                                                                                {"all-one", {true, 1}}});
constexpr const char* rounding_name = "reference.rounding";
constexpr const char* settings[] = {"threads", ties_name, rounding_name, nullptr};
constexpr tt_description description{
    .size = sizeof(tt_description),
    .name = "reference",
    .version = "1",
    .library = "",
    .isa = "",
    .tasks = TT_TRAIN | TT_GRADIENT | TT_FORWARD,
    .parts = TT_PART_FORWARD | TT_PART_LOSS | TT_PART_BACKWARD | TT_PART_UPDATE,
    .flags = TT_PROFILES,
    .devices = devices,
    .dtypes = dtypes,
    .layers = kinds.data(),
    .optimizers = optimizers.data(),
    .settings = settings,
};

// A node of the graph: its output, and the function that computes it from the outputs of other nodes.
struct Node {
    std::string name;
    Tensor output;
    std::unique_ptr<Function> function;  // null for an input of the network
    std::vector<Tensor*> inputs;
    bool is_read = false;   // an input of the network that a layer reads
    bool is_whole = false;  // its values are whole numbers, which have no gradient
    bool is_mask = false;   // read where something is learned
    std::size_t first = 0;  // of its inputs, among the nodes
    // What takes the output's place in the next step that learns and, behind that step, what the function
    // itself had made (write_tensor).
    Values shown;
    bool is_shown = false;   // it has something for the next one
    bool was_shown = false;  // it took the place in the last step
};

struct WeightedLoss {
    std::string name;
    std::unique_ptr<Loss> loss;
    LossSpec spec;
};

class Reference final : public Backend {
  public:
    void configure(std::string_view name, std::string_view value) override {
        if (name == ties_name) {
            const auto known =
                std::ranges::find_if(conventions, [value](const auto& one) { return one.first == value; });
            if (known == conventions.end())
                throw Unsupported("reference.ties = '" + std::string(value) +
                                  "': expected first or all, where rectifiers have the slope 1/2 or 1 at 0 "
                                  "first-half, first-one, all-half or all-one");
            ties_ = *known;
            return;
        }
        if (name == rounding_name) {
            rounding_ = static_cast<uint64_t>(setting_integer(name, value, 0, 1000));
            return;
        }
        if (name != "threads") throw unknown_setting(name, description);
        setting_integer(name, value, 1, 1);
    }

    Reading read_setting(std::string_view name) override {
        if (name == ties_name) return {ties_.first, "reference: it is its own"};
        if (name == rounding_name) return {std::to_string(rounding_), "reference: it is its own"};
        if (name != "threads") throw unknown_setting(name, description);
        return {"1", "reference: has no threads of its own"};
    }

    void build(const tt_build& build) override {
        const std::vector<Layer> layers = read_layers(*build.network);
        nodes_.clear();
        nodes_.resize(layers.size());
        for (std::size_t i = 0; i < layers.size(); ++i) {
            const Layer& layer = layers[i];
            nodes_[i].name = layer.name;
            if (layer.is_loss()) continue;
            nodes_[i].output = Tensor(layer.shape);
            nodes_[i].is_read = layer.kind == "input" && layer.is_read_by_a_layer;
            nodes_[i].is_whole = layer.dtype == TT_I64;
            nodes_[i].is_mask = layer.role == TT_MASK;
            if (layer.kind == "input") continue;
            nodes_[i].function = make(build, layer, i);
            for (const std::size_t input : layer.inputs) nodes_[i].inputs.push_back(&nodes_[input].output);
            nodes_[i].first = layer.inputs.front();
            for (const ParameterSpec& spec : layer.parameters) {
                Function& made = *nodes_[i].function;
                (spec.role == TT_STATE ? made.states : made.parameters)
                    .push_back(std::make_unique<Parameter>(spec));
            }
            if (layer.tied) nodes_[i].function->tied = nodes_[*layer.tied].function->parameters[0].get();
        }
        prediction_ = build.network->output;
        losses_.clear();
        for (const LossSpec& spec : read_losses(layers, *build.network)) {
            const Layer& loss = layers[spec.node];
            losses_.push_back({loss.name, find_kind(losses, loss).make(loss.attributes), spec});
        }
        optimizer_ = read_optimizer(build.optimizer, optimizers.data());
        for_each_parameter([this](Parameter& p) {
            for (const std::string& name : optimizer_.states_of(p.name))
                p.states.emplace_back(name, Values(p.size()));
        });
        reset();
    }

    void reset() override {
        for_each_parameter([](Parameter& parameter) {
            std::copy_n(parameter.initial, parameter.size(), parameter.value.begin());
            for (auto& [name, values] : parameter.states) std::fill(values.begin(), values.end(), 0.0);
        });
        for_each_state(
            [](Parameter& state) { std::copy_n(state.initial, state.size(), state.value.begin()); });
        steps_ = 0;
    }

    double step(uint32_t task, const tt_batch& batch) override {
        NoTimer timer;
        forward(batch, timer, task == TT_FORWARD ? Mode::kInference : Mode::kTraining);
        if (task == TT_FORWARD) return std::numeric_limits<double>::quiet_NaN();
        const double loss = lose(batch, timer);
        backward(batch, timer);
        if (task == TT_TRAIN) update(timer);
        return loss;
    }

    double part(uint32_t part, const tt_batch& batch) override {
        NoTimer timer;
        double loss = std::numeric_limits<double>::quiet_NaN();
        if (part == TT_PART_FORWARD) forward(batch, timer, Mode::kTraining);
        if (part == TT_PART_LOSS) loss = lose(batch, timer);
        if (part == TT_PART_BACKWARD) backward(batch, timer);
        if (part == TT_PART_UPDATE) update(timer);
        return loss;
    }

    std::vector<LayerTime> profile(const tt_batch& batch) override {
        LayerTimer timer;
        forward(batch, timer, Mode::kTraining);
        lose(batch, timer);
        backward(batch, timer);
        update(timer);
        return timer.times;
    }

    void evaluate(const tt_batch& batch, float* output) override {
        NoTimer timer;
        forward(batch, timer, Mode::kInference);
        for (const double value : nodes_[prediction_].output.value) *output++ = static_cast<float>(value);
    }

    std::vector<tt_tensor> tensors(uint32_t role) override {
        std::vector<tt_tensor> found;
        for_each_parameter([&](Parameter& p) {
            if (role == TT_PARAMETER)
                found.push_back(make_tensor(p.name.c_str(), role, TT_F64, p.shape, p.value.data()));
            if (role == TT_ROLE_GRADIENT)
                found.push_back(make_tensor(p.name.c_str(), role, TT_F64, p.shape, p.gradient.data()));
            for (auto& [name, values] : p.states)
                if (role == TT_OPTIMIZER)
                    found.push_back(make_tensor(name.c_str(), role, TT_F64, p.shape, values.data()));
        });
        if (role == TT_STATE)
            for_each_state([&](Parameter& s) {
                found.push_back(make_tensor(s.name.c_str(), role, TT_F64, s.shape, s.value.data()));
            });
        for (Node& node : nodes_) {
            Tensor& t = node.output;
            Values& made = node.was_shown ? node.shown : t.value;
            if (role == TT_ACTIVATION && node.function)
                found.push_back(make_tensor(node.name.c_str(), role, TT_F64, t.shape, made.data()));
            if (role == TT_INPUT_GRADIENT && node.is_read && !node.is_whole && !node.is_mask)
                found.push_back(make_tensor(node.name.c_str(), role, TT_F64, t.shape, t.gradient.data()));
        }
        return found;
    }

    // An activation that is written is what a contender shows of the next step that learns. It takes the
    // place of what the node computes, and the functions behind read it: so each is judged by the values that
    // the contender itself had in front of it. What the node made of those is read behind that step.
    void write_tensor(const tt_tensor& tensor) override {
        if (tensor.role != TT_ACTIVATION) return Backend::write_tensor(tensor);
        find_tensor(tensor);  // by name and shape
        const auto* values = static_cast<const double*>(tensor.data);
        for (Node& node : nodes_) {
            if (node.name != tensor.name) continue;
            node.shown.assign(values, values + node.output.size());
            node.is_shown = true;
        }
    }

  private:
    std::unique_ptr<Function> make(const tt_build& build, const Layer& layer, std::size_t node) const {
        for (std::size_t i = 0; i < build.n_definitions; ++i)
            if (const tt_definition& one = element(build.definitions, i); layer.kind == one.kind)
                return std::make_unique<Defined>(one, *build.network, node);
        std::unique_ptr<Function> made = find_kind(functions, layer).make(layer.attributes);
        made->take_ties(ties_.second);
        return made;
    }

    // Neither the loss nor what it alone reads: nothing flows through them.
    static bool has_values(const Node& node) { return node.function || node.is_read; }

    // In the order of the nodes, in which each stands behind the one it reads.
    template <class Timer>
    void forward(const tt_batch& batch, Timer& timer, Mode mode) {
        for (Node& node : nodes_) {
            if (!has_values(node) || (node.is_mask && mode == Mode::kInference)) continue;
            timer.time(node.name.c_str(), TT_DIRECTION_FORWARD, [&] {
                if (node.function) {
                    node.function->forward(node.inputs, node.output, mode);
                    node.was_shown = mode == Mode::kTraining && std::exchange(node.is_shown, false);
                    if (node.was_shown) {
                        if (nodes_[node.first].function) node.function->decide(node.inputs, node.shown);
                        std::swap(node.output.value, node.shown);
                    }
                } else {
                    const void* values = batch_tensor(batch, node.name).data;
                    const auto copy = [&](const auto* from) {
                        std::copy_n(from, node.output.size(), node.output.value.begin());
                    };
                    if (node.is_whole)
                        copy(static_cast<const int64_t*>(values));
                    else
                        copy(static_cast<const float*>(values));
                }
            });
        }
    }

    template <class Timer>
    double lose(const tt_batch& batch, Timer& timer) {
        double sum = 0;
        for (WeightedLoss& one : losses_)
            timer.time(one.name.c_str(), TT_DIRECTION_LOSS, [&] {
                sum += one.spec.weight *
                       one.loss->forward(nodes_[one.spec.prediction].output, one.spec.target.of(batch));
            });
        return sum;
    }

    // From the loss back. A node's gradient is complete when all nodes behind it have been visited.
    template <class Timer>
    void backward(const tt_batch& batch, Timer& timer) {
        for (Node& node : nodes_) {
            if (!has_values(node)) continue;
            timer.time(node.name.c_str(), TT_DIRECTION_BACKWARD, [&] {
                std::fill(node.output.gradient.begin(), node.output.gradient.end(), 0.0);
                for_each_parameter(
                    node, [](Parameter& p) { std::fill(p.gradient.begin(), p.gradient.end(), 0.0); });
            });
        }
        for (WeightedLoss& one : losses_)
            timer.time(one.name.c_str(), TT_DIRECTION_LOSS, [&] {
                one.loss->backward(nodes_[one.spec.prediction].output, one.spec.target.of(batch),
                                   one.spec.weight);
            });
        Disturbance disturbance(rounding_);
        for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
            if (!node->function) continue;
            timer.time(node->name.c_str(), TT_DIRECTION_BACKWARD, [&] {
                node->function->disturbance = rounding_ == 0 ? nullptr : &disturbance;
                if (rounding_ != 0) disturbance.of(node->output.gradient);
                node->function->backward(node->inputs, node->output);
                node->function->keep_states(node->inputs);
            });
        }
    }

    // All gradients are there: clipping needs their norm, over every parameter of the network.
    template <class Timer>
    void update(Timer& timer) {
        double squares = 0;
        for_each_parameter([&](const Parameter& p) {
            for (const double g : p.gradient) squares += g * g;
        });
        const UpdateStep now = optimizer_.at(steps_++, std::sqrt(squares));
        for (Node& node : nodes_) {
            if (!node.function || node.function->parameters.empty()) continue;
            timer.time(node.name.c_str(), TT_DIRECTION_UPDATE,
                       [&] { for_each_parameter(node, [&](Parameter& p) { descend(p, optimizer_, now); }); });
        }
    }

    template <class Call>
    static void for_each_parameter(Node& node, Call&& call) {
        if (node.function)
            for (auto& parameter : node.function->parameters) call(*parameter);
    }

    template <class Call>
    void for_each_parameter(Call&& call) {
        for (Node& node : nodes_) for_each_parameter(node, call);
    }

    template <class Call>
    void for_each_state(Call&& call) {
        for (Node& node : nodes_)
            if (node.function)
                for (auto& state : node.function->states) call(*state);
    }

    std::vector<Node> nodes_;
    std::size_t prediction_ = 0;
    std::vector<WeightedLoss> losses_;  // what is minimized is their sum
    Optimizer optimizer_;
    uint64_t steps_ = 0;  // since reset()
    std::pair<const char*, Ties> ties_ = conventions.front();
    uint64_t rounding_ = 0;  // a draw of how the gradients between layers are disturbed; 0: not at all
};

}  // namespace
}  // namespace timetrial::reference

extern "C" TT_EXPORT const tt_backend* tt_backend_table(uint32_t host_abi) {
    return timetrial::backend_table<timetrial::reference::Reference>(host_abi,
                                                                     timetrial::reference::description);
}
