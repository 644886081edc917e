// Layers along time: what the core says of them, and their definitions in the reference.
#include "support/sequences.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "network/initial.h"
#include "support/differences.h"

namespace timetrial::testing {
namespace {

template <class Call>
std::string refusal(Call&& call) {
    try {
        call();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "no error";
}

std::string refused(const NodeSpec& layer, std::vector<InputSpec> inputs = series_and_labels({6, 3})) {
    return refusal([&] { Network({layer, node("flat", "flatten"), loss_of("flat")}, 2, inputs); });
}

#define EXPECT_WORDS(text, words) EXPECT_NE((text).find(words), std::string::npos) << (text)

NodeSpec lstm(const AttributeSpecs& attributes = {}, const std::string& second = "lengths") {
    AttributeSpecs all{{"units", 4.0}, {"output", std::string("all")}};
    for (const auto& [name, value] : attributes) all[name] = value;
    return node_of("lstm", "lstm", {"series", second}, all);
}

TEST(Sequences, HaveShapesParametersAndWork) {
    const Network network(text_classifier(50, 8, {{"biases", 2.0}}), 3, tokens_and_labels(6));
    const auto node_named = [&](const char* name) { return network.node(network.index_of(name)); };
    EXPECT_EQ(node_named("embed").shape, (Shape{3, 6, 5}));
    EXPECT_EQ(node_named("first").shape, (Shape{3, 6, 8}));
    EXPECT_EQ(node_named("each").shape, (Shape{3, 6, 6}));
    EXPECT_EQ(node_named("second").shape, (Shape{3, 10}));
    EXPECT_EQ(node_named("mean").shape, (Shape{3, 6}));
    const Node first = node_named("first");
    ASSERT_EQ(first.parameters.size(), 4u);
    const char* names[] = {"first.weight", "first.recurrent_weight", "first.bias", "first.recurrent_bias"};
    const Shape shapes[] = {{32, 5}, {32, 8}, {32}, {32}};
    const char* initial[] = {"glorot_uniform", "glorot_uniform", "forget_ones", "zeros"};
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(first.parameters[i].name, names[i]);
        EXPECT_EQ(first.parameters[i].shape, shapes[i]);
        EXPECT_EQ(first.parameters[i].initializer.name, initial[i]);
    }
    EXPECT_EQ(network.multiply_accumulates(network.index_of("first")).forward, 3 * 6 * 32 * (5 + 8));
    EXPECT_EQ(network.multiply_accumulates(network.index_of("each")).forward, 3 * 6 * 8 * 6);
    EXPECT_EQ(network.values_below(network.index_of("tokens")), 50);
    EXPECT_EQ(network.values_below(network.index_of("lengths")), 7);
}

// The share of a machine's peak was too low, by up to a third, where nothing before the layer learns.
TEST(Sequences, CountTheGradientThroughTimeThoughNothingBeforeThemLearns) {
    const std::int64_t of_inputs = 3 * 6 * 32 * 5, of_states = 3 * 6 * 32 * 8;
    const auto work = [](bool learns) {
        std::vector<NodeSpec> specs = {
            node_of("lstm", "lstm", {learns ? "first" : "series", "lengths"}, {{"units", 8.0}}),
            node_of("last", "dense", {"lstm"}, {{"units", 2.0}}),
            node_of("loss", "softmax_cross_entropy", {"last", "labels"})};
        if (learns) specs.insert(specs.begin(), node_of("first", "dense", {"series"}, {{"units", 5.0}}));
        const Network network(specs, 3, series_and_labels({6, 5}));
        return network.multiply_accumulates(network.index_of("lstm"));
    };
    const PassWork first = work(false), later = work(true);
    EXPECT_EQ(first.forward, of_inputs + of_states);
    EXPECT_EQ(first.backward_data, 0);
    EXPECT_EQ(first.backward_weights, of_inputs + 2 * of_states);
    EXPECT_EQ(later.backward_data, of_inputs);
    EXPECT_EQ(later.of(TT_TRAIN), 3 * later.forward);
    // Of other kinds: as many gates, in each direction.
    const auto of = [](const std::string& kind, const AttributeSpecs& attributes) {
        const Network network(text_classifier(50, 8, attributes, {"lengths"}, kind), 3, tokens_and_labels(6));
        const PassWork found = network.multiply_accumulates(network.index_of("first"));
        return std::array{found.forward, found.backward_data, found.backward_weights};
    };
    const std::int64_t of_gate = 3 * 6 * 8, both = 2;
    const auto expected = [&](std::int64_t gates) {
        return std::array{gates * of_gate * (5 + 8), gates * of_gate * 5, gates * of_gate * (5 + both * 8)};
    };
    EXPECT_EQ(of("gru", {}), expected(3));
    EXPECT_EQ(of("rnn", {}), expected(1));
    EXPECT_EQ(of("lstm", {{"direction", std::string("bidirectional")}}), expected(both * 4));
}

// The state that it begins with gets its gradient through time; its sequence needs none.
TEST(Sequences, ADecoderOverWhatNobodyLearnsCountsNoGradientOfIt) {
    const Network network(
        {node_of("mean", "mean_over_time", {"series"}), node_of("few", "dense", {"mean"}, {{"units", 4.0}}),
         node_of("decoder", "continued_gru", {"series", "few"},
                 {{"units", 4.0}, {"output", std::string("last")}}),
         node_of("last", "dense", {"decoder"}, {{"units", 4.0}}), loss_of("last")},
        2, {InputSpec{"series", TT_F32, {6, 5}, TT_INPUT}, InputSpec{"labels", TT_I64, {}, TT_TARGET}});
    const PassWork found = network.multiply_accumulates(network.index_of("decoder"));
    EXPECT_EQ(found.forward, 2 * 6 * 12 * (5 + 4));
    EXPECT_EQ(found.backward_data, 0);
    EXPECT_EQ(found.backward_weights, 2 * 6 * 12 * (5 + 2 * 4));
}

TEST(Sequences, HaveTheBiasesOfTheirKind) {
    const auto layer = [](const std::string& kind, const AttributeSpecs& attributes) {
        const Network network(text_classifier(50, 8, attributes, {"lengths"}, kind), 3, tokens_and_labels(6));
        EXPECT_EQ(network.multiply_accumulates(network.index_of("first")).forward,
                  3 * 6 * (kind == "gru" ? 24 : 8) * (5 + 8));
        return network.node(network.index_of("first")).parameters;
    };
    const std::vector<Parameter> gru = layer("gru", {});
    ASSERT_EQ(gru.size(), 4u);
    EXPECT_EQ(gru[0].shape, (Shape{24, 5}));
    EXPECT_EQ(gru[1].shape, (Shape{24, 8}));
    EXPECT_EQ(gru[2].name, "first.bias");
    EXPECT_EQ(gru[3].name, "first.recurrent_bias");
    EXPECT_EQ(gru[3].shape, (Shape{24}));
    EXPECT_EQ(gru[3].initializer.name, "zeros");
    EXPECT_EQ(layer("gru", {{"reset_after", false}}).size(), 3u);
    EXPECT_EQ(layer("gru", {{"bias", false}}).size(), 2u);
    EXPECT_EQ(layer("rnn", {{"biases", 2.0}})[3].shape, (Shape{8}));
    EXPECT_EQ(layer("rnn", {}).size(), 3u);
}

TEST(Sequences, GoInTwoDirections) {
    const auto layer = [](const std::string& direction, const char* output) {
        const Network network(
            {node_of("text", "embedding", {"tokens"}, {{"vocabulary", 9.0}, {"units", 5.0}}),
             node_of("lstm", "lstm", {"text", "lengths"},
                     {{"units", 8.0},
                      {"biases", 2.0},
                      {"output", std::string(output)},
                      {"direction", direction}}),
             node("flat", "flatten"), loss_of("flat")},
            3, tokens_and_labels(6));
        const auto index = network.index_of("lstm");
        return std::pair(network.node(index), network.multiply_accumulates(index).forward);
    };
    const std::int64_t once = 3 * 6 * 32 * (5 + 8);
    for (const char* one : {"forward", "reverse"}) {
        const auto [node, products] = layer(one, "all");
        EXPECT_EQ(node.shape, (Shape{3, 6, 8}));
        EXPECT_EQ(node.parameters.size(), 4u);
        EXPECT_EQ(node.parameters[1].name, "lstm.recurrent_weight");
        EXPECT_EQ(products, once);
    }
    EXPECT_EQ(layer("bidirectional", "last").first.shape, (Shape{3, 16}));
    const auto [node, products] = layer("bidirectional", "all");
    EXPECT_EQ(node.shape, (Shape{3, 6, 16}));
    EXPECT_EQ(products, 2 * once);
    ASSERT_EQ(node.parameters.size(), 8u);
    for (std::size_t i = 0; i < 4; ++i) {
        const Parameter &there = node.parameters[i], &back = node.parameters[i + 4];
        EXPECT_EQ(back.name, "lstm.reverse" + there.name.substr(4));
        EXPECT_EQ(back.shape, there.shape);
        EXPECT_EQ(back.initializer.name, there.initializer.name);
        std::int64_t size = 1;
        for (const std::int64_t extent : there.shape) size *= extent;
        std::vector<float> first(static_cast<std::size_t>(size)), second(first.size());
        draw_initial(1, there, first);
        draw_initial(1, back, second);
        EXPECT_EQ(first == second, i >= 2) << back.name;  // only what is drawn differs
    }
}

TEST(Sequences, TheForgetGateStartsOpen) {
    std::vector<float> values(12);
    draw_initial(1, {"lstm.bias", {12}, {"forget_ones"}}, values);
    EXPECT_EQ(values, (std::vector<float>{0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0}));
    const Network closed({lstm({{"unit_forget_bias", false}}), node("flat", "flatten"), loss_of("flat")}, 2,
                         series_and_labels({6, 3}));
    EXPECT_EQ(closed.node(closed.index_of("lstm")).parameters[2].initializer.name, "zeros");
}

TEST(Sequences, RefuseInWords) {
    EXPECT_EQ(refused(lstm()), "no error");
    EXPECT_WORDS(refused(lstm({{"units", 0.0}})), "units = 0");
    EXPECT_WORDS(refused(lstm({{"biases", 3.0}})), "biases = 3; expected 0, 1 or 2");
    EXPECT_WORDS(refused(lstm({{"output", std::string("first")}})),
                 "output = \"first\"; expected \"last\" or \"all\"");
    for (const char* kind : {"lstm", "gru", "rnn"})
        EXPECT_WORDS(
            refused(node_of("x", kind, {"series"}, {{"units", 4.0}, {"direction", std::string("backward")}})),
            "direction = \"backward\"; expected \"forward\" or \"reverse\" or \"bidirectional\"");
    EXPECT_WORDS(refused(node_of("x", "rnn", {"series"}, {{"units", 4.0}, {"biases", 3.0}})), "biases = 3");
    EXPECT_WORDS(refused(node_of("x", "gru", {"series"}, {{"units", 4.0}, {"biases", 1.0}})),
                 "has no attribute 'biases'");
    EXPECT_WORDS(refused(node_of("x", "gru", {"series", "labels"}, {{"units", 4.0}})), "no lengths");
    EXPECT_WORDS(refused(lstm({}, "labels")), "'labels' is (2,) and no lengths");
    EXPECT_WORDS(refused(lstm({}, "series")), "'series' is (2, 6, 3) and no lengths");
    EXPECT_WORDS(refused(lstm(), images_and_labels({3})), "has the input 'series'");
    EXPECT_WORDS(refused(lstm(), series_and_labels({3})),
                 "needs a sequence (N, T, F); 'series' gives (2, 3)");
    EXPECT_WORDS(refused(node_of("x", "lstm", {"tokens"}, {{"units", 4.0}}), tokens_and_labels(5)),
                 "put an embedding between them");
    const AttributeSpecs small{{"vocabulary", 9.0}, {"units", 4.0}};
    EXPECT_WORDS(refused(node_of("x", "embedding", {"series"}, small)), "needs tokens");
    EXPECT_WORDS(refused(node_of("x", "embedding", {"lengths"}, small)), "needs tokens");
    EXPECT_WORDS(refused(node_of("x", "embedding", {"tokens"}, {{"units", 4.0}}), tokens_and_labels(5)),
                 "needs 'vocabulary'");
    EXPECT_WORDS(refused(node_of("x", "mean_over_time", {"lengths"})), "whole numbers");
    EXPECT_WORDS(refused(node_of("x", "tanh", {"lengths"})), "whole numbers");
}

TEST(Sequences, AStatefulLayerHasAStateOfEachSample) {
    const Network network({node_of("lstm", "stateful_lstm", {"series"}, {{"units", 5.0}}), loss_of("lstm")},
                          4, {{"series", TT_F32, {6, 3}, TT_INPUT}, {"labels", TT_I64, {}, TT_TARGET}});
    const auto& parameters = network.node(network.index_of("lstm")).parameters;
    ASSERT_EQ(parameters.size(), 5u);
    for (std::size_t i = 3; i < 5; ++i) {
        EXPECT_EQ(parameters[i].role, TT_STATE);
        EXPECT_EQ(parameters[i].shape, Shape({4, 5}));
    }
    EXPECT_EQ(parameters[3].name, "lstm.hidden");
    EXPECT_EQ(network.parameter_count(), 4 * 5 * (3 + 5 + 1)) << "states are not trained";
    EXPECT_TRUE(network.couples_batch());
    EXPECT_WORDS(refused(node_of("lstm", "stateful_lstm", {"series"},
                                 {{"units", 5.0}, {"direction", std::string("reverse")}})),
                 "direction");
    EXPECT_WORDS(refused(node_of("lstm", "stateful_lstm", {"series", "lengths"}, {{"units", 5.0}})),
                 "lengths");
}

TEST(Sequences, ADecoderWantsTheStateOfAnother) {
    std::vector<NodeSpec> specs = encoder_decoder(3);
    const Network network(specs, 2, tokens_and_labels(4));
    EXPECT_EQ(network.node(network.index_of("decoder")).shape, Shape({2, 4, 3}));
    specs[2].attributes["units"] = 4.0;
    EXPECT_WORDS(refusal([&] { Network(specs, 2, tokens_and_labels(4)); }),
                 "needs as its second input the state in front of its first step, (2, 4)");
    specs = encoder_decoder(3);
    specs[2].inputs = {"embed"};
    EXPECT_WORDS(refusal([&] { Network(specs, 2, tokens_and_labels(4)); }), "expected 2: [sequence, state]");
}

TEST(Sequences, ALossForEachStepRefusesInWords) {
    const auto built = [](const NodeSpec& loss, std::vector<InputSpec> inputs = tokens_and_next(4)) {
        std::vector<NodeSpec> specs = language_model(6, 3);
        specs.back() = loss;
        return refusal([&] { Network(specs, 2, inputs); });
    };
    EXPECT_EQ(built(loss_of("each", "sequence_cross_entropy")), "no error");
    EXPECT_WORDS(built(loss_of("each")), "of one for each step it is sequence_cross_entropy");
    EXPECT_WORDS(built(loss_of("each", "sequence_cross_entropy"), tokens_and_labels(4)),
                 "one per step) as its second input, (2, 4); 'labels' is (2,)");
    std::vector<InputSpec> more = tokens_and_next(4);
    more[1].sample = {3};
    EXPECT_WORDS(built(loss_of("each", "sequence_cross_entropy"), more), "(2, 4); 'labels' is (2, 3)");
    EXPECT_WORDS(refusal([] {
                     Network(
                         {node("last", "dense", {{"units", 3.0}}), loss_of("last", "sequence_cross_entropy")},
                         2, images_and_labels({5}));
                 }),
                 "needs a prediction for each step (N, T, C)");
    const auto summed = [] {
        std::vector<NodeSpec> specs = language_model(6, 3);
        specs.push_back({"other", "sequence_cross_entropy", std::vector<std::string>{"each", "labels"}, {}});
        specs.push_back({"sum", "loss_sum", std::vector<std::string>{"loss", "other"}, {}});
        Network(specs, 2, tokens_and_next(4));
    };
    EXPECT_WORDS(refusal(summed), "a mean over places stands alone");
    const Network network(language_model(6, 3), 2, tokens_and_next(4));
    EXPECT_EQ(network.classes(), 6);
    EXPECT_TRUE(network.couples_batch());
    EXPECT_EQ(network.values_from(network.index_of("labels")), -1);
    EXPECT_EQ(network.values_from(network.index_of("tokens")), 0);
}

TEST(Sequences, ADenseLayerMayHaveTheWeightOfAnEmbedding) {
    const Network own(language_model(6, 5), 2, tokens_and_next(4));
    const Network network(language_model(6, 5, tied()), 2, tokens_and_next(4));
    const std::uint32_t each = network.index_of("each");
    EXPECT_EQ(network.node(each).tied, "embed");
    ASSERT_EQ(network.node(each).parameters.size(), 1u);
    EXPECT_EQ(network.node(each).parameters[0].name, "each.bias");
    EXPECT_EQ(network.parameter_count(), own.parameter_count() - 6 * 5);
    // The same work on the same numbers.
    for (const bool bias : {true, false}) {
        const Network less(language_model(6, 5, {{"bias", bias}}), 2, tokens_and_next(4));
        const Network tie(language_model(6, 5, tied(bias)), 2, tokens_and_next(4));
        for (const char* name : {"embed", "first", "each"}) {
            const std::uint32_t index = less.index_of(name);
            EXPECT_EQ(tie.bytes(index).backward_weights, less.bytes(index).backward_weights);
            EXPECT_EQ(tie.multiply_accumulates(index).backward_weights,
                      less.multiply_accumulates(index).backward_weights);
        }
    }
}

TEST(Sequences, ATiedLayerRefusesInWords) {
    const auto built = [](double units, const AttributeSpecs& last) {
        return refusal([&] { Network(language_model(6, units, last), 2, tokens_and_next(4)); });
    };
    EXPECT_EQ(built(5, tied()), "no error");
    EXPECT_WORDS(built(3, tied()),
                 "layer 'each' (tied_dense) has tied = \"embed\", whose weight is (6, 5); expected "
                 "(units, features of the input) = (6, 3)");
    EXPECT_WORDS(built(5, {{"tied", std::string("embedd")}}), "Did you mean 'embed'?");
    EXPECT_WORDS(built(5, {{"tied", std::string("first")}}),
                 "expected the name of an embedding in front of it");
    EXPECT_WORDS(built(5, {{"tied", std::string()}}), "has tied = \"\"; expected the name of a layer");
    EXPECT_WORDS(built(5, {{"tied", true}}), "has tied = true; expected the name of a layer");
    EXPECT_WORDS(refusal([] {
                     Network({node("fc", "tied_dense", {{"units", 3.0}, {"tied", std::string("embed")}}),
                              loss_of("fc")},
                             2, images_and_labels({5}));
                 }),
                 "and there is none");
    EXPECT_WORDS(refusal([] {
                     std::vector<NodeSpec> specs = language_model(5, 5, tied());
                     specs.insert(specs.end() - 1, node("again", "tied_dense",
                                                        {{"units", 5.0}, {"tied", std::string("embed")}}));
                     specs.back() = loss_of("again", "sequence_cross_entropy");
                     Network(specs, 2, tokens_and_next(4));
                 }),
                 "to which 'each' is tied: one layer can be");
}

TEST(ReferenceGradients, Sequences) {
    check_gradients_with(tokens_and_next(4), language_model(6, 3));
    for (const bool bias : {true, false})
        check_gradients_with(tokens_and_next(4), language_model(6, 5, tied(bias)));
    for (const double biases : {0.0, 1.0, 2.0})
        check_gradients_with(tokens_and_labels(4), text_classifier(6, 3, {{"biases", biases}}));
    for (const AttributeSpecs& gru : kinds_of_gru())
        check_gradients_with(tokens_and_labels(4), text_classifier(6, 3, gru, {"lengths"}, "gru"));
    check_gradients_with(tokens_and_labels(4), text_classifier(6, 3, {{"biases", 2.0}}, {"lengths"}, "rnn"));
    check_gradients(
        {node("conv", "conv2d", {{"channels", 3.0}, {"kernel", 2.0}}), node("rows", "map_to_sequence"),
         node("rnn", "rnn", {{"units", 3.0}}), node("last", "dense", {{"units", 4.0}}), loss_of("last")},
        {2, 4, 3});
    for (const AttributeSpecs& gru : kinds_of_gru())
        for (const bool both : {false, true})
            check_gradients_with(tokens_and_labels(4), encoder_decoder(3, gru, both));
    for (const char* kind : {"lstm", "gru", "rnn", "stateful_lstm"})
        check_gradients_with(without_lengths(4), text_classifier(6, 3, {}, {}, kind));
    for (const char* kind : {"lstm", "gru", "rnn"}) {
        for (const char* direction : {"reverse", "bidirectional"})
            check_gradients_with(
                tokens_and_labels(4),
                text_classifier(6, 3, {{"direction", std::string(direction)}}, {"lengths"}, kind));
    }
}

// Two maps of two rows: a step has the rows of both.
TEST(Reference, MapToSequenceByHand) {
    Problem problem({node("rows", "map_to_sequence"), node("flat", "flatten"),
                     node("last", "dense", {{"units", 2.0}}), loss_of("last")},
                    1, {2, 2, 3}, Numbers::kReal);
    problem.images = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    for (const std::string& plugin : {std::string("reference"), variants_of("eigen").front()}) {
        Trainer trainer(plugin_path(plugin), problem);
        trainer.step(TT_GRADIENT);
        EXPECT_EQ(trainer.read(TT_ACTIVATION).at("rows"),
                  (std::vector<double>{1, 2, 3, 7, 8, 9, 4, 5, 6, 10, 11, 12}));
    }
}

double s(double x) { return 1 / (1 + std::exp(-x)); }

// Two batches of three steps are one of six to a layer that goes on, and to one that doesn't two of three.
TEST(Reference, AStatefulLstmGoesOnWhereTheBatchBeforeEnded) {
    const auto classifier = [](const std::string& kind) {
        return std::vector<NodeSpec>{
            node_of("lstm", kind, {"series"}, {{"units", 3.0}, {"output", std::string("all")}}),
            node("flat", "flatten"), node("last", "dense", {{"units", 4.0}}), loss_of("last")};
    };
    const auto inputs = [](std::int64_t steps) {
        return std::vector<InputSpec>{{"series", TT_F32, {steps, 2}, TT_INPUT},
                                      {"labels", TT_I64, {}, TT_TARGET}};
    };
    const Problem whole(classifier("lstm"), inputs(6), 2, Numbers::kReal);
    Trainer at_once(plugin_path("reference"), whole);
    at_once.step(TT_GRADIENT);
    const std::vector<double> states = at_once.read(TT_ACTIVATION).at("lstm");
    for (const char* kind : {"lstm", "stateful_lstm"}) {
        Problem part(classifier(kind), inputs(3), 2, Numbers::kReal);
        for (const char* name : {"lstm.weight", "lstm.recurrent_weight", "lstm.bias"})
            part.weights[name] = whole.weights.at(name);
        for (const char* name : {"lstm.hidden", "lstm.cell"})
            if (part.weights.contains(name)) part.weights[name].assign(6, 0.0F);
        Trainer trainer(plugin_path("reference"), part);
        double apart = 0;
        for (std::ptrdiff_t half = 0; half < 2; ++half) {
            for (std::ptrdiff_t n = 0; n < 2; ++n)
                std::copy_n(whole.images.begin() + n * 12 + half * 6, 6, trainer.images.begin() + n * 6);
            trainer.step(TT_GRADIENT);
            const std::vector<double> found = trainer.read(TT_ACTIVATION).at("lstm");
            for (std::size_t n = 0; n < 2; ++n)
                for (std::size_t i = 0; i < 9; ++i)
                    apart = std::max(
                        apart,
                        std::abs(found[n * 9 + i] - states[n * 18 + static_cast<std::size_t>(half) * 9 + i]));
        }
        const bool goes_on = std::string(kind) != "lstm";
        EXPECT_EQ(apart < 1e-12, goes_on) << kind << ": " << apart;
        EXPECT_EQ(trainer.read(TT_STATE).size(), goes_on ? 2u : 0u);
    }
}

// Two samples of two steps, of which one place does not count.
TEST(Reference, SequenceCrossEntropyByHand) {
    Problem problem({node("each", "dense", {{"units", 2.0}}), loss_of("each", "sequence_cross_entropy")},
                    {{"series", TT_F32, {2, 1}, TT_INPUT}, {"labels", TT_I64, {2}, TT_TARGET}}, 2,
                    Numbers::kReal);
    problem.images = {1.0F, 2.0F, -1.0F, 5.0F};
    problem.labels = {0, 1, 1, -1};
    problem.weights = {{"each.weight", {1.0F, 0.0F}}, {"each.bias", {0.0F, 0.0F}}};
    for (const std::string& plugin : {std::string("reference"), variants_of("eigen").front()}) {
        Trainer trainer(plugin_path(plugin), problem);
        const double expected =
            (std::log(1 + std::exp(-1.0)) + std::log(1 + std::exp(2.0)) + std::log(1 + std::exp(-1.0))) / 3;
        EXPECT_NEAR(trainer.step(TT_GRADIENT), expected, 1e-6) << plugin;
        const double bias = (s(1.0) - 1 + s(2.0) + s(-1.0)) / 3;
        EXPECT_NEAR(trainer.read(TT_ROLE_GRADIENT).at("each.bias")[0], bias, 1e-6) << plugin;
        trainer.labels = {-1, -1, -1, -1};
        EXPECT_WORDS(refusal([&] { trainer.step(TT_GRADIENT); }), "no place counts");
        trainer.labels = {0, -2, 1, 1};
        EXPECT_WORDS(refusal([&] { trainer.step(TT_GRADIENT); }), "label -2 of place 1 is outside -1 to 1");
    }
}

// Two samples of one unit: one of two steps, and one of a single step, whose second is never looked at.
TEST(Reference, LstmByHand) {
    for (const char* output : {"last", "all"}) {
        std::vector<NodeSpec> specs{
            node_of("lstm", "lstm", {"series", "lengths"},
                    {{"units", 1.0}, {"biases", 2.0}, {"output", std::string(output)}}),
            node("flat", "flatten"), loss_of("flat", "squared_error")};
        if (std::string(output) == "last") {
            specs.erase(specs.begin() + 1);
            specs.back() = loss_of("lstm", "squared_error");
        }
        Problem problem(specs, series_and_labels({2, 1}), 2, Numbers::kReal);
        problem.images = {0.5F, -1.0F, 2.0F, 77.0F};
        problem.labels = {0, 0};
        problem.wholes["lengths"] = {2, 1};
        problem.weights = {{"lstm.weight", {0.5F, -0.25F, 1.5F, 0.75F}},
                           {"lstm.recurrent_weight", {2.0F, -1.0F, 0.5F, 0.25F}},
                           {"lstm.bias", {0.125F, 0.5F, -0.5F, 0.25F}},
                           {"lstm.recurrent_bias", {0.125F, 0.5F, 0.25F, -0.5F}}};
        Trainer trainer(plugin_path("reference"), problem);
        trainer.step(TT_GRADIENT);
        double h = 0, c = 0, first = 0;
        for (const double x : {0.5, -1.0}) {
            const double i = s(0.5 * x + 2 * h + 0.25), f = s(-0.25 * x - h + 1),
                         g = std::tanh(1.5 * x + 0.5 * h - 0.25), o = s(0.75 * x + 0.25 * h - 0.25);
            c = f * c + i * g;
            h = o * std::tanh(c);
            if (x == 0.5) first = h;
        }
        const double other = s(1.25) * std::tanh(s(1.25) * std::tanh(2.75));
        const std::vector<double> expected = std::string(output) == "last"
                                                 ? std::vector<double>{h, other}
                                                 : std::vector<double>{first, h, other, 0};
        const auto found = trainer.read(TT_ACTIVATION).at("lstm");
        ASSERT_EQ(found.size(), expected.size());
        for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-12) << i;
        EXPECT_EQ(trainer.read(TT_INPUT_GRADIENT).at("series").back(), 0);
        const auto gradients = trainer.read(TT_ROLE_GRADIENT);
        EXPECT_EQ(gradients.at("lstm.bias"), gradients.at("lstm.recurrent_bias"));
    }
}

// Of two steps of one sample with two units: what a product mixes, the reset tells apart in both forms.
TEST(Reference, GruByHand) {
    const double w[6] = {0.5, -0.25, 1.5, 0.75, -1.0, 0.25};
    const double u[6][2] = {{2, -1}, {0.5, 0.25}, {1, 0.5}, {-0.5, 0.75}, {1.5, -2}, {-0.25, 1}};
    const double b[6] = {0.125, 0.5, -0.5, 0.25, 0.75, -0.125};
    const double more[6] = {0.25, -0.25, 0.5, 0.125, -0.75, 1.5};
    const std::vector<float> bias(b, b + 6), recurrent_bias(more, more + 6), weight(w, w + 6);
    std::vector<float> recurrent;
    for (const auto& row : u) recurrent.insert(recurrent.end(), row, row + 2);
    for (const bool after : {true, false}) {
        Problem problem(
            {node_of("gru", "gru", {"series", "lengths"}, {{"units", 2.0}, {"reset_after", after}}),
             loss_of("gru", "squared_error")},
            series_and_labels({2, 1}), 1, Numbers::kReal);
        problem.images = {0.5F, -1.0F};
        problem.labels = {0};
        problem.wholes["lengths"] = {2};
        problem.weights = {{"gru.weight", weight}, {"gru.recurrent_weight", recurrent}, {"gru.bias", bias}};
        if (after) problem.weights["gru.recurrent_bias"] = recurrent_bias;
        Trainer trainer(plugin_path("reference"), problem);
        trainer.step(TT_GRADIENT);
        double h[2] = {0, 0};
        for (const double x : {0.5, -1.0}) {
            double sum[4], r[2], z[2], next[2];
            for (int k = 0; k < 4; ++k)
                sum[k] = w[k] * x + b[k] + (after ? more[k] : 0) + u[k][0] * h[0] + u[k][1] * h[1];
            for (int k = 0; k < 2; ++k) r[k] = s(sum[k]), z[k] = s(sum[k + 2]);
            for (int k = 0; k < 2; ++k) {
                const double* row = u[k + 4];
                const double of_state = after ? r[k] * (row[0] * h[0] + row[1] * h[1] + more[k + 4])
                                              : row[0] * r[0] * h[0] + row[1] * r[1] * h[1];
                next[k] = (1 - z[k]) * std::tanh(w[k + 4] * x + b[k + 4] + of_state) + z[k] * h[k];
            }
            h[0] = next[0], h[1] = next[1];
        }
        const auto found = trainer.read(TT_ACTIVATION).at("gru");
        ASSERT_EQ(found.size(), 2u);
        for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(found[i], h[i], 1e-12) << after;
    }
}

TEST(Reference, RnnByHand) {
    Problem problem({node_of("rnn", "rnn", {"series", "lengths"}, {{"units", 1.0}, {"biases", 2.0}}),
                     loss_of("rnn", "squared_error")},
                    series_and_labels({2, 1}), 2, Numbers::kReal);
    problem.images = {0.5F, -1.0F, 2.0F, 77.0F};
    problem.labels = {0, 0};
    problem.wholes["lengths"] = {2, 1};
    problem.weights = {{"rnn.weight", {0.5F}},
                       {"rnn.recurrent_weight", {2.0F}},
                       {"rnn.bias", {0.125F}},
                       {"rnn.recurrent_bias", {0.25F}}};
    Trainer trainer(plugin_path("reference"), problem);
    trainer.step(TT_GRADIENT);
    const auto found = trainer.read(TT_ACTIVATION).at("rnn");
    ASSERT_EQ(found.size(), 2u);
    EXPECT_NEAR(found[0], std::tanh(-0.125 + 2 * std::tanh(0.625)), 1e-12);
    EXPECT_NEAR(found[1], std::tanh(1.375), 1e-12);
}

// The reverse of a sample begins at its last step that counts: 77, in the padding, is nowhere.
TEST(Reference, DirectionsByHand) {
    for (const char* direction : {"reverse", "bidirectional"})
        for (const char* output : {"last", "all"}) {
            const bool both = std::string(direction) == "bidirectional", all = std::string(output) == "all";
            std::vector<NodeSpec> specs{
                node_of(
                    "rnn", "rnn", {"series", "lengths"},
                    {{"units", 1.0}, {"direction", std::string(direction)}, {"output", std::string(output)}}),
                node("flat", "flatten"), loss_of("flat", "squared_error")};
            if (!all) specs.erase(specs.begin() + 1), specs.back() = loss_of("rnn", "squared_error");
            Problem problem(specs, series_and_labels({2, 1}), 2, Numbers::kReal);
            problem.images = {0.5F, -1.0F, 2.0F, 77.0F};
            problem.labels = {0, 0};
            problem.wholes["lengths"] = {2, 1};
            const std::string back = both ? "rnn.reverse." : "rnn.";
            problem.weights = {
                {back + "weight", {-0.75F}}, {back + "recurrent_weight", {1.25F}}, {back + "bias", {0.25F}}};
            if (both) {
                problem.weights["rnn.weight"] = {0.5F};
                problem.weights["rnn.recurrent_weight"] = {2.0F};
                problem.weights["rnn.bias"] = {0.125F};
            }
            const double behind = std::tanh(1.0), at_0 = std::tanh(-0.125 + 1.25 * behind),
                         other = std::tanh(-1.25);
            const double first = std::tanh(0.375), second = std::tanh(-0.375 + 2 * first),
                         forward = std::tanh(1.125);
            std::vector<double> expected;
            if (both)
                expected = all ? std::vector{first, at_0, second, behind, forward, other, 0.0, 0.0}
                               : std::vector{second, at_0, forward, other};
            else
                expected = all ? std::vector{at_0, behind, other, 0.0} : std::vector{at_0, other};
            for (const std::string& plugin : {std::string("reference"), variants_of("eigen").front()}) {
                Trainer trainer(plugin_path(plugin), problem);
                trainer.step(TT_GRADIENT);
                const auto found = trainer.read(TT_ACTIVATION).at("rnn");
                ASSERT_EQ(found.size(), expected.size());
                for (std::size_t i = 0; i < found.size(); ++i)
                    EXPECT_NEAR(found[i], expected[i], 1e-6) << plugin << " " << direction << " " << i;
                if (plugin != "reference") continue;
                EXPECT_EQ(trainer.read(TT_INPUT_GRADIENT).at("series").back(), 0);
            }
        }
}

TEST(Reference, RefusesTokensAndLengthsOutsideTheirRange) {
    for (const std::string& plugin : {std::string("reference"), variants_of("eigen").front()}) {
        Problem problem(text_classifier(6, 3), tokens_and_labels(4), 2, Numbers::kReal);
        const auto step = [&] {
            return refusal([&] { Trainer(plugin_path(plugin), problem).step(TT_GRADIENT); });
        };
        EXPECT_EQ(step(), "no error");
        problem.wholes["tokens"][3] = 6;
        EXPECT_WORDS(step(), "token 6 is outside the vocabulary, 0 to 5");
        problem.wholes["tokens"][3] = -1;
        EXPECT_WORDS(step(), "token -1 is outside");
        problem.wholes["tokens"][3] = 5;
        for (const std::int64_t length : {0, 5, -3}) {
            problem.wholes["lengths"][1] = length;
            EXPECT_WORDS(step(), "length " + std::to_string(length) + " of sample 1 is outside 1 to 4");
        }
    }
}

}  // namespace
}  // namespace timetrial::testing
