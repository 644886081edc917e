"""Stacked auto-encoders, layer by layer: each phase of their training is a network of its own.

Bahrampour, Ramakrishnan, Schott and Shah, "Comparative study of deep learning software frameworks", 2016:
"small" is 784-400-200-100, "large" 784-800-1000-2000; sigmoid, squared error. Phase k trains an encoder and
its decoder on the codes of the phase before; at the end a layer of classes is put on all encoders, and
everything is trained.

Two things cannot be said in a graph. A decoder has weights of its own, as in the study's Caffe and Neon;
those of its TensorFlow, Theano and Torch are the encoder's, and a parameter here belongs to one layer. And
nothing hands the weights of one phase to the next: phases 2 and 3 learn codes that are drawn
(synthetic-codes-*), and do without the forward pass of the layers below that the study repeats in every step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from timetrial.networks.definition import Facts, Graph, NetworkDefinition, layer
from timetrial.optimizers import check_optimizer

SOURCE = "Bahrampour et al., Comparative study of deep learning software frameworks, 2016, {}"
SIZES = {"small": (784, 400, 200, 100), "large": (784, 800, 1000, 2000)}
# (parameters, products of one sample) of the three phases, and of fine-tuning for ten classes.
_COUNTS = {
    "small": ((628_384, 627_200), (160_600, 160_000), (40_300, 40_000), (415_310, 414_600)),
    "large": ((1_255_984, 1_254_400), (1_601_800, 1_600_000), (4_003_000, 4_000_000), (3_451_010, 3_447_200)),
}
_BATCH = 64
_PHASE = (
    "the decoder has weights of its own (untied), as in the study's Caffe and Neon, not in its TensorFlow, "
    "Theano and Torch; phases 2 and 3 learn codes that are drawn, and do not pass through the layers below "
    "in every step"
)
_OPTIMIZER = {"name": "sgd", "learning_rate": 0.1, "momentum": 0.9}
_IMAGE = (1, 28, 28)


def phase(size: str, number: int) -> NetworkDefinition:
    """Encoder and decoder `number`, from 1."""
    outer, inner = SIZES[size][number - 1 : number + 1]
    target = "images" if number == 1 else "codes"
    nodes = [layer("flat", "flatten", inputs=["images"])] if number == 1 else []
    nodes += [
        layer("encode", "dense", units=inner, inputs=None if nodes else ["codes"]),
        layer("code", "sigmoid"),
        layer("decode", "dense", units=outer),
        layer("again", "sigmoid"),
        layer("loss", "mean_squared_error", inputs=["again", target]),
    ]
    return NetworkDefinition(
        name=f"sae-{size}-{number}",
        nodes=nodes,
        dataset="digits28" if number == 1 else f"synthetic-codes-{outer}",
        batch_size=_BATCH,
        optimizer=check_optimizer(_OPTIMIZER),
        facts=Facts(
            f"stacked auto-encoder, {size}, phase {number}: {outer} numbers to {inner} and back, untied",
            SOURCE.format(f"auto-encoder {number}"),
            _IMAGE if number == 1 else (outer,),
            0,
            *_COUNTS[size][number - 1],
            f"by hand: 2 x {outer} x {inner} weights, {inner} + {outer} biases; tied, half of the weights",
            _PHASE,
        ),
    )


def fine_tuning(size: str) -> NetworkDefinition:
    """All encoders one behind the other, and the classes."""
    widths = SIZES[size]
    graph = Graph()
    graph.add("flat", "flatten")
    for number, width in enumerate(widths[1:], start=1):
        graph.add(f"encode{number}", "dense", units=width)
        graph.add(f"code{number}", "sigmoid")
    return NetworkDefinition(
        name=f"sae-{size}",
        nodes=graph.classifier(),
        batch_size=_BATCH,
        optimizer=check_optimizer(_OPTIMIZER),
        facts=Facts(
            f"stacked auto-encoder, {size}, fine-tuning: {'-'.join(map(str, widths))} and the classes",
            SOURCE.format("fine-tuning"),
            _IMAGE,
            10,
            *_COUNTS[size][3],
            "by hand: the weights of one layer behind the other, and a bias for each unit",
        ),
    )


def stacked() -> dict[str, Callable[[], NetworkDefinition]]:
    """Every phase of both, by name."""
    found: dict[str, Callable[[], NetworkDefinition]] = {}
    for size in SIZES:
        for number in (1, 2, 3):
            found[f"sae-{size}-{number}"] = partial(phase, size, number)
        found[f"sae-{size}"] = partial(fine_tuning, size)
    return found
