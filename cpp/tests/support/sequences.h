// Networks over sequences, and a backend against the reference on them.
#pragma once

#include <string>
#include <vector>

#include "support/against_reference.h"
#include "support/inputs.h"
#include "support/states.h"

namespace timetrial::testing {

inline NodeSpec node_of(const std::string& name, const std::string& kind,
                        const std::vector<std::string>& inputs, const AttributeSpecs& attributes = {}) {
    return {name, kind, inputs, attributes};
}

// Tokens through two recurrent layers and what stands around them. `reads`: what each layer along time reads
// besides the values. `kind`: of the recurrent ones.
inline std::vector<NodeSpec> text_classifier(double vocabulary, double units, const AttributeSpecs& more = {},
                                             const std::vector<std::string>& reads = {"lengths"},
                                             const std::string& kind = "lstm") {
    const auto with = [&](const std::string& first) {
        std::vector<std::string> inputs{first};
        inputs.insert(inputs.end(), reads.begin(), reads.end());
        return inputs;
    };
    AttributeSpecs all = more, last = more;
    all["units"] = units, all["output"] = std::string("all");
    last["units"] = units + 2, last["output"] = std::string("last");
    return {node_of("embed", "embedding", {"tokens"}, {{"vocabulary", vocabulary}, {"units", 5.0}}),
            node_of("first", kind, with("embed"), all),
            node_of("each", "dense", {"first"}, {{"units", 6.0}}),
            node_of("curve", "tanh", {"each"}),
            node_of("second", kind, with("curve"), last),
            node_of("mean", "mean_over_time", with("curve")),
            node_of("both", "concat", {"second", "mean"}),
            node_of("last", "dense", {"both"}, {{"units", 4.0}}),
            loss_of("last")};
}

// The next token at each step, through two recurrent layers.
inline std::vector<NodeSpec> language_model(double vocabulary, double units,
                                            const AttributeSpecs& last = {}) {
    const AttributeSpecs all{{"units", units}, {"output", std::string("all")}};
    AttributeSpecs each{{"units", vocabulary}};
    each.insert(last.begin(), last.end());
    return {node_of("embed", "embedding", {"tokens"}, {{"vocabulary", vocabulary}, {"units", 5.0}}),
            node("first", "lstm", all), node("second", "lstm", all),
            node("each", each.contains("tied") ? "tied_dense" : "dense", each),
            loss_of("each", "sequence_cross_entropy")};
}

// Of the last layer: its weight is the embedding's.
inline AttributeSpecs tied(bool bias = true) { return {{"tied", std::string("embed")}, {"bias", bias}}; }

inline std::vector<InputSpec> without_lengths(std::int64_t steps) {
    std::vector<InputSpec> inputs = tokens_and_labels(steps);
    inputs.erase(inputs.begin() + 1);
    return inputs;
}

// Both forms, with biases and without.
inline std::vector<AttributeSpecs> kinds_of_gru() {
    return {{}, {{"bias", false}}, {{"reset_after", false}}, {{"reset_after", false}, {"bias", false}}};
}

inline void expect_sequence_step(const MakeTrainer& make, const std::vector<NodeSpec>& specs,
                                 const std::vector<InputSpec>& inputs, std::int64_t batch, double tolerance) {
    const Problem problem(specs, inputs, batch, Numbers::kReal);
    Trainer ours = make(problem, {}), judge(plugin_path("reference"), problem);
    const double loss = ours.step(TT_GRADIENT), expected = judge.step(TT_GRADIENT);
    EXPECT_LE(std::abs(loss - expected), tolerance * std::abs(expected));
    expect_same(ours, judge, TT_ACTIVATION, tolerance);
    expect_same(ours, judge, TT_ROLE_GRADIENT, tolerance);
    // The numbers of a step are no part of the next: states begin at 0, gradients are not added up.
    for (int step = 0; step < 3; ++step) EXPECT_NEAR(ours.step(), judge.step(), 10 * tolerance);
    expect_same(ours, judge, TT_PARAMETER, tolerance);
    EXPECT_LE(relative_l2(ours.evaluate(), judge.evaluate()), 10 * tolerance);
}

// An encoder that reads lengths, and a decoder that goes on where each sample ended; `both` also show the
// encoder's state to another layer, so that its gradient is a sum.
inline std::vector<NodeSpec> encoder_decoder(double units, const AttributeSpecs& more = {},
                                             bool both = false) {
    AttributeSpecs first = more, second = more;
    first["units"] = units, second["units"] = units;
    second["output"] = std::string(both ? "last" : "all");
    std::vector<NodeSpec> specs{
        node_of("embed", "embedding", {"tokens"}, {{"vocabulary", 9.0}, {"units", 5.0}}),
        node_of("encoder", "gru", {"embed", "lengths"}, first),
        node_of("decoder", "continued_gru", {"embed", "encoder"}, second)};
    if (both)
        specs.push_back(node_of("joined", "concat", {"decoder", "encoder"}));
    else
        specs.push_back(node_of("joined", "mean_over_time", {"decoder"}));
    specs.push_back(node("last", "dense", {{"units", 4.0}}));
    specs.push_back(loss_of("last"));
    return specs;
}

// Lengths from 1 to all, and none; one and two biases, and none; widths that fill no register.
inline void expect_sequences(const MakeTrainer& make, tt_dtype dtype, bool has_directions = true) {
    const double tolerance = dtype == TT_F64 ? 1e-12 : 5e-6;
    const auto check = [&](const std::vector<NodeSpec>& specs, std::int64_t steps, std::int64_t batch) {
        const bool has_lengths = specs[1].inputs->size() > 1;
        expect_sequence_step(make, specs, has_lengths ? tokens_and_labels(steps) : without_lengths(steps),
                             batch, tolerance);
    };
    check(text_classifier(9, 7), 6, 7);
    check(text_classifier(9, 16, {{"biases", 2.0}}), 5, 4);
    check(text_classifier(9, 19, {{"biases", 0.0}}, {}), 5, 3);
    check(text_classifier(3, 1), 1, 2);
    for (const AttributeSpecs& gru : kinds_of_gru()) {
        check(text_classifier(9, 7, gru, {"lengths"}, "gru"), 6, 7);
        check(text_classifier(9, 17, gru, {}, "gru"), 4, 3);
    }
    for (const AttributeSpecs& gru : kinds_of_gru())
        for (const bool both : {false, true})
            expect_sequence_step(make, encoder_decoder(both ? 7 : 17, gru, both), tokens_and_labels(6), 7,
                                 tolerance);
    // A state without a gradient, of a network's own input; one step.
    for (const AttributeSpecs& gru : kinds_of_gru())
        for (const std::int64_t steps : {1, 5}) {
            AttributeSpecs units = gru;
            units["units"] = 3.0;
            expect_sequence_step(
                make,
                {node_of("mean", "mean_over_time", {"series"}),
                 node_of("decoder", "continued_gru", {"series", "mean"}, units),
                 node("last", "dense", {{"units", 3.0}}), loss_of("last")},
                {{"series", TT_F32, {steps, 3}, TT_INPUT}, {"labels", TT_I64, {}, TT_TARGET}}, 4, tolerance);
        }
    for (const double biases : {0.0, 1.0, 2.0})
        check(text_classifier(9, 9, {{"biases", biases}}, {"lengths"}, "rnn"), 6, 5);
    // Backward in time, and both ways; widths that fill no register, so that the second half begins within
    // one.
    if (has_directions)
        for (const char* direction : {"reverse", "bidirectional"}) {
            AttributeSpecs more{{"direction", std::string(direction)}};
            for (const char* kind : {"lstm", "gru", "rnn"}) {
                check(text_classifier(9, 7, more, {"lengths"}, kind), 6, 7);
                check(text_classifier(9, 5, more, {}, kind), 4, 3);
            }
            more["reset_after"] = false;
            check(text_classifier(9, 17, more, {"lengths"}, "gru"), 5, 4);
            check(text_classifier(9, 1, {{"direction", std::string(direction)}, {"biases", 2.0}}), 3, 5);
        }
    // A prediction for each step, of which some do not count; classes that fill no register, and several.
    for (const double vocabulary : {3.0, 37.0})
        expect_sequence_step(make, language_model(vocabulary, 7), tokens_and_next(5), 4, tolerance);
    // With the weight of the embedding, which both of them move; there is nothing else to learn in the last.
    for (const bool bias : {true, false})
        for (const double vocabulary : {3.0, 37.0, 300.0})
            expect_sequence_step(make, language_model(vocabulary, 5, tied(bias)), tokens_and_next(5), 4,
                                 tolerance);
    AttributeSpecs scores = tied();
    scores["units"] = 9.0;
    expect_sequence_step(make,
                         {node_of("embed", "embedding", {"tokens"}, {{"vocabulary", 9.0}, {"units", 5.0}}),
                          node_of("mean", "mean_over_time", {"embed", "lengths"}),
                          node("scores", "tied_dense", scores), loss_of("scores")},
                         tokens_and_labels(6), 7, tolerance);
    // The input of the network itself, which has no gradient.
    expect_sequence_step(make,
                         {node_of("lstm", "lstm", {"series", "lengths"}, {{"units", 8.0}}),
                          node("last", "dense", {{"units", 3.0}}), loss_of("last")},
                         series_and_labels({9, 3}), 6, tolerance);
    // One that several layers read, so that gradients are added to it.
    expect_sequence_step(
        make,
        {node_of("each", "dense", {"series"}, {{"units", 4.0}}),
         node_of("one", "lstm", {"each", "lengths"}, {{"units", 5.0}, {"output", std::string("all")}}),
         node_of("two", "lstm", {"each", "lengths"}, {{"units", 5.0}, {"output", std::string("all")}}),
         node_of("sum", "add", {"one", "two"}), node_of("mean", "mean_over_time", {"sum", "lengths"}),
         node_of("plain", "mean_over_time", {"each"}), node_of("both", "concat", {"mean", "plain"}),
         node("last", "dense", {{"units", 3.0}}), loss_of("last")},
        series_and_labels({4, 3}), 5, tolerance);
}

// Layers that begin where the batch before ended, with a layer between them and without, of all states and of
// the last; widths that fill no register, and one step.
inline void expect_carried_states(const MakeTrainer& make, tt_dtype dtype = TT_F32,
                                  const std::vector<double>& widths = {1, 7, 16, 19}) {
    const double rounding = dtype == TT_F64 ? 1e-11 : 1e-5;
    const SgdSpec sgd{0.05, 0.9, 0.01};
    for (const double units : widths)
        for (const double biases : {0.0, 1.0, 2.0}) {
            const Problem problem(text_classifier(9, units, {{"biases", biases}}, {}, "stateful_lstm"),
                                  without_lengths(units > 1 ? 5 : 1), units > 7 ? 5 : 4, Numbers::kReal, 3);
            Trainer ours = make(problem, sgd), judge(plugin_path("reference"), problem, {}, sgd);
            expect_states(ours, judge, rounding, rounding);
            const auto outside = ours.evaluate();
            const std::vector<double> other(problem.weights.at("first.cell").size(), 0.5);
            ours.context().reset(), judge.context().reset();
            const double before = ours.step(TT_GRADIENT);
            ours.context().reset();
            for (Trainer* one : {&ours, &judge}) one->write(TT_STATE, "first.cell", other);
            const double behind = ours.step(TT_GRADIENT), expected = judge.step(TT_GRADIENT);
            EXPECT_LE(std::abs(behind - expected), rounding * expected);
            EXPECT_GT(std::abs(behind - before), 1e-6 * before) << "what is written counts";
            expect_same(ours, judge, TT_ROLE_GRADIENT, rounding);
            ours.context().reset();
            const auto plain = ours.evaluate();
            ours.write(TT_STATE, "second.hidden",
                       std::vector<double>(problem.weights.at("second.hidden").size(), 0.5));
            EXPECT_TRUE(ours.evaluate() == plain) << "inference begins at 0";
            EXPECT_GT(relative_l2(outside, plain), 1e-6) << "the parameters had moved";
        }
}

// Convolutions whose maps a recurrent layer reads row by row: of channels that blocked formats hold and of
// others.
inline void expect_maps_as_sequences(const MakeTrainer& make, double tolerance) {
    for (const double channels : {1.0, 3.0, 16.0})
        expect_step(make,
                    {node("conv", "conv2d", {{"channels", channels}, {"kernel", 3.0}}), node("curve", "tanh"),
                     node("rows", "map_to_sequence"), node("lstm", "lstm", {{"units", 5.0}}),
                     node("last", "dense", {{"units", 4.0}}), loss_of("last")},
                    {2, 6, 7}, 5, Numbers::kReal, tolerance);
    expect_step(
        make,
        {node("rows", "map_to_sequence"), node("each", "dense", {{"units", 3.0}}),
         node("gru", "gru", {{"units", 5.0}}), node("last", "dense", {{"units", 4.0}}), loss_of("last")},
        {2, 3, 5}, 4, Numbers::kReal, tolerance);
}

}  // namespace timetrial::testing
