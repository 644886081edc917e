// Losses, and their sum.
#include "network/kinds/kinds.h"

#include "network/kinds/shared.h"
#include "text/text.h"

namespace timetrial::kinds {
namespace {

Shape infer_loss(const LayerView& layer) {
    const Node& labels = *layer.inputs[1];
    if (layer.input_shape().size() == 3 && labels.shape.size() == 2)
        layer.refuse("is of one label for each sample; of one for each step it is sequence_cross_entropy");
    need_flat(layer);
    if (labels.dtype != TT_I64 || labels.shape.size() != 1)
        layer.refuse("needs labels (whole numbers, one per sample) as its second input; it has '" +
                     labels.name + "'");
    return {};
}

// One for each step of a sequence.
Shape infer_sequence_loss(const LayerView& layer) {
    const Shape& prediction = layer.input_shape();
    const Node& labels = *layer.inputs[1];
    if (prediction.size() != 3) layer.refuse("needs a prediction for each step (N, T, C); " + gives(layer));
    const Shape steps{prediction[0], prediction[1]};
    if (labels.dtype != TT_I64 || labels.shape != steps)
        layer.refuse("needs labels (whole numbers, one per step) as its second input, " + shape_text(steps) +
                     "; '" + labels.name + "' is " + shape_text(labels.shape) +
                     (labels.dtype == TT_I64 ? "" : " of real numbers"));
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
    // Parts of a batch count by their labels in the one and by their samples in the other.
    for (const Node* loss : layer.inputs)
        if (const LayerKind* kind = find_layer_kind(loss->kind); kind != nullptr && kind->skips_minus_one)
            layer.refuse("has '" + loss->name + "' as input, a " + loss->kind +
                         ": a mean over places stands alone");
    const auto& weights = std::get<std::vector<double>>(layer.node.attribute("weights"));
    if (weights.size() != layer.inputs.size())
        layer.refuse("has " + std::to_string(weights.size()) + " weights for " +
                     std::to_string(layer.inputs.size()) + " losses: expected one for each");
    return {};
}

std::int64_t label_classes(const LayerView& layer) { return layer.input_shape().back(); }

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
        {.name = "sequence_cross_entropy",
         .takes = kPredictionAndTarget,
         .backward_reads = kInput,
         .infer_shape = infer_sequence_loss,
         .formula =
             "the loss of labels `(N, T)`, one for each step: the mean of `-log softmax(x[n,t])[label]` "
             "over all places of the batch whose label is not -1",
         .source = kBook,
         .couples_batch = true,  // by the number of places that count
         .integers_below = label_classes,
         .skips_minus_one = true},
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
