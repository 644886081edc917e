// LibTorch: ATen's operations and its autograd from C++, without Python. The step is the one that a C++ user
// writes: forward, loss.backward(), the optimizer. Built on the user's machine against the torch that is
// installed there.
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "catalog.h"
#include "graph.h"
#include "lengths.h"
#include "library.h"
#include "paths.h"
#include "profile.h"
#include "timetrial/backend.hpp"
#include "timetrial/sequence_steps.h"
#include "update.h"

namespace timetrial::libtorch {
namespace {

constexpr const char* devices[] = {"cpu", nullptr};
constexpr const char* dtypes[] = {"f32", nullptr};
// Torch's SGD keeps the rate out of the velocity.
constexpr auto optimizers = optimizer_words_without("rate_inside");
constexpr const char* settings[] = {"threads", "parallel", "torch.mkldnn", "torch.memory_format",
                                    "lengths", nullptr};
constexpr tt_description description{
    .size = sizeof(tt_description),
    .name = "libtorch",
    .version = "0.1.0",
    .library = "LibTorch " TORCH_VERSION,
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

class LibTorch final : public Backend {
  public:
    LibTorch() { check_version(); }

    void configure(std::string_view name, std::string_view value) override {
        if (name == "torch.memory_format") {
            format_ = read_format(value);
        } else if (name == "lengths") {
            along_time().way = read_way(name, value);
        } else {
            in_plain_words([&] { set_setting(name, value, description); });
        }
    }
    Reading read_setting(std::string_view name) override {
        if (name == "lengths") return {word_of(along_time().way), "its layers, which count their steps"};
        if (name != "torch.memory_format") return get_setting(name, description);
        for (const Parameter& p : graph_.parameters)
            if (p.value.dim() == 4 && !p.value.is_contiguous(format_))
                return {"mixed", "the weights of '" + p.name + "' have another format"};
        return {format_word(format_), "at::Tensor::is_contiguous() of every convolution's weights"};
    }
    Facts facts() override {
        Facts facts = built_;
        if (const int64_t most = along_time().most())
            facts.emplace_back(TT_SEQUENCE_STEPS_FACT, std::to_string(most));
        return facts;
    }

    void build(const tt_build& build) override {
        in_plain_words([&] {
            along_time().counts.clear();
            graph_ = make_graph(*build.network, format_);
            update_ = Update(read_optimizer(build.optimizer, optimizers.data()), graph_);
            built_ = library_facts();
            const bool learns = (build.tasks & (TT_TRAIN | TT_GRADIENT)) != 0;
            for (const auto& path : path_facts(*build.network, graph_, learns)) built_.push_back(path);
        });
    }

    void reset() override {
        graph_.reset();
        update_.reset();
    }

    double step(uint32_t task, const tt_batch& batch) override {
        return in_plain_words([&] {
            if (task == TT_FORWARD) {
                activations_.clear();
                predicted_ = predict(batch);
                return std::numeric_limits<double>::quiet_NaN();
            }
            const std::vector<at::Tensor> targets = graph_.read_targets(batch);
            clear_gradients();
            std::vector<at::Tensor> outputs = graph_.forward(batch, Mode::kTraining, task == TT_GRADIENT);
            const at::Tensor loss = graph_.loss_of(outputs, targets);
            loss.backward();
            if (task == TT_GRADIENT) activations_ = std::move(outputs);
            if (task == TT_TRAIN) update_.all(graph_);
            return loss.item<double>();
        });
    }

    double part(uint32_t part, const tt_batch& batch) override {
        return in_plain_words([&] {
            if (part == TT_PART_FORWARD) {
                clear_gradients();
                outputs_ = graph_.forward(batch, Mode::kTraining);
            } else if (part == TT_PART_LOSS) {
                loss_ = graph_.loss_of(outputs_, graph_.read_targets(batch));
                return loss_.item<double>();
            } else if (part == TT_PART_BACKWARD) {
                loss_.backward();
            } else {
                update_.all(graph_);
                outputs_.clear();  // as at the end of step()
                loss_.reset();
            }
            return std::numeric_limits<double>::quiet_NaN();
        });
    }

    std::vector<LayerTime> profile(const tt_batch& batch) override {
        return in_plain_words([&] {
            const std::vector<at::Tensor> targets = graph_.read_targets(batch);
            clear_gradients();
            return profile_step(graph_, update_, batch, targets);
        });
    }

    void evaluate(const tt_batch& batch, float* output) override {
        in_plain_words([&] {
            const at::Tensor prediction = predict(batch);
            view_of(output, prediction.sizes().vec(), at::kFloat).copy_(prediction);
        });
    }

    std::vector<tt_tensor> tensors(uint32_t role) override {
        std::vector<tt_tensor> found;
        for (std::size_t i = 0; i < graph_.parameters.size(); ++i) {
            const Parameter& p = graph_.parameters[i];
            if (role == TT_PARAMETER || role == TT_ROLE_GRADIENT)
                found.push_back(make_tensor(p.name.c_str(), role, TT_F32, p.value.sizes().vec()));
            for (const std::string& state : update_.names_of(i))
                if (role == TT_OPTIMIZER)
                    found.push_back(make_tensor(state.c_str(), role, TT_F32, p.value.sizes().vec()));
        }
        for (const State& state : graph_.states)
            if (role == TT_STATE)
                found.push_back(make_tensor(state.name.c_str(), role, TT_F32, state.value.sizes().vec()));
        for (const Node& node : graph_.nodes)
            if (role == TT_ACTIVATION && node.operation)
                found.push_back(make_tensor(node.name.c_str(), role, TT_F32, node.shape));
        return found;
    }

    void read_tensor(tt_tensor& tensor) override {
        in_plain_words([&] {
            const at::Tensor to = view_of(tensor.data, shape_of(tensor), at::kFloat);
            if (const State* state = find_state(tensor)) {
                to.copy_(state->read());
            } else {
                to.copy_(find(tensor).detach());
            }
        });
    }

    void write_tensor(const tt_tensor& tensor) override {
        if (tensor.role == TT_ACTIVATION)
            throw Unsupported("activations cannot be written: a step computes them");
        in_plain_words([&] {
            const at::Tensor from = view_of(tensor.data, shape_of(tensor), at::kFloat);
            if (State* state = find_state(tensor)) {
                state->write(from);
            } else {
                find(tensor).detach().copy_(from);
            }
        });
    }

  private:
    at::Tensor predict(const tt_batch& batch) const {
        const c10::InferenceMode no_graph;
        return graph_.forward(batch, Mode::kInference)[graph_.prediction];
    }

    // Without a gradient to add to, autograd keeps the one that it has computed: no copy.
    void clear_gradients() {
        activations_.clear();
        for (Parameter& parameter : graph_.parameters) parameter.value.mutable_grad().reset();
    }

    State* find_state(const tt_tensor& wanted) {
        for (State& state : graph_.states)
            if (wanted.role == TT_STATE && state.name == wanted.name) return &state;
        return nullptr;
    }

    at::Tensor find(const tt_tensor& wanted) {
        const std::string_view name = wanted.name;
        for (std::size_t i = 0; i < graph_.parameters.size(); ++i) {
            Parameter& p = graph_.parameters[i];
            if (wanted.role == TT_PARAMETER && name == p.name) return p.value;
            const std::vector<std::string>& states = update_.names_of(i);
            for (std::size_t s = 0; s < states.size(); ++s)
                if (wanted.role == TT_OPTIMIZER && name == states[s]) return update_.state(i, s);
            if (wanted.role != TT_ROLE_GRADIENT || name != p.name) continue;
            if (!p.value.grad().defined()) p.value.mutable_grad() = at::zeros_like(p.value);
            return p.value.grad();
        }
        for (std::size_t i = 0; wanted.role == TT_ACTIVATION && i < graph_.nodes.size(); ++i) {
            if (name != graph_.nodes[i].name) continue;
            if (activations_.empty() && i == graph_.prediction && predicted_.defined()) return predicted_;
            if (activations_.empty())
                throw std::runtime_error(
                    "activations are kept by a step of the task gradient only: take one first");
            return activations_.at(i);
        }
        throw std::invalid_argument("the backend has no tensor '" + std::string(name) + "' of role " +
                                    std::to_string(wanted.role));
    }

    at::MemoryFormat format_ = at::MemoryFormat::Contiguous;
    Graph graph_;
    Facts built_;  // what is asked again around every segment: found once, of the library and of paths
    Update update_;
    std::vector<at::Tensor> activations_;  // by node, of the last step of the task gradient
    at::Tensor predicted_;                 // of the last step of the task forward
    std::vector<at::Tensor> outputs_;      // between the parts of a step, of the losses' nodes
    at::Tensor loss_;
};

}  // namespace
}  // namespace timetrial::libtorch

extern "C" TT_EXPORT const tt_backend* tt_backend_table(uint32_t host_abi) {
    return timetrial::backend_table<timetrial::libtorch::LibTorch>(host_abi,
                                                                   timetrial::libtorch::description);
}
