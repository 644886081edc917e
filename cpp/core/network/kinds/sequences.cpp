// What works along time: sequences (N, T, F), their lengths, tokens (N, T).
#include "network/kinds/kinds.h"

#include "network/kinds/shared.h"
#include "text/text.h"

namespace timetrial::kinds {
namespace {

constexpr const char* kDirections =
    " In the `direction` `reverse` a sample's first step is its last one that counts, and its last state the "
    "one behind step 0; `bidirectional` are both beside each other, `(N, 2 units)` or `(N, T, 2 units)`, the "
    "reverse with parameters of its own, `NAME.reverse.weight` and so on.";

constexpr const char* kLengths =
    " A second input of the role `lengths` says how many steps of each sample count; the others contribute "
    "nothing, neither forward nor backward.";

// A sequence of real numbers.
void need_sequence(const LayerView& layer) {
    const Node& input = *layer.inputs.front();
    if (input.dtype == TT_I64)
        layer.refuse("has '" + input.name +
                     "' as input, which are whole numbers: put an embedding between them");
    if (input.shape.size() != 3) layer.refuse("needs a sequence (N, T, F); " + gives(layer));
}

// Lengths lie in 1 to T.
std::int64_t lengths_below(const LayerView& layer) { return layer.input_shape()[1] + 1; }

Shape infer_embedding(const LayerView& layer) {
    const Node& tokens = *layer.inputs.front();
    if (tokens.dtype != TT_I64 || tokens.role != TT_INPUT || tokens.shape.size() != 2)
        layer.refuse("needs tokens: an input of the network of whole numbers (N, T); " + gives(layer) +
                     (tokens.dtype == TT_I64 ? "" : " real ones"));
    return {tokens.shape[0], tokens.shape[1], layer.node.whole("units")};
}

std::vector<Parameter> embedding_parameters(const LayerView& layer) {
    const std::int64_t units = layer.node.whole("units");
    return {{layer.node.name + ".weight",
             {layer.node.whole("vocabulary"), units},
             {"glorot_uniform", units, units}}};
}

const std::string& word(const LayerView& layer, const char* attribute) {
    return std::get<std::string>(layer.node.attribute(attribute));
}

std::int64_t directions(const LayerView& layer) {
    return word(layer, "direction") == "bidirectional" ? 2 : 1;
}

// (N, units), or (N, T, units); of two directions twice as many.
Shape infer_recurrent(const LayerView& layer) {
    need_sequence(layer);
    const Shape& input = layer.input_shape();
    const std::int64_t units = directions(layer) * layer.node.whole("units");
    if (word(layer, "output") == "last") return {input[0], units};
    return {input[0], input[1], units};
}

Shape infer_with_biases(const LayerView& layer) {
    const Shape shape = infer_recurrent(layer);
    if (const std::int64_t biases = layer.node.whole("biases"); biases > 2)
        layer.refuse("has biases = " + std::to_string(biases) + "; expected 0, 1 or 2");
    return shape;
}

std::vector<Parameter> recurrent_parameters(const LayerView& layer, std::int64_t gates, std::int64_t biases,
                                            const char* first_bias = "zeros") {
    const std::int64_t units = layer.node.whole("units"), features = layer.input_shape()[2];
    std::vector<Parameter> parameters;
    for (std::int64_t i = 0; i < directions(layer); ++i) {
        const std::string name = layer.node.name + (i == 0 ? "" : ".reverse");
        // The fans are those of one gate.
        parameters.push_back(
            {name + ".weight", {gates * units, features}, {"glorot_uniform", features, units}});
        parameters.push_back(
            {name + ".recurrent_weight", {gates * units, units}, {"glorot_uniform", units, units}});
        if (biases > 0) parameters.push_back({name + ".bias", {gates * units}, {first_bias}});
        if (biases > 1) parameters.push_back({name + ".recurrent_bias", {gates * units}, {}});
    }
    return parameters;
}

std::vector<Parameter> rnn_parameters(const LayerView& layer) {
    return recurrent_parameters(layer, 1, layer.node.whole("biases"));
}

std::vector<Parameter> lstm_parameters(const LayerView& layer) {
    return recurrent_parameters(layer, 4, layer.node.whole("biases"),
                                layer.node.whole("unit_forget_bias") != 0 ? "forget_ones" : "zeros");
}

std::vector<Parameter> gru_parameters(const LayerView& layer) {
    const std::int64_t biases = layer.node.whole("reset_after") != 0 ? 2 : 1;
    return recurrent_parameters(layer, 3, layer.node.whole("bias") != 0 ? biases : 0);
}

// Of all steps, as if every sample were of full length and had a state in front of its first one.
template <std::int64_t gates>
std::int64_t state_products(const LayerView& layer) {
    const Shape& input = layer.input_shape();
    const std::int64_t units = layer.node.whole("units");
    return directions(layer) * input[0] * input[1] * gates * units * units;
}

template <std::int64_t gates>
std::int64_t recurrent_products(const LayerView& layer) {
    const std::int64_t units = layer.node.whole("units");
    return state_products<gates>(layer) / units * (layer.input_shape()[2] + units);
}

Shape infer_mean_over_time(const LayerView& layer) {
    need_sequence(layer);
    return {layer.input_shape()[0], layer.input_shape()[2]};
}

Shape infer_continued(const LayerView& layer) {
    const Shape shape = infer_recurrent(layer);
    const Node& state = *layer.inputs[1];
    const Shape wanted{layer.input_shape()[0], layer.node.whole("units")};
    if (state.shape != wanted || state.dtype != TT_F32)
        layer.refuse("needs as its second input the state in front of its first step, " + shape_text(wanted) +
                     ", as the last state of another layer; '" + state.name + "' is " +
                     shape_text(state.shape) + (state.dtype == TT_F32 ? "" : " of whole numbers"));
    return shape;
}

// States of its own for each sample, which the next batch begins with.
std::vector<Parameter> stateful_lstm_parameters(const LayerView& layer) {
    std::vector<Parameter> parameters = lstm_parameters(layer);
    const Shape of_samples{layer.input_shape()[0], layer.node.whole("units")};
    for (const char* state : {".hidden", ".cell"})
        parameters.push_back({layer.node.name + state, of_samples, {}, TT_STATE});
    return parameters;
}

AttributeRule number_of_biases() { return {"biases", AttributeType::kWhole, 1.0, "", 0}; }
AttributeRule which_states() {
    return {"output", AttributeType::kWord, std::string("last"), "", 0, {"last", "all"}};
}
AttributeRule direction() {
    return {"direction",
            AttributeType::kWord,
            std::string("forward"),
            "",
            0,
            {"forward", "reverse", "bidirectional"}};
}
AttributeRule only_forward() {
    return {"direction", AttributeType::kWord, std::string("forward"), "", 0, {"forward"}};
}

}  // namespace

std::vector<LayerKind> sequences() {
    return {
        {.name = "embedding",
         .attributes = {whole("vocabulary"), whole("units")},
         .infer_shape = infer_embedding,
         .parameters = embedding_parameters,
         .formula = "`y[n,t,u] = w[x[n,t],u]`: of whole numbers `(N, T)` below `vocabulary` a row each",
         .source = "Bengio, Ducharme, Vincent and Jauvin, JMLR 3, 2003",
         .integers_below = [](const LayerView& layer) { return layer.node.whole("vocabulary"); }},
        {.name = "lstm",
         .backward_reads = BackwardReads::kInput,
         .attributes = {whole("units"), which_states(), number_of_biases(), flag("unit_forget_bias", true),
                        direction()},
         .infer_shape = infer_with_biases,
         .parameters = lstm_parameters,
         .multiply_accumulates = recurrent_products<4>,
         .products_through_time = state_products<4>,
         .formula =
             std::string("`z = w x[t] + u h[t-1] + b`, in the order of the gates `i, f, g, o`; `c[t] = "
                         "s(f) c[t-1] + s(i) tanh(g)`, `h[t] = s(o) tanh(c[t])`, where `s` is the "
                         "sigmoid; `h` and `c` begin at 0 in every batch. `u` is the "
                         "`recurrent_weight`; with `biases = 2` there is a `recurrent_bias` to be "
                         "added, whose gradient is that of `b`. `unit_forget_bias`: the part of "
                         "`b` for `f` begins at 1. `y` is the `last` state `(N, units)`, or `all` of "
                         "them `(N, T, units)`, 0 at steps that do not count.") +
             kDirections + kLengths,
         .source =
             "Gers, Schmidhuber and Cummins, Neural Computation 12, 2000; the forget gate's bias: "
             "Jozefowicz, Zaremba and Sutskever, ICML 2015; both directions: Graves and Schmidhuber, Neural "
             "Networks 18, 2005",
         .takes_lengths = true,
         .integers_below = lengths_below},
        {.name = "stateful_lstm",
         .backward_reads = BackwardReads::kInput,
         .attributes = {whole("units"), which_states(), number_of_biases(), flag("unit_forget_bias", true),
                        only_forward()},
         .infer_shape = infer_with_biases,
         .parameters = stateful_lstm_parameters,
         .multiply_accumulates = recurrent_products<4>,
         .products_through_time = state_products<4>,
         .formula =
             "An `lstm` whose `h` and `c` begin, while it learns, where the batch before ended: sample `n` "
             "goes on with what sample `n` left, in the states `NAME.hidden` and `NAME.cell`, `(N, units)`, "
             "0 at first. No gradient goes back beyond the batch (truncated back-propagation through time). "
             "In "
             "inference they begin at 0, and what was left stays",
         .source = "Williams and Peng, Neural Computation 2, 1990; carried states: Zaremba, Sutskever and "
                   "Vinyals, arXiv 1409.2329",
         .carries_state = true},
        {.name = "gru",
         .backward_reads = BackwardReads::kInput,
         .attributes = {whole("units"), which_states(), flag("bias", true), flag("reset_after", true),
                        direction()},
         .infer_shape = infer_recurrent,
         .parameters = gru_parameters,
         .multiply_accumulates = recurrent_products<3>,
         .products_through_time = state_products<3>,
         .formula =
             std::string("In the order of the gates `r, z, n`: `r` and `z` are `s(w x[t] + b + u h[t-1] + "
                         "c)`, `n = tanh(w x[t] + b + r (u h[t-1] + c))`, `h[t] = (1 - z) n + z h[t-1]`, "
                         "where `s` is the sigmoid; `h` begins at 0 in every batch. `u` is the "
                         "`recurrent_weight`, `c` the `recurrent_bias`. With `reset_after = false` the "
                         "reset comes before the product, `n = tanh(w x[t] + b + u (r h[t-1]))`, and there "
                         "is no `c`. `y` is the `last` state `(N, units)`, or `all` of them `(N, T, "
                         "units)`, 0 at steps that do not count.") +
             kDirections + kLengths,
         .source = "Cho, van Merrienboer, Gulcehre, Bahdanau, Bougares, Schwenk and Bengio, EMNLP 2014; the "
                   "reset behind the product: the first version of its preprint, arXiv 1406.1078",
         .takes_lengths = true,
         .integers_below = lengths_below},
        {.name = "continued_gru",
         .takes = Takes::kSequenceAndState,
         .backward_reads = BackwardReads::kInput,
         .attributes = {whole("units"), which_states(), flag("bias", true), flag("reset_after", true),
                        only_forward()},
         .infer_shape = infer_continued,
         .parameters = gru_parameters,
         .multiply_accumulates = recurrent_products<3>,
         .products_through_time = state_products<3>,
         .formula =
             "A `gru` that reads a sequence and, as its second input, the `h` in front of its first step "
             "`(N, units)`, which gets its gradient: a decoder, which goes on where its encoder ended",
         .source = "Cho, van Merrienboer, Gulcehre, Bahdanau, Bougares, Schwenk and Bengio, EMNLP 2014"},
        {.name = "rnn",
         .backward_reads = BackwardReads::kInput,
         .attributes = {whole("units"), which_states(), number_of_biases(), direction()},
         .infer_shape = infer_with_biases,
         .parameters = rnn_parameters,
         .multiply_accumulates = recurrent_products<1>,
         .products_through_time = state_products<1>,
         .formula =
             std::string("`h[t] = tanh(w x[t] + u h[t-1] + b)`; `h` begins at 0 in every batch. `u` is the "
                         "`recurrent_weight`; with `biases = 2` there is a `recurrent_bias` to be added, "
                         "whose gradient is that of `b`. `y` is the `last` state `(N, units)`, or `all` of "
                         "them `(N, T, units)`, 0 at steps that do not count.") +
             kDirections + kLengths,
         .source =
             "Elman, Cognitive Science 14, 1990; both directions: Schuster and Paliwal, IEEE Transactions on "
             "Signal Processing 45, 1997",
         .takes_lengths = true,
         .integers_below = lengths_below},
        {.name = "mean_over_time",
         .infer_shape = infer_mean_over_time,
         .formula = std::string("`(N, T, F)` to `(N, F)`: the mean over the steps that count.") + kLengths,
         .source = kBook,
         .takes_lengths = true,
         .integers_below = lengths_below},
    };
}

}  // namespace timetrial::kinds
