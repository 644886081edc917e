// Losses, and their sum.
#include "network/kinds/kinds.h"

#include "network/kinds/shared.h"
#include "text/text.h"

namespace timetrial::kinds {
namespace {

Shape infer_loss(const LayerView& layer) {
    need_flat(layer);
    const Node& labels = *layer.inputs[1];
    if (labels.dtype != TT_I64 || labels.shape.size() != 1)
        layer.refuse("needs labels (whole numbers, one per sample) as its second input; it has '" +
                     labels.name + "'");
    return {};
}

// Another tensor may be the target of several shapes: what is predicted of an image is flat.
Shape infer_error(const LayerView& layer) {
    need_flat(layer);
    const Node& target = *layer.inputs[1];
    if (!target.is_input() || target.dtype != TT_F32 ||
        element_count(target.shape) != element_count(layer.input_shape()))
        layer.refuse("needs an input of the network with as many numbers as its second input; " +
                     gives(layer) + ", '" + target.name + "' " + shape_text(target.shape) +
                     (target.dtype == TT_I64 ? " whole numbers: squared_error takes labels" : ""));
    return {};
}

// Without weights each loss counts as it is.
AttributeSpecs loss_weights(const LayerView& layer, const AttributeSpecs& specs) {
    AttributeSpecs translated = specs;
    translated.try_emplace("weights", std::vector<double>(layer.inputs.size(), 1.0));
    return translated;
}

Shape infer_loss_sum(const LayerView& layer) {
    const auto& weights = std::get<std::vector<double>>(layer.node.attribute("weights"));
    if (weights.size() != layer.inputs.size())
        layer.refuse("has " + std::to_string(weights.size()) + " weights for " +
                     std::to_string(layer.inputs.size()) + " losses: expected one for each");
    return {};
}

std::int64_t label_classes(const LayerView& layer) { return layer.input_shape()[1]; }

}  // namespace

std::vector<LayerKind> losses() {
    using enum BackwardReads;
    using enum Takes;
    return {
        {.name = "softmax_cross_entropy",
         .takes = kPredictionAndTarget,
         .backward_reads = kInput,
         .infer_shape = infer_loss,
         .formula = "the loss: mean over `N` of `-log softmax(x)[label]`",
         .source = kBook,
         .integers_below = label_classes},
        {.name = "squared_error",
         .takes = kPredictionAndTarget,
         .backward_reads = kInput,
         .infer_shape = infer_loss,
         .formula = "the loss: mean over `N` and `F` of `(x - onehot(label))^2`",
         .source = kBook,
         .integers_below = label_classes},
        {.name = "mean_squared_error",
         .takes = kPredictionAndTarget,
         .backward_reads = kInput,
         .infer_shape = infer_error,
         .formula = "the loss: mean over `N` and `F` of `(x - t)^2`, where `t` is an input of the network "
                    "with as many numbers as there are predicted",
         .source = kBook},
        {.name = "loss_sum",
         .takes = kLosses,
         .attributes = {{"weights", AttributeType::kList, {}, "", 0}},
         .infer_shape = infer_loss_sum,
         .formula =
             "the loss: the sum of two or more losses, each times its weight (1). What the first of them "
             "is of is the network's prediction",
         .source = "Caruana, Multitask learning, Machine Learning 28, 1997",
         .translate = loss_weights},
    };
}

}  // namespace timetrial::kinds
