"""Decisions that rounding turns where a normalization looks at the whole batch: found, and nothing else
excused; such a batch judged by its different images."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from timetrial.agreement import rounding
from timetrial.agreement.rounding import Doubt
from timetrial.agreement.sizes import norm, size_of
from timetrial.core import Network, images_and_labels
from timetrial.proof import coupled, flips, parts
from timetrial.proof.coupled import explain_coupled
from timetrial.proof.expected import Expected
from timetrial.proof.flips import Edge
from timetrial.proof.judge import LARGE, SMALL, JudgingBackend, NativeJudge, Ties
from timetrial.proof.parity import compare
from timetrial.proof.parts import FEWEST, PartJudge, part_of
from timetrial.questions.observed import Batches, Look, Observation, Tensors, rows_of
from timetrial.records.model import Parity

NODES = [
    {"name": "conv", "kind": "conv2d", "attributes": {"channels": 3, "kernel": 3}},
    {"name": "bn", "kind": "batch_norm"},
    {"name": "relu", "kind": "relu"},
    {"name": "conv2", "kind": "conv2d", "attributes": {"channels": 4, "kernel": 3, "stride": 2}},
    {"name": "bn2", "kind": "batch_norm"},
    {"name": "relu2", "kind": "relu"},
    {"name": "flat", "kind": "flatten"},
    {"name": "fc", "kind": "dense", "attributes": {"units": 4}},
    {"name": "loss", "kind": "softmax_cross_entropy", "inputs": ["fc", "labels"]},
]
# With a pooling, whose decisions move a gradient within a channel only: no normalization in front shows it.
POOLED = [
    *NODES[:3],
    {"name": "pool", "kind": "max_pool2d", "attributes": {"kernel": 2}},
    {**NODES[3], "attributes": {"channels": 4, "kernel": 3}},
    *NODES[4:],
]
# What the channels of a convolution decide shows elsewhere: places of a concatenation, neighbors in a window.
MIXED = [
    NODES[0],
    {"name": "conv1", "kind": "conv2d", "inputs": ["images"], "attributes": {"channels": 2, "kernel": 3}},
    {"name": "both", "kind": "concat", "inputs": ["conv1", "conv"]},
    {"name": "lrn", "kind": "local_response_norm", "attributes": {"size": 3, "alpha": 0.3}},
    {"name": "relu", "kind": "relu"},
    {"name": "pool", "kind": "max_pool2d", "attributes": {"kernel": 2}},
    *NODES[6:],
]
# Behind both sums stand all layers before them.
RESIDUAL = [
    *NODES[:3],
    {"name": "conv2", "kind": "conv2d", "attributes": {"channels": 3, "kernel": 3, "padding": 1}},
    {"name": "bn2", "kind": "batch_norm"},
    {"name": "sum2", "kind": "add", "inputs": ["bn2", "relu"]},
    {"name": "relu2", "kind": "relu"},
    {"name": "conv3", "kind": "conv2d", "attributes": {"channels": 3, "kernel": 3, "padding": 1}},
    {"name": "bn3", "kind": "batch_norm"},
    {"name": "sum3", "kind": "add", "inputs": ["bn3", "relu2"]},
    {"name": "relu3", "kind": "relu"},
    *NODES[6:],
]
OWNERS = {"relu": "bn", "relu2": "bn2"}
LIMIT = 4e-3  # wider than rounding's, so that so few values have edges
TOLERANCE = 1e-3  # and turning a decision that far from its edge changes values a little
N = 6


def network(batch: int = N, nodes: list[dict[str, Any]] = NODES, side: int = 8) -> Network:
    return Network(nodes, batch, images_and_labels((1, side, side)))


class Stage:
    """A network with a batch of N different images, at random values, and a judge of it."""

    def __init__(
        self,
        copies: int = 1,
        nodes: list[dict[str, Any]] = NODES,
        judge: JudgingBackend = SMALL,
        side: int = 8,
    ) -> None:
        rng = np.random.default_rng(3)
        self.network = network(nodes=nodes, side=side)
        self.parameters: Tensors = {
            one["name"]: rng.normal(1 if one["name"].endswith("var") else 0, 0.1, one["shape"])
            if one["role"] == "state"
            else rng.normal(0, 0.5, one["shape"])
            for one in self.network.initial_tensors
        }
        images = rng.uniform(0, 1, (N, 1, side, side)).astype(np.float32)
        self.images = {"images": images, "labels": rng.integers(0, 4, N)}
        self.batch = rows_of(self.images, np.tile(np.arange(N), copies))
        self.judge = NativeJudge(judge, self.network)
        self.witness = self.judge.witness(images=N)
        self.compute()

    def compute(self) -> None:
        """At the parameters as they are now."""
        self.witness.load(self.parameters)
        plain = self.witness.gradient(self.images, {})
        self.gradient, self.activation = plain.gradient, plain.activation
        self.edges = sorted(
            flips.edges_of(self.witness.nodes, plain.activation, LIMIT), key=lambda one: one.margin
        )

    def turned(self, *edges: Edge) -> Tensors:
        """The gradient of whoever decides these otherwise."""
        nudges = flips.nudges_of(edges, self.witness.nodes)
        return self.witness.gradient(self.images, nudges).gradient

    def lead_to(self, edge: Edge, margin: float) -> None:
        """By the bias of its channel, so near to its edge."""
        shape = self.activation[edge.source].shape
        channel = edge.place // math.prod(shape[2:]) % shape[1]
        self.parameters[f"{edge.source}.bias"][channel] += edge.nudge * (1 - margin / edge.margin)
        self.compute()

    def again(self, edge: Edge) -> Edge:
        """At the parameters as they are now."""
        return next(one for one in self.edges if (one.node, one.unit) == (edge.node, edge.unit))

    def matters(self, edge: Edge) -> bool:
        """Whether the layer in front of a decision shows it."""
        name = f"{OWNERS[edge.node]}.bias"
        return off({name: self.turned(edge)[name]}, {name: self.gradient[name]}) > 5 * TOLERANCE

    def judged(self, folder: Path, contender: Tensors) -> Parity:
        """What the gate says of a gradient."""
        for name, array in {**self.images, "order": np.arange(N)[None]}.items():
            np.save(folder / f"{name}.npy", array)
        tensors = {name: str(folder / f"{name}.npy") for name in self.images}
        batches = Batches({"proof": {"tensors": tensors, "order": str(folder / "order.npy")}})
        states = {one["name"]: self.parameters[one["name"]] for one in self.network.states}
        initial = {name: values for name, values in self.parameters.items() if name not in states}
        expected = Expected(
            initial, {}, {"name": "sgd", "learning_rate": 0.1}, batches, states, couples_batch=True
        )
        loss = self.judge.gradient(self.parameters, self.images).loss
        seen = Observation("step", "proof", 0, Look(initial, {}, states), loss=loss, gradient=contender)
        return compare([seen], self.judge, expected)

    def explained(self, contender: Tensors) -> tuple[Tensors, list[str]]:
        return explain_coupled(self.judge, self.parameters, self.batch, contender, TOLERANCE)


@pytest.fixture(autouse=True)
def wide_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    def wide(nodes: Any, activation: Any, limit: float, ties: Any) -> Any:
        return flips.edges_of(nodes, activation, LIMIT, ties)

    monkeypatch.setattr(coupled, "edges_of", wide)
    monkeypatch.setattr(coupled, "margins_of", lambda *_: {})
    monkeypatch.setattr(rounding, "_no_margins", lambda *_: {})


def off(mine: Tensors, theirs: Tensors) -> float:
    return max(norm(mine[name] - values) / size_of(theirs, name) for name, values in theirs.items())


def test_each_decision_alone_is_found() -> None:
    stage = Stage()
    assert {edge.node for edge in stage.edges} == {"relu", "relu2"}, "the stage has some behind both"
    for edge in stage.edges[:6]:
        contender = stage.turned(edge)
        if off(contender, stage.gradient) < TOLERANCE:
            continue  # of a decision that hardly matters nothing has to be said
        corrected, (words,) = stage.explained(contender)
        assert off(contender, corrected) < TOLERANCE
        assert words.startswith(f"{edge.node} unit {edge.unit} of the batch (image ")


def test_a_search_that_begins_with_a_doubt_finds_the_same() -> None:
    """It is spared the witness's own answer, and four more."""
    stage = Stage()
    names = {one["name"] for one in stage.network.states}
    states = {name: values for name, values in stage.parameters.items() if name in names}
    trained = {name: values for name, values in stage.parameters.items() if name not in names}
    doubt = rounding.doubt_of_batch(stage.witness, trained, states, stage.images, 1)
    assert doubt.answered is not None
    edge = next(one for one in stage.edges if stage.matters(one))
    contender = stage.turned(edge)
    judged = stage.judge, stage.parameters, stage.batch, contender, TOLERANCE
    mine, words = explain_coupled(*judged, doubt=replace(doubt, of={}))
    assert words == explain_coupled(*judged)[1] != []
    assert off(contender, mine) < TOLERANCE


def test_several_at_once_are_found_from_the_loss_backward() -> None:
    stage = Stage()
    some = [next(one for one in stage.edges if one.node == node and stage.matters(one)) for node in OWNERS]
    # Farther across than needed: one nudge moves what the other one has to cross.
    contender = stage.turned(*(replace(one, nudge=2 * one.nudge) for one in some))
    assert off(contender, stage.gradient) > 10 * TOLERANCE
    corrected, words = stage.explained(contender)
    assert off(contender, corrected) < 5 * TOLERANCE
    assert [one.partition(" unit")[0] for one in words[:2]] == ["relu2", "relu"]


def test_an_image_that_comes_twice_may_have_turned_once() -> None:
    stage = Stage(copies=2)
    edge = stage.edges[0]
    half = {name: (values + stage.turned(edge)[name]) / 2 for name, values in stage.gradient.items()}
    corrected, words = stage.explained(half)
    assert len(words) == 1
    assert off(half, corrected) < TOLERANCE


def test_two_of_a_channel_are_found_among_its_others() -> None:
    """Where images come often, each decision may have turned in as many steps, and the two numbers that a
    normalization has of a channel are what nearly any of them make of it, one way or the other."""
    stage = Stage(copies=16, side=16)
    channels = defaultdict(list)
    for edge in stage.edges:
        if edge.node == "relu" and stage.matters(edge):
            channels[edge.place // 14**2 % 3].append(edge)
    pairs = [pair for those in channels.values() for pair in combinations(those, 2)]
    assert len(pairs) >= 10
    for pair in pairs:
        contender = stage.turned(*pair)
        corrected, words = stage.explained(contender)
        found = {one.partition(" of the batch")[0] for one in words}
        assert found == {f"relu unit {edge.unit}" for edge in pair}
        assert off(contender, corrected) < TOLERANCE


def test_what_stands_out_in_its_row_is_found_though_the_layer_is_near_enough() -> None:
    """It would be seen in all layers before, and in the nearest it is clearest."""
    stage = Stage(side=16)

    def words_for(contender: Tensors) -> list[str]:
        allowed = {
            ("gradient", name): 1.5 * norm(contender[name] - values)
            for name, values in stage.gradient.items()
        }
        judged = stage.judge, stage.parameters, stage.batch, contender
        return explain_coupled(*judged, TOLERANCE, doubt=Doubt(of=allowed))[1]

    edges = [edge for edge in stage.edges if edge.node == "relu2" and stage.matters(edge)]
    assert len(edges) >= 2
    for edge in edges:
        (words,) = words_for(stage.turned(edge))
        assert words.startswith(f"relu2 unit {edge.unit} of the batch")
    for channel in range(4):  # in a row that no decision explains none is said to have turned
        weight = stage.gradient["conv2.weight"].copy()
        weight[channel] *= 1.5
        assert words_for({**stage.gradient, "conv2.weight": weight}) == []


def test_two_that_share_a_row_are_fitted_together() -> None:
    """They nearly cancel: one by one, the first would be taken for half of what it is."""
    first, second = np.array([[3.0, 4.0]]), np.array([[-3.0, -1.0]])
    shares = tuple((count + 1) / 16 for count in range(16))
    row = slice(0, 1)
    one, other, none = (coupled._Chance((), shares) for _ in range(3))
    looks = {
        one: coupled._Look(row, {"w": first}),
        other: coupled._Look(row, {"w": second}),
        none: coupled._Look(slice(1, 2), {"w": first}),
    }
    off = np.concatenate([first + second, np.zeros((1, 2))])
    chosen = coupled._nearest({"w": off}, looks, 0.98)
    assert dict(chosen) == {one: 1.0, other: 1.0}
    assert list(looks) == [none], "what is found is looked at no more"


@pytest.mark.parametrize("name", ["fc.weight", "bn.weight", "conv.weight"])
def test_what_no_decision_explains_stays(name: str) -> None:
    stage = Stage()
    contender = {**stage.gradient, name: 1.02 * stage.gradient[name]}
    corrected, _ = stage.explained(contender)
    assert off(contender, corrected) > TOLERANCE


@pytest.mark.parametrize("judge", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("nodes", [POOLED, MIXED], ids=["pooled", "mixed"])
def test_a_decision_of_any_layer_is_found(nodes: list[dict[str, Any]], judge: JudgingBackend) -> None:
    stage = Stage(nodes=nodes, judge=judge, side=16)
    shown: dict[str, Edge] = {}
    for edge in stage.edges:
        is_new = edge.margin > 0 and edge.node not in shown
        if is_new and off(stage.turned(edge), stage.gradient) > 5 * TOLERANCE:
            shown[edge.node] = edge
    assert "pool" in shown
    for node, edge in shown.items():
        contender = stage.turned(edge)
        corrected, words = stage.explained(contender)
        assert off(contender, corrected) < 3 * TOLERANCE
        assert any(one.startswith(f"{node} unit {edge.unit} ") for one in words), words


def test_one_look_is_at_a_decision_of_each_channel() -> None:
    stage = Stage(judge=LARGE, side=16)
    one_each: dict[int, Edge] = {}
    for edge in stage.edges:
        channel = edge.place // 14**2 % 3
        if edge.node == "relu" and stage.matters(edge):
            one_each.setdefault(channel, edge)
    assert len(one_each) == 3, "the stage has some in every channel"
    asked = []

    class Counted:
        def __getattr__(self, name: str) -> Any:
            return getattr(stage.witness, name)

        def gradient(self, images: Tensors, nudges: Tensors, **more: Any) -> Any:
            asked.append(sum(np.count_nonzero(one) for one in nudges.values()))
            return stage.witness.gradient(images, nudges, **more)

    judge = SimpleNamespace(witness=lambda ties, images: Counted())
    contender = stage.turned(*one_each.values())
    corrected, words = explain_coupled(judge, stage.parameters, stage.batch, contender, 5 * TOLERANCE)  # type: ignore[arg-type]
    assert off(contender, corrected) < 5 * TOLERANCE
    assert len(words) >= 3
    rivals = len([edge for edge in stage.edges if edge.node == "relu"])
    assert len(asked) < rivals, "fewer looks than decisions"
    assert asked[1] > 1, "several at once"


def test_reference_is_not_asked_where_equal_maxima_pass_no_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """It needs minutes for an answer of a large network. Behind a relu equal maxima are 0, unless images have
    even areas."""
    stage = Stage(nodes=POOLED, judge=LARGE, side=16)
    assert any(edge.node == "pool" and edge.margin == 0 for edge in stage.edges)
    asked: list[str] = []

    def witness(ties: Ties = "first", images: int = 1) -> Any:
        asked.append(ties)
        return NativeJudge.witness(stage.judge, ties, images)

    monkeypatch.setattr(stage.judge, "witness", witness)
    contender = {name: 1.5 * values for name, values in stage.gradient.items()}
    judged = stage.judge, stage.parameters
    assert explain_coupled(*judged, stage.batch, contender, TOLERANCE, "all") == ({}, [])
    assert asked == ["first"]
    stage.batch["images"][:] = 0.5
    monkeypatch.setattr(coupled, "FEWEST_ASKED", 1)
    monkeypatch.setattr(coupled, "MOST_WORK", {True: 0, False: 0})
    explain_coupled(*judged, stage.batch, contender, TOLERANCE, "all")
    assert asked == ["first", "first", "all"]


@pytest.mark.parametrize(
    ("values", "kind", "may_tie"),
    [
        ((1.0, 1 - 4 * 2.0**-24), "relu", True),  # equal, perhaps, for who adds up in f32
        ((1.0, 1 - 5e-6), "relu", False),
        ((0.0, 0.0), "relu", False),
        ((0.0, 0.0), "conv2d", True),
        ((-2.0, -2.0), "conv2d", True),
    ],
)
def test_which_maxima_may_be_equal(values: tuple[float, float], kind: str, may_tie: bool) -> None:
    shape = {"kernel_h": 1, "kernel_w": 2, "stride_h": 1, "stride_w": 2, "padding_h": 0, "padding_w": 0}
    pool = {"name": "pool", "kind": "max_pool2d", "inputs": ["x"], "attributes": shape, "shape": (1, 1, 1, 1)}
    shown = {"x": np.array(values).reshape(1, 1, 1, 2), "pool": np.full((1, 1, 1, 1), max(values))}
    witness: Any = SimpleNamespace(
        nodes=[{"name": "x", "kind": kind}, pool],
        is_large=True,
        load=lambda parameters: None,
        gradient=lambda images, nudges: SimpleNamespace(activation=shown),
    )
    assert coupled._may_tie(witness, {}, {}) is may_tie


def test_around_a_sum_nothing_is_looked_at_that_was_near_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turned behind the first sum; what decides behind the second shows in all rows in front of the first,
    and would be looked at one by one."""
    stage = Stage(nodes=RESIDUAL, judge=LARGE, side=16)
    edge = next(one for one in stage.edges if one.node == "relu2" and stage.matters(one))
    later = sum(one.node == "relu3" for one in stage.edges)
    asked: list[Any] = []
    gradient = coupled._Search._gradient
    monkeypatch.setattr(
        coupled._Search, "_gradient", lambda self, nudges: asked.append(nudges) or gradient(self, nudges)
    )
    contender = stage.turned(edge)
    corrected, words = stage.explained(contender)
    assert off(contender, corrected) < TOLERANCE
    assert any(one.startswith(f"relu2 unit {edge.unit} ") for one in words), words
    assert len(asked) < later / 2, "fewer looks than decisions behind the second sum"


def test_windows_of_equal_values_do_not_keep_it_from_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a relu windows hold nothing but 0: which of those is the largest changes nothing."""
    monkeypatch.setattr(coupled, "FEWEST_ASKED", 3)
    monkeypatch.setattr(coupled, "MOST_WORK", {True: 0, False: 0})
    stage = Stage(nodes=POOLED, side=16)
    assert sum(edge.margin == 0 for edge in stage.edges) > 3
    edge = next(one for one in stage.edges if one.node == "relu2" and one.margin > 0)
    contender = stage.turned(edge)
    corrected, (words,) = stage.explained(contender)
    assert off(contender, corrected) < TOLERANCE
    assert words.startswith(f"relu2 unit {edge.unit} ")


def test_the_search_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coupled, "FEWEST_ASKED", 0)
    monkeypatch.setattr(coupled, "MOST_WORK", {True: 0, False: 0})
    stage = Stage()
    corrected, words = stage.explained(stage.turned(stage.edges[0]))
    assert (words, off(corrected, stage.gradient)) == ([], 0)


def test_a_gradient_that_vanishes_is_measured_by_its_layer() -> None:
    """The bias in front of a normalization: whatever it is, the mean takes it away."""
    gradient = Stage().gradient
    assert norm(gradient["conv.bias"]) < 1e-12 * norm(gradient["conv.weight"])
    assert size_of(gradient, "conv.bias") == norm(gradient["conv.weight"])
    assert size_of(gradient, "bn.bias") == norm(gradient["bn.bias"])


@pytest.mark.parametrize(("noise", "status"), [(1e-6, "passed"), (1e-3, "failed")])
def test_noise_in_it_is_no_error_and_more_is(tmp_path: Path, noise: float, status: str) -> None:
    stage = Stage()
    mine = dict(stage.gradient)
    mine["conv.bias"] = mine["conv.bias"] + noise * norm(mine["conv.weight"]) / 3**0.5
    parity = stage.judged(tmp_path, mine)
    assert parity.status == status
    if status == "failed":
        assert parity.tensor == "step: gradient conv.bias"


@pytest.mark.attempt
@pytest.mark.parametrize(("turned", "wrong"), [(1, 0.0), (0, 0.003), (1, 0.003)])
def test_what_rounding_may_turn_hides_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turned: int, wrong: float
) -> None:
    """Last places of the parameters turn a decision, which changes gradients by some percent. Whoever has it
    turned is shown to, and passes; who is off by less than that in another way does not, turned or not."""
    monkeypatch.setattr(coupled, "edges_of", flips.edges_of)
    stage = Stage()
    edge = next(one for one in stage.edges if one.node == "relu2" and stage.matters(one))
    stage.lead_to(edge, 1e-6 * edge.margin)
    edge = stage.again(edge)
    assert edge.margin < flips.TURNED_MARGIN
    flipped = stage.turned(edge)
    assert off(flipped, stage.gradient) > 5 * wrong
    contender = {
        name: values + turned * (flipped[name] - values) + wrong * values * (name == "conv.weight")
        for name, values in stage.gradient.items()
    }
    parity = stage.judged(tmp_path, contender)
    assert parity.status == ("failed" if wrong else "passed"), parity.reason
    assert any("relu2 unit" in one for one in parity.turned) == (not wrong), parity.turned


def _one_behind_the_other() -> Iterator[tuple[Stage, Edge, Edge, Tensors]]:
    """A stage, a decision of its first layer, one of its second that lies much nearer to its edge, and what
    turns the first by no more than its value, which turns the second."""
    for some in [edge for edge in Stage().edges if edge.node == "relu"]:
        stage = Stage()
        stage.lead_to(some, 8e-6)
        near = stage.again(some)
        nudges = flips.nudges_of([replace(near, nudge=2 * near.nudge, back=0.0)], stage.witness.nodes)
        moved = stage.witness.gradient(stage.images, nudges).activation["bn2"] - stage.activation["bn2"]
        for other in stage.edges:
            is_led = other.node == "relu2" and moved.reshape(-1)[other.place] * np.sign(other.nudge) > 1e-8
            if is_led and stage.matters(near) and stage.matters(other):
                stage.lead_to(other, 1e-9)
                yield stage, stage.again(near), stage.again(other), nudges


@pytest.mark.attempt
@pytest.mark.parametrize(("wrong", "tensor"), [(0.0, None), (0.002, "conv.weight"), (0.002, "bn.weight")])
def test_turning_one_decision_turns_none_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: float, tensor: str | None
) -> None:
    """The farther a nudge has to lead, the more decisions behind it lie nearer to their edges. One that it
    would turn changes gradients by some percent: whoever did not turn it passes, and nothing of that size
    hides in its place."""
    monkeypatch.setattr(coupled, "edges_of", flips.edges_of)
    stage, near, behind, nudges = next(_one_behind_the_other())
    both = stage.witness.gradient(stage.images, nudges).gradient
    assert off(both, stage.turned(near, behind)) < 1e-4, "the nudge alone turns both"
    turned = stage.turned(near)
    assert off(both, turned) > 5 * TOLERANCE
    mine = {name: values * (1 + wrong * (name == tensor)) for name, values in turned.items()}
    parity = stage.judged(tmp_path, mine)
    assert parity.status == ("failed" if wrong else "passed"), parity.reason
    if not wrong:
        (words,) = parity.turned
        assert words.startswith(f"step: relu unit {near.unit} of the batch")


def test_a_normalized_batch_has_few_different_images_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    of = network(16)
    assert part_of(of) == 16
    per_image = of.multiply_accumulates("gradient") // 16
    monkeypatch.setattr(parts, "COUPLED_LIMIT", 9 * per_image)
    assert part_of(of) == 8
    monkeypatch.setattr(parts, "COUPLED_LIMIT", 1)
    assert part_of(of) == FEWEST


def test_it_is_judged_by_its_different_images_and_otherwise_whole() -> None:
    """Loss, gradients and running values of a batch in which each image comes three times are those of the
    images; one in which they come unequally often is computed as it is."""
    stage = Stage()
    large = NativeJudge(SMALL, network(3 * N))
    asked = []

    def whole() -> NativeJudge:
        asked.append(1)
        return large

    judge = PartJudge(stage.judge, N, whole)
    order = np.random.default_rng(1).permutation(np.tile(np.arange(N), 3))
    for rows, times in ((order, 0), (np.sort(order)[[0, *range(17)]], 1)):
        batch = rows_of(stage.images, rows)
        mine, theirs = judge.gradient(stage.parameters, batch), large.gradient(stage.parameters, batch)
        assert len(asked) == times
        assert mine.loss == pytest.approx(theirs.loss, rel=1e-12)
        assert off(mine.gradient, theirs.gradient) < 1e-10
        assert {*mine.state} == {one["name"] for one in stage.network.states}
        for name, values in mine.state.items():
            np.testing.assert_allclose(values, theirs.state[name], rtol=1e-12)
