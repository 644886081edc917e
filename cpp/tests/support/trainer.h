// Networks with data and weights for tests, and a backend that trains them, loaded as a user's is: dlopen.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "loader/context.h"
#include "network/c_network.h"
#include "network/network.h"

namespace timetrial::testing {

// Integers keep every sum exact in f32 (below 2^24), so two right backends agree bit for bit.
enum class Numbers { kIntegers, kReal };

// A network, one batch and initial weights. Everything follows from the seed.
struct Problem {
    // "images" of that shape, and "labels".
    Problem(const std::vector<NodeSpec>& specs, std::int64_t batch_size, const Shape& input_shape,
            Numbers numbers, std::uint64_t seed = 1);
    Problem(const std::vector<NodeSpec>& specs, const std::vector<InputSpec>& inputs, std::int64_t batch_size,
            Numbers numbers, std::uint64_t seed = 1);

    Network network;
    std::map<std::string, std::vector<float>> weights;
    std::vector<float> images;
    std::vector<std::int64_t> labels;
    std::map<std::string, std::vector<float>> masks;  // 0 or 2, by the name of the input
    // Tokens, and lengths: the first sample is as long as it can be, the last has one step.
    std::map<std::string, std::vector<std::int64_t>> wholes;
};

struct SgdSpec {
    double learning_rate = 0.02;
    double momentum = 0.9;
    double weight_decay = 0.0;
    std::string rule = "sgd";
    std::map<std::string, double> more{};  // of other rules, and options
    std::vector<double> rates{};
};

// A built backend. Tensors come out as f64, whatever the backend keeps.
class Trainer {
  public:
    Trainer(const std::string& plugin_path, const Problem& problem,
            const std::map<std::string, std::string>& settings = {}, const SgdSpec& sgd = {},
            tt_dtype dtype = TT_F32);

    double step(tt_task task = TT_TRAIN);
    double part(tt_part part);
    std::vector<ProfiledTime> profile();
    std::vector<double> evaluate();
    std::map<std::string, std::vector<double>> read(tt_role role);
    void write(tt_role role, const std::string& name, const std::vector<double>& values);
    PluginContext& context() { return *context_; }

    // The batch that steps look at; changed in place by tests.
    std::vector<float> images;
    std::vector<std::int64_t> labels;

  private:
    tt_batch batch();

    const Problem& problem_;
    std::unique_ptr<CNetwork> c_network_;
    std::vector<tt_attribute> attributes_;
    SgdSpec sgd_;
    tt_optimizer optimizer_{};
    tt_build build_{};
    std::vector<tt_tensor> tensors_;
    std::unique_ptr<PluginContext> context_;
};

// Plug-ins of the build tree. variants_of() has those of a backend that this CPU can run, the best one first;
// a build with sanitizers has one.
std::string plugin_path(const std::string& file);
std::vector<std::string> variants_of(const std::string& backend);
// The CBLAS that comes from PyPI.
std::string test_blas();

// |a - b| / |b| in the L2 norm; infinity if the sizes differ or something is not finite.
double relative_l2(const std::vector<double>& a, const std::vector<double>& b);

// Shorthand for nodes of a chain.
NodeSpec node(const std::string& name, const std::string& kind, const AttributeSpecs& attributes = {});
NodeSpec loss_of(const std::string& prediction, const std::string& kind = "softmax_cross_entropy");
std::vector<NodeSpec> lenet5();
std::vector<NodeSpec> mlp();

}  // namespace timetrial::testing
