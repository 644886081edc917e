// dense, with a weight of its own or that of an embedding.
#include "network/kinds/kinds.h"

#include "network/kinds/shared.h"

namespace timetrial::kinds {
namespace {

Shape infer_dense(const LayerView& layer) {
    const Shape& input = layer.input_shape();
    if (input.size() == 3) return {input[0], input[1], layer.node.whole("units")};
    need_flat(layer);
    return {input[0], layer.node.whole("units")};
}

std::vector<Parameter> dense_parameters(const LayerView& layer) {
    const std::int64_t units = layer.node.whole("units"), features = layer.input_shape().back();
    return with_bias(
        layer, {layer.node.name + ".weight", {units, features}, {"glorot_uniform", features, units}}, units);
}

// The weight is the embedding's.
std::vector<Parameter> tied_parameters(const LayerView& layer) {
    std::vector<Parameter> parameters = dense_parameters(layer);
    parameters.erase(parameters.begin());
    return parameters;
}

std::int64_t dense_products(const LayerView& layer) {
    return element_count(layer.node.shape) * layer.input_shape().back();
}

}  // namespace

std::vector<LayerKind> dense() {
    return {
        {.name = "dense",
         .attributes = {whole("units"), flag("bias", true)},
         .infer_shape = infer_dense,
         .parameters = dense_parameters,
         .multiply_accumulates = dense_products,
         .formula = "`y[n,u] = b[u] + sum over f of w[u,f] x[n,f]`; of a sequence `(N, T, F)` each step",
         .source = kBook},
        {.name = "tied_dense",
         .attributes = {whole("units"), flag("bias", true), {"tied", AttributeType::kNode}},
         .infer_shape = infer_dense,
         .parameters = tied_parameters,
         .multiply_accumulates = dense_products,
         .formula =
             "A `dense` whose weight is that of the embedding `tied`, which stands in front of it: one "
             "parameter, its gradient the sum of both. `units` are the `vocabulary`",
         .source = "Press and Wolf, EACL 2017"},
    };
}

}  // namespace timetrial::kinds
