// What brings values to one scale: by the statistics of a batch, or by neighboring channels.
#include "network/kinds/kinds.h"

#include "network/kinds/shared.h"
#include "text/text.h"

namespace timetrial::kinds {
namespace {

// Of an attribute that is a divisor, or the least of one.
void need_above_zero(const LayerView& layer, const char* name) {
    if (const double value = std::get<double>(layer.node.attribute(name)); value <= 0)
        layer.refuse(std::string("has ") + name + " = " + number_text(value) +
                     "; expected a number above 0: it keeps the divisor from 0");
}

Shape infer_batch_norm(const LayerView& layer) {
    const Shape& input = layer.input_shape();
    if (input.size() != 4 && input.size() != 2)
        layer.refuse("needs images (N, C, H, W) or flat samples (N, F); " + gives(layer));
    need_above_zero(layer, "epsilon");
    if (const double momentum = std::get<double>(layer.node.attribute("momentum")); momentum > 1)
        layer.refuse("has momentum = " + number_text(momentum) +
                     "; expected the weight of the new value in the running ones, from 0 to 1");
    return input;
}

std::vector<Parameter> batch_norm_parameters(const LayerView& layer) {
    const std::string& name = layer.node.name;
    const Shape channels{layer.input_shape()[1]};
    return {{name + ".weight", channels, {"ones"}},
            {name + ".bias", channels, {"zeros"}},
            {name + ".running_mean", channels, {"zeros"}, TT_STATE},
            {name + ".running_var", channels, {"ones"}, TT_STATE}};
}

void check_batch_norm_training(const LayerView& layer) {
    const Shape& input = layer.input_shape();
    if (element_count(input) > input[1]) return;
    layer.refuse("would train on one value per " + std::string(input.size() == 4 ? "channel" : "feature") +
                 ", which has no variance; " + gives(layer) + ": take a batch_size of 2 or more");
}

Shape infer_local_response_norm(const LayerView& layer) {
    need_images(layer);
    const std::int64_t size = layer.node.whole("size");
    if (size % 2 == 0)
        layer.refuse("has size = " + std::to_string(size) +
                     "; expected an odd number of channels: frameworks differ in where an even window lies");
    need_above_zero(layer, "k");
    return layer.input_shape();
}

}  // namespace

std::vector<LayerKind> normalization() {
    using enum BackwardReads;
    return {
        {.name = "batch_norm",
         .backward_reads = kInput,
         .attributes = {share("epsilon", 1e-5), share("momentum", 0.1)},
         .infer_shape = infer_batch_norm,
         .parameters = batch_norm_parameters,
         .formula = "`y = w (x - mean) / sqrt(var + epsilon) + b`, for each channel of images, each feature "
                    "of flat values. While it learns, mean and variance are those of the batch (over `N`, "
                    "`H` and `W`; the variance biased, that is divided by `N H W`), and each step moves the "
                    "running ones: `running = (1 - momentum) running + momentum new`, with the biased "
                    "variance; inference takes the running ones",
         .source = "Ioffe and Szegedy, ICML 2015",
         .couples_batch = true,
         .check_training = check_batch_norm_training},
        {.name = "local_response_norm",
         .backward_reads = kInput,
         .attributes = {whole("size"), share("alpha", 1e-4), share("beta", 0.75), share("k", 1.0),
                        flag("alpha_over_size", true)},
         .infer_shape = infer_local_response_norm,
         .formula = "`y = x / (k + a sum of x^2)^beta`, the sum over the `size` channels around each; `a` is "
                    "`alpha / size`, or `alpha` itself with `alpha_over_size = false` (the paper, "
                    "TensorFlow, Chainer)",
         .source = "Krizhevsky, Sutskever and Hinton, NIPS 2012; with alpha over the size as Caffe, PyTorch, "
                   "oneDNN and MXNet have it"},
    };
}

}  // namespace timetrial::kinds
