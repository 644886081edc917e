"""Decisions that rounding turns: found, shown, and nothing else explained by them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timetrial as tt
from timetrial.agreement.update import Rule
from timetrial.core import Network, NetworkError, images_and_labels
from timetrial.proof.expected import Expected
from timetrial.proof.flips import Turn, edges_of, every_tie, explain, turns
from timetrial.proof.judge import SMALL, TIES, Answer, NativeJudge, NativeWitness
from timetrial.proof.parity import compare
from timetrial.proof.ways import Guide
from timetrial.questions.observed import Batches, Look, Observation, Plain, Tensors
from timetrial.records.model import Parity

NODES = [
    {"name": "conv", "kind": "conv2d", "attributes": {"channels": 3, "kernel": 3}},
    {"name": "pool", "kind": "max_pool2d", "attributes": {"kernel": 2}},
    {"name": "flat", "kind": "flatten"},
    {"name": "fc1", "kind": "dense", "attributes": {"units": 6}},
    {"name": "relu", "kind": "relu"},
    {"name": "fc2", "kind": "dense", "attributes": {"units": 4}},
    {"name": "loss", "kind": "softmax_cross_entropy", "inputs": ["fc2", "labels"]},
]
N = 5
TURNED_IMAGE, UNIT = 2, 4
KINK = 0.25


class Stage:
    """A network whose relu unit UNIT lies `margin` (of the rms) from its edge for one image."""

    def __init__(self, folder: Path, margin: float, kind: str = "relu", kink: float = 0.0):
        self.kink = kink
        nodes = [one | {"kind": kind} if one["kind"] == "relu" else one for one in NODES]
        self.network = Network(nodes, N, images_and_labels((1, 8, 8)))
        rng = np.random.default_rng(5)
        self.images = rng.uniform(0, 1, (N, 1, 8, 8)).astype(np.float32)
        self.labels = rng.integers(0, 4, N)
        self.parameters: Tensors = {
            one["name"]: rng.normal(0, 0.5, one["shape"]).astype(np.float32)
            for one in self.network.parameters
        }
        self.judge = NativeJudge(SMALL, self.network)
        # The bias is in f32: the rest of the way to the edge is done in the image's own place of `flat`.
        for _ in range(60):
            value, rms, flat = self._unit()
            if abs(value / rms - margin) < 0.2 * margin:
                break
            weight = self.parameters["fc1.weight"][UNIT]
            at = int(np.argmax(np.abs(flat)))
            self.parameters["fc1.bias"][UNIT] -= np.float32(value - margin * rms)
            value, rms, flat = self._unit()
            weight[at] = np.float32(weight[at] - (value - margin * rms) / flat[at])
        for name, array in (("images", self.images), ("labels", self.labels), ("order", np.arange(N)[None])):
            np.save(folder / f"{name}.npy", array)
        tensors = {name: str(folder / f"{name}.npy") for name in ("images", "labels")}
        files: dict[str, Any] = {"tensors": tensors, "order": str(folder / "order.npy")}
        self.expected = Expected(
            initial=self.parameters,
            nodes={},
            optimizer={"name": "sgd", "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.01},
            batches=Batches({"proof": files, "train": files}),
        )

    @property
    def batch(self) -> Tensors:
        return {"images": self.images, "labels": self.labels}

    def image(self, number: int) -> Tensors:
        """A batch of one."""
        return {"images": self.images[[number]], "labels": self.labels[[number]]}

    def _unit(self) -> tuple[float, float, np.ndarray]:
        witness = self.judge.witness()
        witness.load(self.parameters)
        shown = witness.gradient(self.image(TURNED_IMAGE), {}).activation
        return (
            float(shown["fc1"][0, UNIT]) - self.kink,
            float(np.sqrt(np.mean(shown["fc1"] ** 2))),
            shown["flat"][0],
        )

    def turned(self, node: str, share: float = 1.0) -> Tensors:
        """The judge's gradients with the decisions of a node that are close turned."""
        answer = self.judge.gradient(self.parameters, self.batch)
        wanted = [one for one in turns(self.judge, self.parameters, self.batch) if one.words.startswith(node)]
        assert wanted
        return {n: v + share * sum(one.difference[n] for one in wanted) for n, v in answer.gradient.items()}

    def judged(self, gradient: Tensors) -> Parity:
        loss = self.judge.gradient(self.parameters, self.batch).loss
        shown = {name: values.astype(np.float32) for name, values in gradient.items()}
        seen = Observation("", "proof", 0, Look(self.parameters), fresh=True, loss=loss, gradient=shown)
        return compare([seen], self.judge, self.expected)

    def judged_step(self, gradient: Tensors) -> Parity:
        """The same, of a training step that used this gradient."""
        sgd = self.expected.optimizer
        loss = self.judge.gradient(self.parameters, self.batch).loss
        velocity = {
            f"{n}.velocity": (g + sgd["weight_decay"] * self.parameters[n]).astype(np.float32)
            for n, g in gradient.items()
        }
        after = {
            n: (self.parameters[n] - 0.1 * velocity[f"{n}.velocity"]).astype(np.float32) for n in gradient
        }
        seen = Observation(
            "step 1", "proof", 0, Look(self.parameters), fresh=True, loss=loss, after=Look(after, velocity)
        )
        return compare([seen], self.judge, self.expected)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, 2e-6)


def test_a_decision_on_the_edge_is_shown(stage: Stage) -> None:
    gradient = stage.turned("relu unit 4 of image 2")
    for parity in (stage.judged(gradient), stage.judged_step(gradient)):
        assert parity.status == "passed", parity.reason
        assert parity.notes == ["flips"]
        assert len(parity.turned) == 1
        assert f"relu unit {UNIT} of image {TURNED_IMAGE}, margin 2e-06" in parity.turned[0]
        assert all(one.passed for one in parity.comparisons)


@pytest.mark.parametrize("more", [(0, None), (1, None), (0, 1, 2, None)])
def test_a_decision_is_found_behind_those_that_are_tried_first(
    stage: Stage, more: tuple[int | None, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timetrial.proof.court.MORE_TURNED", more)
    gradient = stage.turned("relu unit 4 of image 2")
    parity = stage.judged(gradient)
    assert parity.status == "passed", parity.reason
    assert [one.partition(",")[0] for one in parity.turned] == [f"relu unit {UNIT} of image {TURNED_IMAGE}"]


def test_a_search_that_finds_no_more_ends(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def counted(residual: Any, gradient: Any, possible: Any) -> Any:
        tried.append(len(possible))
        return explain(residual, gradient, possible)

    monkeypatch.setattr("timetrial.proof.court.explain", counted)
    gradient = stage.turned("relu unit 4 of image 2")
    wrong = {name: 1.1 * values for name, values in gradient.items()}
    assert stage.judged(wrong).status == "failed"
    assert tried
    assert len(tried) <= len(TIES), "each would try the same few decisions six times"


def test_what_nobody_asks_for_is_not_computed(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """150 gradients of an image take a second of LeNet-5, and the closest decision is mostly the one."""
    asked = []
    gradient = NativeWitness.gradient

    def counted(self: NativeWitness, *words: Any, **options: Any) -> Answer:
        asked.append(words)
        return gradient(self, *words, **options)

    def wide(nodes: Any, activation: Any, ties: Any) -> Any:
        return edges_of(nodes, activation, 0.02, ties)

    monkeypatch.setattr(NativeWitness, "gradient", counted)
    monkeypatch.setattr("timetrial.proof.flips.edges_of", wide)
    found = turns(stage.judge, stage.parameters, stage.batch)
    next(found)
    assert len(asked) == 3  # all images at once, the one whose decision is closest, and that one turned
    rest = list(found)
    assert len(asked) >= 3 + len(rest) > 6


@tt.layer_kind
class Leaky(tt.LayerDefinition):
    """Its slope is another on either side of KINK."""

    kind = "test_leaky"
    kinks = (KINK,)

    def forward(self, layer: tt.Layer, inputs: Any, parameters: Any) -> Any:
        x = inputs[0] - KINK
        return np.where(x > 0, x, 0.1 * x)

    def backward(self, layer: tt.Layer, inputs: Any, parameters: Any, output: Any, gradient: Any) -> Any:
        return [gradient * np.where(inputs[0] > KINK, 1.0, 0.1)], []


@tt.layer_kind
class Silent(Leaky):
    """The same; but nobody is told."""

    kind = "test_silent"
    kinks = ()


@pytest.mark.parametrize("kind", ["test_leaky", "test_silent"])
def test_a_kind_of_ones_own_says_where_its_slope_jumps(tmp_path: Path, kind: str) -> None:
    told = Stage(tmp_path, 2e-6, "test_leaky", KINK)
    gradient = told.turned("relu unit 4 of image 2")
    parity = Stage(tmp_path, 2e-6, kind, KINK).judged(gradient)
    assert parity.status == ("passed" if kind == "test_leaky" else "failed")
    assert parity.notes == (["flips"] if kind == "test_leaky" else [])


@pytest.mark.parametrize("kinks", [(float("nan"),), "zero", (True,)])
def test_kinks_that_are_no_numbers_are_refused(kinks: Any) -> None:
    with pytest.raises(NetworkError, match="expected a list of numbers"):
        tt.layer_kind(type("Bad", (Leaky,), {"kind": "test_bad", "kinks": kinks}))
    with pytest.raises(NetworkError, match="treats each value alone"):
        tt.layer_kind(type("Bad", (Leaky,), {"kind": "test_bad", "several": True}))


def test_what_agrees_needs_no_explanation(stage: Stage) -> None:
    answer = stage.judge.gradient(stage.parameters, stage.batch)
    parity = stage.judged(answer.gradient)
    assert (parity.status, parity.notes, parity.turned) == ("passed", [], [])


@pytest.mark.parametrize("share", [0.5, -1.0, 2.0, 0.999])
def test_half_a_decision_is_none(stage: Stage, share: float) -> None:
    parity = stage.judged(stage.turned("relu unit 4 of image 2", share))
    assert parity.status == "failed"
    assert (parity.notes, parity.turned) == ([], [])


def test_an_error_beside_a_turned_decision_is_still_an_error(stage: Stage) -> None:
    gradient = stage.turned("relu unit 4 of image 2")
    gradient["conv.weight"] = gradient["conv.weight"] * 1.0001
    parity = stage.judged(gradient)
    assert parity.status == "failed"
    assert parity.turned == []


def test_a_decision_far_from_its_edge_is_not_excused(tmp_path: Path) -> None:
    stage = Stage(tmp_path, 1e-3)
    witness = stage.judge.witness()
    witness.load(stage.parameters)
    image = stage.image(TURNED_IMAGE)
    plain = witness.gradient(image, {})
    edge = next(
        one
        for one in edges_of(witness.nodes, plain.activation, limit=1e-2)
        if (one.node, one.unit) == ("relu", UNIT)
    )
    nudge = np.zeros((1, 6))
    nudge[0, edge.place] = edge.nudge
    turned = witness.gradient(image, {edge.source: nudge}).gradient
    answer = stage.judge.gradient(stage.parameters, stage.batch)
    gradient = {n: v + (turned[n] - plain.gradient[n]) / N for n, v in answer.gradient.items()}
    assert stage.judged(gradient).status == "failed"


def test_ties_turn_together(tmp_path: Path) -> None:
    """Blank images and biases of 0: a relu's input is exactly 0, and its slope there 0, 1/2 or 1."""
    stage = Stage(tmp_path, 1e-2)
    stage.images[1:3] = 0
    np.save(tmp_path / "images.npy", stage.images)
    for name in ("conv.bias", "fc1.bias"):
        stage.parameters[name][:] = 0
    answer = stage.judge.gradient(stage.parameters, stage.batch)
    assert stage.judged(answer.gradient).notes == []
    for share in (1.0, 0.5):
        parity = stage.judged(stage.turned("relu: ", share))
        assert parity.status == "passed", parity.reason
        assert parity.notes == ["ties"]
        assert parity.turned == ["relu: 12 ties"]
    assert stage.judged(stage.turned("relu: ", 0.7)).status == "failed"


def _with_equal_maxima(folder: Path) -> Stage:
    """Two images of one value and one nearly so: in a window four maxima are equal, or within rounding."""
    stage = Stage(folder, 1e-2)
    stage.images[1:3] = 0.25
    stage.images[3] = 0.5 + 1e-6 * stage.images[3]
    stage.parameters["fc1.bias"][:] = 2  # no relu is off for them
    np.save(folder / "images.npy", stage.images)
    return stage


def _every(stage: Stage) -> Tensors:
    return every_tie(stage.judge, stage.parameters, stage.batch).difference


def _gradient(stage: Stage, *more: Tensors) -> Tensors:
    answer = stage.judge.gradient(stage.parameters, stage.batch)
    return {name: values + sum(one[name] for one in more) for name, values in answer.gradient.items()}


def test_every_one_of_equal_maxima_may_get_the_gradient(tmp_path: Path) -> None:
    """Theano's convention, which is no derivative."""
    stage = _with_equal_maxima(tmp_path)
    for parity in (
        stage.judged(_gradient(stage, _every(stage))),
        stage.judged_step(_gradient(stage, _every(stage))),
    ):
        assert parity.status == "passed", parity.reason
        assert parity.turned[0].endswith("54 ties of maxima, each value of them")


def test_what_is_a_tie_in_single_precision_alone_is_found(tmp_path: Path) -> None:
    stage = _with_equal_maxima(tmp_path)
    close = turns(stage.judge, stage.parameters, stage.batch, "all")
    both = next(one for one in close if one.words.endswith(", a tie in f32"))
    parity = stage.judged(_gradient(stage, _every(stage), both.difference))
    assert parity.status == "passed", parity.reason
    assert parity.notes == ["flips", "ties"]
    assert both.words in parity.turned


def _of_nearly_nothing(folder: Path) -> tuple[Stage, Tensors]:
    """Three images of less than f32 can add to a bias, and what ties between all of their values make."""
    stage = _with_equal_maxima(folder)
    stage.images[1:4] = 0
    together = {
        name: values - _gradient(stage)[name] for name, values in _gradient(stage, _every(stage)).items()
    }
    stage.images[1:4] = 1e-10 * np.random.default_rng(3).uniform(0, 1, (3, 1, 8, 8))
    np.save(folder / "images.npy", stage.images)
    return stage, together


def test_what_single_precision_cannot_tell_apart_turns_together(tmp_path: Path) -> None:
    """Theano on LeNet-5, in one of thirty seeds: borders of digits in a batch of 256."""
    stage, together = _of_nearly_nothing(tmp_path)
    for parity in (
        stage.judged(_gradient(stage, together)),
        stage.judged_step(_gradient(stage, together)),
    ):
        assert parity.status == "passed", parity.reason
        assert parity.turned[0].endswith("81 ties in f32")


@pytest.mark.attempt
@pytest.mark.parametrize("share", [0.5, 2.0, -1.0])
def test_a_part_of_them_does_not(tmp_path: Path, share: float) -> None:
    stage, together = _of_nearly_nothing(tmp_path)
    part = {name: share * values for name, values in together.items()}
    assert stage.judged(_gradient(stage, part)).status == "failed"


def test_who_ties_may_do_so_with_a_third(stage: Stage) -> None:
    """Two that are equal, and one nearly so."""
    pool = next(node for node in stage.judge.witness("all").nodes if node["name"] == "pool")
    shown = {"conv": np.zeros((1, 3, 6, 6))}
    shown["conv"][0, 0, :2, :2] = [[1, 1], [1 - 1e-9, 0]]
    shown["conv"][0, :, 2:, :] = np.arange(72).reshape(3, 4, 6) + 2
    shown["conv"][0, :, :2, 2:] = np.arange(24).reshape(3, 2, 4) + 2
    shown["conv"][0, 1:, :2, :2] = np.arange(8).reshape(2, 2, 2) + 2
    for ties, places in (("first", [1]), ("all", [6, 6])):
        found = list(edges_of([pool], shown, ties=ties))  # type: ignore[arg-type]
        assert [one.place for one in found] == places
    assert [one.is_tied for one in found] == [False, True]


@pytest.mark.attempt
@pytest.mark.parametrize("share", [0.5, 0.9, 2.0, -1.0])
def test_part_of_a_convention_is_none(tmp_path: Path, share: float) -> None:
    stage = _with_equal_maxima(tmp_path)
    part = {name: share * values for name, values in _every(stage).items()}
    parity = stage.judged(_gradient(stage, part))
    assert (parity.status, parity.turned) == ("failed", [])


@pytest.mark.attempt
def test_a_convention_for_one_tensor_only_is_none(tmp_path: Path) -> None:
    stage = _with_equal_maxima(tmp_path)
    every = _every(stage)
    one = {name: values * (name == "conv.bias") for name, values in every.items()}
    assert np.any(every["conv.bias"])
    assert stage.judged(_gradient(stage, one)).status == "failed"


def test_a_way_follows_the_convention_of_its_steps(tmp_path: Path) -> None:
    stage = _with_equal_maxima(tmp_path)
    start = {name: values.astype(np.float64) for name, values in stage.parameters.items()}
    rule = Rule.of(stage.expected.optimizer)
    every, first = (
        Guide(stage.judge, stage.expected.batches, rule, start, ties) for ties in ("all", "first")
    )
    losses = every.way("proof", 3).losses
    assert every.way_of("proof", losses).words == []
    assert every.way_of("proof", losses).losses == losses
    assert abs(first.way_of("proof", losses).losses[1] - losses[1]) > 1e-4 * losses[1]


def test_rivals_of_a_maximum(tmp_path: Path) -> None:
    stage = Stage(tmp_path, 1e-2)
    witness = stage.judge.witness()
    witness.load(stage.parameters)
    shown = witness.gradient(stage.image(0), {}).activation
    edges = [one for one in edges_of(witness.nodes, shown, limit=0.05) if one.node == "pool"]
    assert edges
    conv = shown["conv"][0]
    for edge in edges:
        channel, row, column = np.unravel_index(edge.unit, (3, 3, 3))
        window = np.sort(conv[channel, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2], axis=None)
        assert edge.margin == pytest.approx((window[-1] - window[-2]) / np.sqrt(np.mean(conv**2)))
        assert conv.reshape(-1)[edge.place] == window[-2]
        nudge = np.zeros((1, *conv.shape))
        nudge.reshape(-1)[edge.place] = edge.nudge
        raised = witness.gradient(stage.image(0), {"conv": nudge})
        assert raised.activation["pool"].reshape(-1)[edge.unit] == pytest.approx(window[-1])


def test_a_decision_that_shows_in_few_weights_is_found() -> None:
    """One filter of many: 25 of 60,000 numbers, while the others carry what rounding does."""
    rng = np.random.default_rng(3)
    gradient = {"conv": rng.normal(0, 1, (6, 1, 5, 5)), "fc": rng.normal(0, 1, (120, 500))}
    turned = {"conv": np.zeros((6, 1, 5, 5)), "fc": np.zeros((120, 500))}
    turned["conv"][3] = 2e-5 * rng.normal(0, 1, (1, 5, 5))
    others = [{"conv": np.zeros((6, 1, 5, 5)), "fc": 1e-6 * rng.normal(0, 1, (120, 500))} for _ in range(255)]
    possible = [Turn("other", (1.0,), one) for one in others] + [Turn("it", (1.0,), turned)]
    noise = {name: 3e-7 * values * rng.normal(0, 1, values.shape) for name, values in gradient.items()}
    residual = {name: turned[name] + noise[name] for name in gradient}
    corrected, words = explain(residual, gradient, possible)
    assert words == ["it"]
    assert np.array_equal(corrected["conv"], gradient["conv"] + turned["conv"])


def test_nothing_explains_nothing() -> None:
    gradient = {"a": np.ones(3)}
    assert explain({"a": np.ones(3)}, gradient, []) == (gradient, [])


def test_a_nudge_lasts_for_one_look(stage: Stage) -> None:
    witness = stage.judge.witness()
    witness.load(stage.parameters)
    before = witness.gradient(stage.image(0), {})
    witness.gradient(stage.image(0), {"fc1": np.ones((1, 6))})
    after = witness.gradient(stage.image(0), {})
    assert all(np.array_equal(before.gradient[name], after.gradient[name]) for name in before.gradient)


def followed(stage: Stage, turned: Mapping[int, Tensors], off: float = 1.0) -> Parity:
    """Of a contender that nobody looks into, on five steps; `off`: a factor of its last loss."""
    start = {name: values.astype(np.float64) for name, values in stage.parameters.items()}
    guide = Guide(stage.judge, stage.expected.batches, Rule.of(stage.expected.optimizer), start)
    way = guide.way("proof", 5, turned)
    losses = [*way.losses[:-1], off * way.losses[-1]]
    end = Look({name: values.astype("f4") for name, values in way.end.items()})
    plain = Plain("proof", losses, Look(stage.parameters), end)
    return compare([], stage.judge, stage.expected, plain=plain, losses=losses)


def _difference(stage: Stage, share: float = 1.0) -> Tensors:
    found = turns(stage.judge, stage.parameters, stage.batch)
    [turn] = [one for one in found if one.words.startswith(f"relu unit {UNIT} of image {TURNED_IMAGE}")]
    return {name: share * values for name, values in turn.difference.items()}


def test_a_decision_turned_in_a_step_that_nobody_saw_is_found_by_its_losses(stage: Stage) -> None:
    parity = followed(stage, {0: _difference(stage)})
    assert parity.status == "passed", parity.reason
    assert parity.notes == ["flips"]
    words = f"step 1: relu unit {UNIT} of image {TURNED_IMAGE}, margin 2e-06"
    assert parity.turned == [f"plain {words}", f"workload: {words}"]


def test_a_way_that_agrees_needs_no_explanation(stage: Stage) -> None:
    parity = followed(stage, {})
    assert (parity.status, parity.turned) == ("passed", [])


@pytest.mark.attempt
@pytest.mark.parametrize(("share", "off"), [(0.5, 1.0), (-1.0, 1.0), (2.0, 1.0), (1.0, 1.01)])
def test_another_way_is_not_explained_by_a_decision_on_the_edge(
    stage: Stage, share: float, off: float
) -> None:
    parity = followed(stage, {0: _difference(stage, share)}, off)
    assert parity.status == "failed"
    assert "plain step" in str(parity.reason)
    assert parity.turned == []


@pytest.mark.attempt
def test_a_way_off_a_decision_far_from_its_edge_is_not_excused(tmp_path: Path) -> None:
    far = Stage(tmp_path, 1e-3)
    gradient = far.judge.gradient(far.parameters, far.batch).gradient
    parity = followed(far, {0: {name: 0.01 * values for name, values in gradient.items()}})
    assert parity.status == "failed"
    assert parity.turned == []
