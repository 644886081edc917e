// A backend made outside the tree, as a user would: one file, the public header, no build system.
//     g++ -std=c++20 -O2 -shared -fPIC -I <headers> toy.cpp -o toy.so
// It knows one network: softmax regression (flatten, dense without bias, softmax_cross_entropy).
#include <cmath>
#include <limits>

#include "timetrial/optimizer.hpp"

namespace {

using namespace timetrial;

constexpr const char* cpu[] = {"cpu", nullptr};
constexpr const char* f32[] = {"f32", nullptr};
constexpr const char* kinds[] = {"input", "flatten", "dense", "softmax_cross_entropy", nullptr};
constexpr const char* optimizers[] = {"sgd", nullptr};
constexpr const char* settings[] = {"threads", nullptr};
constexpr tt_description description{sizeof(tt_description),
                                     "toy",
                                     "1",
                                     "",
                                     "",
                                     TT_TRAIN | TT_GRADIENT | TT_FORWARD,
                                     0,
                                     0,
                                     cpu,
                                     f32,
                                     kinds,
                                     optimizers,
                                     settings};

class Toy final : public Backend {
  public:
    void configure(std::string_view name, std::string_view value) override {
        if (name != "threads") throw unknown_setting(name, description);
        setting_integer(name, value, 1, 1);
    }
    Reading read_setting(std::string_view) override { return {"1", "toy: has no threads"}; }

    void build(const tt_build& build) override {
        sgd_ = read_optimizer(build.optimizer, optimizers);
        for (const Layer& layer : read_layers(*build.network)) {
            bool known = false;
            for (const char* const* kind = kinds; *kind; ++kind) known = known || layer.kind == *kind;
            if (!known) throw Unsupported("the backend has no layer '" + layer.kind + "'");
            if (layer.kind != "dense") continue;
            if (weight_.initial || layer.parameters.size() > 1)
                throw Unsupported("toy: one dense layer, without bias");
            weight_ = layer.parameters[0];
        }
        if (!weight_.initial) throw Unsupported("toy: the network has no dense layer");
        batch_ = static_cast<std::size_t>(build.batch_size);
        classes_ = static_cast<std::size_t>(weight_.shape[0]);
        features_ = static_cast<std::size_t>(weight_.shape[1]);
        reset();
    }

    Facts facts() override { return {{"toy.weights", std::to_string(w_.size())}}; }

    void reset() override {
        w_.assign(weight_.initial, weight_.initial + classes_ * features_);
        gradient_.assign(w_.size(), 0);
        velocity_.assign(w_.size(), 0);
    }

    double step(uint32_t task, const tt_batch& batch) override {
        const auto* x = static_cast<const float*>(batch_tensor(batch, "images").data);
        logits_.assign(batch_ * classes_, 0);
        for (std::size_t n = 0; n < batch_; ++n)
            for (std::size_t c = 0; c < classes_; ++c)
                for (std::size_t f = 0; f < features_; ++f)
                    logits_[n * classes_ + c] += w_[c * features_ + f] * x[n * features_ + f];
        if (task == TT_FORWARD) return std::numeric_limits<double>::quiet_NaN();
        const auto* labels = static_cast<const int64_t*>(batch_tensor(batch, "labels").data);
        gradient_.assign(w_.size(), 0);
        double loss = 0;
        for (std::size_t n = 0; n < batch_; ++n) {
            double sum = 0;
            for (std::size_t c = 0; c < classes_; ++c) sum += std::exp(double(logits_[n * classes_ + c]));
            loss += std::log(sum) - double(logits_[n * classes_ + static_cast<std::size_t>(labels[n])]);
            for (std::size_t c = 0; c < classes_; ++c) {
                const double p =
                    std::exp(double(logits_[n * classes_ + c])) / sum - (int64_t(c) == labels[n]);
                for (std::size_t f = 0; f < features_; ++f)
                    gradient_[c * features_ + f] += float(p / double(batch_)) * x[n * features_ + f];
            }
        }
        for (std::size_t i = 0; task == TT_TRAIN && i < w_.size(); ++i) {
            velocity_[i] =
                float(sgd_.momentum) * velocity_[i] + gradient_[i] + float(sgd_.weight_decay) * w_[i];
            w_[i] -= float(sgd_.learning_rate) * velocity_[i];
        }
        return loss / double(batch_);
    }

    void evaluate(const tt_batch& batch, float* output) override {
        step(TT_FORWARD, batch);
        std::copy(logits_.begin(), logits_.end(), output);
    }

    std::vector<tt_tensor> tensors(uint32_t role) override {
        if (role == TT_PARAMETER)
            return {make_tensor(weight_.name.c_str(), role, TT_F32, weight_.shape, w_.data())};
        if (role == TT_ROLE_GRADIENT)
            return {make_tensor(weight_.name.c_str(), role, TT_F32, weight_.shape, gradient_.data())};
        return {};
    }

  private:
    timetrial::Optimizer sgd_;
    ParameterSpec weight_{};
    std::size_t batch_ = 0, classes_ = 0, features_ = 0;
    std::vector<float> w_, gradient_, velocity_, logits_;
};

}  // namespace

extern "C" TT_EXPORT const tt_backend* tt_backend_table(uint32_t host_abi) {
    return backend_table<Toy>(host_abi, description);
}
