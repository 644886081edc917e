"""Recurrent networks of two of the studies over texts, a language model, and two over series.

Sequences are padded on the right, and layers read `lengths`: what is behind the end contributes nothing. Of
products all steps of the longest sample are counted here, useful or not.
"""

from __future__ import annotations

from timetrial.core import Input
from timetrial.networks.definition import Facts, Graph, NetworkDefinition
from timetrial.networks.dlbench import SOURCE as DLBENCH
from timetrial.optimizers import check_optimizer

_ADAM = {"name": "adam", "learning_rate": 1e-3}
_LENGTHS = Input("lengths", (), "i64", "lengths")
_LABELS = Input("labels", (), "i64", "target")


# Of language models: the last layer with a weight of its own, their parameters and whence that number is.
_UNTIED: tuple[tuple[str, dict[str, str]], int, str] = (
    ("dense", {}),
    4_651_600,
    "2,000,000 + 2 x 320,800 + 2,010,000",
)
_ZAREMBA = (
    "Zaremba, Sutskever and Vinyals, Recurrent neural network regularization, 2014: the small model, "
    "without dropout"
)


def _texts(steps: int) -> tuple[Input, ...]:
    return Input("tokens", (steps,), "i64"), _LENGTHS, _LABELS


def lstm_bahrampour() -> NetworkDefinition:
    """128 units over at most 100 words, the mean of all states."""
    graph = Graph()
    graph.add("embed", "embedding", "tokens", vocabulary=10_000, units=128)
    graph.add("lstm", "lstm", "embed", "lengths", units=128, output="all")
    graph.add("mean", "mean_over_time", "lstm", "lengths")
    return NetworkDefinition(
        name="lstm-bahrampour",
        nodes=graph.classifier(),
        dataset="synthetic-sentences",
        batch_size=16,
        optimizer=check_optimizer(_ADAM),
        epochs=4,
        facts=Facts(
            "embeddings of 128, an LSTM of 128 units, the mean over time",
            "Bahrampour, Ramakrishnan, Schott and Shah, Comparative study of deep learning software "
            "frameworks, 2015; after Theano's LSTM tutorial",
            (100,),
            2,
            1_411_842,
            13_107_456,
            "by hand: 1,280,000 + 131,584 + 258 weights and biases; products 100 x 131,072 + 256",
            'the study times the gradient without an update (`task = "gradient"`), sequences in the order of '
            "their lengths, of which the mean is 71",
            inputs=_texts(100),
        ),
    )


def lstm_imdb() -> NetworkDefinition:
    """100 units over at most 500 words, the last state."""
    graph = Graph()
    graph.add("embed", "embedding", "tokens", vocabulary=5_000, units=32)
    graph.add("lstm", "lstm", "embed", "lengths", units=100)
    return NetworkDefinition(
        name="lstm-imdb",
        nodes=graph.classifier(),
        dataset="synthetic-sentences@500",
        batch_size=64,
        optimizer=check_optimizer(_ADAM),
        epochs=4,
        facts=Facts(
            "embeddings of 32, an LSTM of 100 units, its last state",
            DLBENCH,
            (500,),
            2,
            213_402,
            26_400_200,
            "by hand: 160,000 + 53,200 + 202 weights and biases; products 500 x 52,800 + 200",
            "the study has one output and a sigmoid (213,301 parameters), pads before the words and cuts "
            "there, and its last state is that of the last word",
            inputs=_texts(500),
        ),
    )


def lstm_lm() -> NetworkDefinition:
    """Two layers of 200 units over 35 words, the next word predicted at each."""
    return _language_model(
        "lstm-lm",
        *_UNTIED,
        "embeddings of 200, two LSTMs of 200 units, the next word at each of 35 steps",
        _ZAREMBA,
    )


def lstm_lm_carried() -> NetworkDefinition:
    """The same whose state goes on from batch to batch."""
    return _language_model(
        "lstm-lm-carried",
        *_UNTIED,
        "lstm-lm with a state that is carried from batch to batch",
        _ZAREMBA,
        layer="stateful_lstm",
        differs="",
    )


def lstm_lm_tied() -> NetworkDefinition:
    """The same with one table of words, for what is read and what is predicted."""
    return _language_model(
        "lstm-lm-tied",
        ("tied_dense", {"tied": "embed"}),
        2_651_600,
        "2,000,000 + 2 x 320,800 + 10,000",
        "lstm-lm with one table for the words that are read and predicted",
        "Press and Wolf, Using the output embedding to improve language models, EACL 2017; the network as "
        "lstm-lm",
    )


def _language_model(
    name: str,
    last: tuple[str, dict[str, str]],
    parameters: int,
    by_hand: str,
    words: str,
    source: str,
    *,
    layer: str = "lstm",
    differs: str = "the state begins anew with every batch, where theirs is carried on; ",
) -> NetworkDefinition:
    """`last`: the kind and attributes of the layer that scores the words. `layer`: the kind of the others.
    `differs`: from the source, by that."""
    graph = Graph()
    graph.add("embed", "embedding", "tokens", vocabulary=10_000, units=200)
    graph.add("lstm1", layer, units=200, output="all")
    graph.add("lstm2", layer, units=200, output="all")
    kind, attributes = last
    graph.add("fc", kind, units="classes", **attributes)
    graph.add("loss", "sequence_cross_entropy", "fc", "labels")
    return NetworkDefinition(
        name=name,
        nodes=graph.nodes,
        dataset="synthetic-language",
        batch_size=20,
        optimizer=check_optimizer({"name": "sgd", "learning_rate": 1.0}),
        facts=Facts(
            words,
            source,
            (35,),
            10_000,
            parameters,
            92_400_000,
            f"by hand: {by_hand} weights and biases; products 35 x (2 x 320,000 + 2,000,000)",
            f"{differs}35 steps, of their medium model, instead of 20; no gradient is clipped",
            inputs=(Input("tokens", (35,), "i64"), Input("labels", (35,), "i64", "target")),
        ),
    )


def conv_lstm() -> NetworkDefinition:
    """A convolution whose maps an LSTM of 64 units reads row by row."""
    graph = Graph()
    graph.add("conv", "conv2d", "images", channels=16, kernel=3, padding="same")
    graph.add("relu", "relu")
    graph.add("pool", "max_pool2d", kernel=2)
    graph.add("rows", "map_to_sequence")
    graph.add("lstm", "lstm", units=64)
    return NetworkDefinition(
        name="conv-lstm",
        nodes=graph.classifier(),
        dataset="digits28",
        optimizer=check_optimizer(_ADAM),
        facts=Facts(
            "16 filters of 3x3, halved by a maximum; an LSTM of 64 units over the rows",
            "this project; maps as sequences: Shi, Bai and Yao, TPAMI 39, 2017",
            (1, 28, 28),
            10,
            74_794,
            1_145_728,
            "by hand: 160 + 73,984 + 650 weights and biases; products 112,896 + 14 x 73,728 + 640",
        ),
    )


def gru_translation() -> NetworkDefinition:
    """An encoder and a decoder of 256 units, the next word predicted at each of 20 steps of the decoder."""
    graph = Graph()
    graph.add("source_embed", "embedding", "source", vocabulary=5_000, units=256)
    graph.add("encoder", "gru", "source_embed", "source_lengths", units=256)
    graph.add("embed", "embedding", "tokens", vocabulary=5_000, units=256)
    graph.add("decoder", "continued_gru", "embed", "encoder", units=256, output="all")
    graph.add("fc", "dense", units="classes")
    graph.add("loss", "sequence_cross_entropy", "fc", "labels")
    return NetworkDefinition(
        name="gru-translation",
        nodes=graph.nodes,
        dataset="synthetic-pairs",
        batch_size=128,
        optimizer=check_optimizer({"name": "adam", "learning_rate": 1e-4}),
        facts=Facts(
            "embeddings of 256, a GRU of 256 units that reads, and one that says what it has read",
            f"{DLBENCH}; the cell of Cho and others, EMNLP 2014",
            (20,),
            5_000,
            4_634_504,
            41_328_640,
            "by hand: 2 x 1,280,000 + 2 x 394,752 + 1,285,000 weights and biases; products "
            "20 x (2 x 393,216 + 1,280,000)",
            "the study has LSTMs, whose second state goes on, too; 5,000 words of each language; the decoder "
            "computes all steps, of which those behind the end have no label",
            inputs=(
                Input("source", (20,), "i64"),
                Input("source_lengths", (), "i64", "lengths"),
                Input("tokens", (20,), "i64"),
                Input("labels", (20,), "i64", "target"),
            ),
        ),
    )


def lstm_vowels() -> NetworkDefinition:
    """128 units over series, the last state, dropout."""
    return _vowels("lstm", "an LSTM", 73_353, 2_079_872, 72_192, 71_680)


def gru_vowels() -> NetworkDefinition:
    """The same with a GRU: of three gates instead of four, with the two biases that it has by default."""
    return _vowels("gru", "a GRU", 55_689, 1_560_192, 54_528, 53_760)


def _vowels(
    kind: str, words: str, parameters: int, products: int, recurrent: int, each_step: int
) -> NetworkDefinition:
    """`recurrent`: the layer's weights and biases; `each_step`: its products."""
    graph = Graph()
    graph.add(kind, kind, "series", "lengths", units=128)
    graph.add("drop", "dropout", rate=0.5)
    return NetworkDefinition(
        name=f"{kind}-vowels",
        nodes=graph.classifier(),
        dataset="synthetic-series",
        batch_size=16,
        optimizer=check_optimizer(
            {
                "name": "adam",
                "learning_rate": 3e-3,
                "weight_decay": 1e-3,
                "schedule": {"name": "cosine"},
            },
        ),
        epochs=30,
        facts=Facts(
            f"{words} of 128 units over series of unequal lengths, its last state, dropout",
            "this project; the data are of Kudo, Toyama and Shimbo, Pattern Recognition Letters 20, 1999",
            (29, 12),
            9,
            parameters,
            products,
            f"by hand: {recurrent:,} + 1,161 weights and biases; products 29 x {each_step:,} + 1,152",
            inputs=(Input("series", (29, 12)), _LENGTHS, _LABELS),
        ),
    )
