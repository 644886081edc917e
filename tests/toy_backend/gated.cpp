// A backend outside the tree with kinds of layers of its own, `gate` and `center`, in networks that fan out
// and join. What they compute is registered in Python (gate.py), where the judge finds it; here it is once
// more, in f32.
#include <algorithm>
#include <cmath>
#include <limits>

#include "timetrial/kinds.hpp"
#include "timetrial/optimizer.hpp"

// A defect, for tests: 1: inference moves the running mean; 2: reset() leaves it; 3: nothing moves it; 4: the
// decay takes from every weight.
#ifndef PLANTED
#define PLANTED 0
#endif

namespace {

using namespace timetrial;
using Floats = std::vector<float>;

struct Node {
    Layer is;
    Floats y, gy;                  // output, and the gradient of the loss with respect to it
    std::vector<Floats> w, gw, v;  // of each parameter: value, gradient, velocity; of a state its value
    bool training = false;
};
using Nodes = std::vector<Node>;

Node& input(Nodes& nodes, const Node& node, std::size_t i = 0) { return nodes[node.is.inputs[i]]; }

void flatten_forward(Nodes& nodes, Node& node) { node.y = input(nodes, node).y; }
void flatten_backward(Nodes& nodes, Node& node) {
    for (std::size_t i = 0; i < node.y.size(); ++i) input(nodes, node).gy[i] += node.gy[i];
}

void add_forward(Nodes& nodes, Node& node) {
    std::fill(node.y.begin(), node.y.end(), 0.0f);
    for (std::size_t which = 0; which < node.is.inputs.size(); ++which)
        for (std::size_t i = 0; i < node.y.size(); ++i) node.y[i] += input(nodes, node, which).y[i];
}
void add_backward(Nodes& nodes, Node& node) {
    for (std::size_t which = 0; which < node.is.inputs.size(); ++which)
        for (std::size_t i = 0; i < node.y.size(); ++i) input(nodes, node, which).gy[i] += node.gy[i];
}

// Calls with the places of y, w and x in every product of a dense layer.
template <class Product>
void each_product(const Node& x, const Node& node, Product&& product) {
    const auto batch = std::size_t(node.is.shape[0]), units = std::size_t(node.is.shape[1]);
    const std::size_t features = x.y.size() / batch;
    for (std::size_t n = 0; n < batch; ++n)
        for (std::size_t u = 0; u < units; ++u)
            for (std::size_t f = 0; f < features; ++f)
                product(n * units + u, u * features + f, n * features + f);
}
void dense_forward(Nodes& nodes, Node& node) {
    const Node& x = input(nodes, node);
    const bool has_bias = node.w.size() > 1;
    for (std::size_t i = 0; i < node.y.size(); ++i)
        node.y[i] = has_bias ? node.w[1][i % node.w[1].size()] : 0;
    each_product(x, node, [&](auto y, auto w, auto i) { node.y[y] += node.w[0][w] * x.y[i]; });
}
void dense_backward(Nodes& nodes, Node& node) {
    Node& x = input(nodes, node);
    for (std::size_t i = 0; node.w.size() > 1 && i < node.y.size(); ++i)
        node.gw[1][i % node.w[1].size()] += node.gy[i];
    each_product(x, node, [&](auto y, auto w, auto i) {
        node.gw[0][w] += node.gy[y] * x.y[i];
        x.gy[i] += node.gy[y] * node.w[0][w];
    });
}

// y = w[f] x s(x), with s(x) = 1 / (1 + exp(-slope x)), or slope itself where form is "open".
struct Gate {
    float slope;
    bool is_open;
    explicit Gate(const Node& node)
        : slope(float(node.is.attributes.number("slope"))),
          is_open(node.is.attributes.word("form") == "open") {}
    float open(float x) const { return is_open ? slope : 1 / (1 + std::exp(-slope * x)); }
    float opens(float s) const { return is_open ? 0 : slope * s * (1 - s); }
};
void gate_forward(Nodes& nodes, Node& node) {
    const Gate gate(node);
    const Floats &x = input(nodes, node).y, &w = node.w[0];
    for (std::size_t i = 0; i < x.size(); ++i) node.y[i] = w[i % w.size()] * x[i] * gate.open(x[i]);
}
void gate_backward(Nodes& nodes, Node& node) {
    const Gate gate(node);
    Node& x = input(nodes, node);
    const Floats& w = node.w[0];
    for (std::size_t i = 0; i < node.y.size(); ++i) {
        const float s = gate.open(x.y[i]);
        x.gy[i] += node.gy[i] * w[i % w.size()] * (s + x.y[i] * gate.opens(s));
        node.gw[0][i % w.size()] += node.gy[i] * x.y[i] * s;
    }
}

// y = x - mean: of the batch in training, which moves the running mean; in inference the running one.
void center_forward(Nodes& nodes, Node& node) {
    const Floats& x = input(nodes, node).y;
    Floats& running = node.w[0];
    const std::size_t features = running.size(), batch = x.size() / features;
    for (std::size_t f = 0; f < features; ++f) {
        float mean = running[f];
        float of_batch = 0;
        for (std::size_t n = 0; n < batch; ++n) of_batch += x[n * features + f] / float(batch);
        if (PLANTED != 3 && (node.training || PLANTED == 1)) running[f] = 0.9f * mean + 0.1f * of_batch;
        if (node.training) mean = of_batch;
        for (std::size_t n = 0; n < batch; ++n) node.y[n * features + f] = x[n * features + f] - mean;
    }
}
void center_backward(Nodes& nodes, Node& node) {
    Node& x = input(nodes, node);
    const std::size_t features = node.w[0].size(), batch = node.y.size() / features;
    for (std::size_t f = 0; f < features; ++f) {
        float mean = 0;
        for (std::size_t n = 0; n < batch; ++n) mean += node.gy[n * features + f] / float(batch);
        for (std::size_t n = 0; n < batch; ++n) x.gy[n * features + f] += node.gy[n * features + f] - mean;
    }
}

struct Work {
    void (*forward)(Nodes&, Node&);
    void (*backward)(Nodes&, Node&);
};
constexpr std::array layer_kinds{Kind<Work>{"flatten", {flatten_forward, flatten_backward}},
                                 Kind<Work>{"dense", {dense_forward, dense_backward}},
                                 Kind<Work>{"add", {add_forward, add_backward}},
                                 Kind<Work>{"gate", {gate_forward, gate_backward}},
                                 Kind<Work>{"center", {center_forward, center_backward}}};
constexpr std::array losses{Kind<Work>{"softmax_cross_entropy", {}}};
constexpr auto kinds = kind_words(layer_kinds, losses);

constexpr const char* cpu[] = {"cpu", nullptr};
constexpr const char* f32[] = {"f32", nullptr};
constexpr const char* optimizers[] = {"sgd", nullptr};
constexpr const char* settings[] = {"threads", nullptr};
constexpr tt_description description{
    sizeof(tt_description), "gated",    "1",     "", "", TT_TRAIN | TT_GRADIENT | TT_FORWARD, 0, 0, cpu, f32,
    kinds.data(),           optimizers, settings};

class Gated final : public Backend {
  public:
    void configure(std::string_view name, std::string_view value) override {
        if (name != "threads") throw unknown_setting(name, description);
        setting_integer(name, value, 1, 1);
    }
    Reading read_setting(std::string_view) override { return {"1", "gated: has no threads"}; }

    void build(const tt_build& build) override {
        sgd_ = read_optimizer(build.optimizer, optimizers);
        loss_ = build.network->loss;
        prediction_ = build.network->output;
        std::vector<Layer> layers = read_layers(*build.network);
        target_ = TargetSpec(layers, *build.network);
        for (std::size_t i = 0; i < layers.size(); ++i) {
            if (i == loss_) find_kind(losses, layers[i]);
            const bool is_layer = i != loss_ && layers[i].kind != "input";
            work_.push_back(is_layer ? find_kind(layer_kinds, layers[i]).make : Work{});
            const auto size = i == loss_ ? 0 : std::size_t(elements(layers[i].shape));
            nodes_.push_back({layers[i], Floats(size), Floats(size), {}, {}, {}});
        }
        reset();
    }

    void reset() override {
        for (Node& node : nodes_) {
            if (PLANTED == 2 && node.is.kind == "center" && !node.w.empty()) continue;
            node.w.clear();
            for (const ParameterSpec& p : node.is.parameters)
                node.w.emplace_back(p.initial, p.initial + elements(p.shape));
            node.v = node.w;
            for (Floats& velocity : node.v) std::fill(velocity.begin(), velocity.end(), 0.0f);
        }
    }

    double step(uint32_t task, const tt_batch& batch) override {
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            Node& node = nodes_[i];
            node.training = task != TT_FORWARD;
            if (work_[i].forward) work_[i].forward(nodes_, node);
            if (node.is.kind != "input" || !node.is.is_read_by_a_layer) continue;
            std::copy_n(static_cast<const float*>(batch_tensor(batch, node.is.name).data), node.y.size(),
                        node.y.begin());
        }
        if (task == TT_FORWARD) return std::numeric_limits<double>::quiet_NaN();
        for (Node& node : nodes_) {
            std::fill(node.gy.begin(), node.gy.end(), 0.0f);
            node.gw = node.w;
            for (Floats& gradient : node.gw) std::fill(gradient.begin(), gradient.end(), 0.0f);
        }
        const double loss = lose(target_.of(batch).labels);
        for (std::size_t i = nodes_.size(); i-- > 0;)
            if (work_[i].backward) work_[i].backward(nodes_, nodes_[i]);
        if (task == TT_TRAIN) update();
        return loss;
    }

    void evaluate(const tt_batch& batch, float* output) override {
        step(TT_FORWARD, batch);
        std::copy(nodes_[prediction_].y.begin(), nodes_[prediction_].y.end(), output);
    }

    std::vector<tt_tensor> tensors(uint32_t role) override {
        std::vector<tt_tensor> found;
        for (std::size_t i = 0; role == TT_ACTIVATION && i < nodes_.size(); ++i)
            if (Node& node = nodes_[i]; work_[i].forward)
                found.push_back(
                    make_tensor(node.is.name.c_str(), role, TT_F32, node.is.shape, node.y.data()));
        for (Node& node : nodes_)
            for (std::size_t p = 0; p < node.is.parameters.size(); ++p) {
                const ParameterSpec& is = node.is.parameters[p];
                const auto show = [&](Floats& values) {
                    found.push_back(make_tensor(is.name.c_str(), role, TT_F32, is.shape, values.data()));
                };
                const bool is_trained = is.role == TT_PARAMETER;
                if (role == is.role) show(node.w[p]);
                if (role == TT_ROLE_GRADIENT && is_trained && !node.gw.empty()) show(node.gw[p]);
            }
        return found;
    }

  private:
    double lose(const int64_t* labels) {
        Node& x = nodes_[prediction_];
        const auto batch = std::size_t(x.is.shape[0]), classes = std::size_t(x.is.shape[1]);
        double loss = 0;
        for (std::size_t n = 0; n < batch; ++n) {
            double sum = 0;
            for (std::size_t c = 0; c < classes; ++c) sum += std::exp(double(x.y[n * classes + c]));
            loss += std::log(sum) - double(x.y[n * classes + std::size_t(labels[n])]);
            for (std::size_t c = 0; c < classes; ++c)
                x.gy[n * classes + c] =
                    float((std::exp(double(x.y[n * classes + c])) / sum - (int64_t(c) == labels[n])) /
                          double(batch));
        }
        return loss / double(batch);
    }

    void update() {
        for (Node& node : nodes_)
            for (std::size_t p = 0; p < node.w.size(); ++p)
                for (std::size_t i = 0; node.is.parameters[p].role == TT_PARAMETER && i < node.w[p].size();
                     ++i) {
                    float &w = node.w[p][i], &v = node.v[p][i];
                    v = float(sgd_.momentum) * v + node.gw[p][i];
                    if (PLANTED == 4 || node.is.parameters[p].decays) v += float(sgd_.weight_decay) * w;
                    w -= float(sgd_.learning_rate) * v;
                }
    }

    Nodes nodes_;
    std::vector<Work> work_;
    timetrial::Optimizer sgd_;
    TargetSpec target_;
    std::size_t loss_ = 0, prediction_ = 0;
};

}  // namespace

extern "C" TT_EXPORT const tt_backend* tt_backend_table(uint32_t host_abi) {
    return backend_table<Gated>(host_abi, description);
}
