"""Decisions in which gradients differ from what was shown: found, or the contender is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from stages import IMAGES, NORMALIZED, PLAIN, Stage

from timetrial.agreement.precision import F32
from timetrial.agreement.sizes import norm
from timetrial.proof.court import Court
from timetrial.proof.decisions import MARGIN, Turn, _turns
from timetrial.proof.judge import LARGE, SMALL
from timetrial.proof.parts import PartJudge
from timetrial.questions.observed import Look, Observation, Tensors


def near_edge(stage: Stage, layer: str, bias: str, margin: float = 3e-7) -> None:
    """Moves a bias of the layer so that one of its values lies this near to 0, and shows everything anew."""
    x = stage.answer().activation[layer]
    size = norm(x) / np.sqrt(x.size)
    place = np.unravel_index(int(np.argmin(np.abs(x - margin * size))), x.shape)
    stage.parameters[bias][place[1]] += np.float32(margin * size - x[place])
    stage.shown = stage.honest()


def turned(stage: Stage, turn: Turn, share: float = 1.0) -> Tensors:
    """The gradients of whoever has decided otherwise than he shows."""
    values = {**stage.answer().activation, **stage.shown}
    shown = dict(stage.shown)
    for name, (places, new) in turn.values.items():
        shown[name] = np.array(values[name], np.float64)
        shown[name].reshape(-1)[places] = new
    plain, other = stage.answer().gradient, stage.answer(shown).gradient
    return {name: plain[name] + share * (other[name] - plain[name]) for name in plain}


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("share", "status"),
    [(0.5, "passed"), (0.25, "passed"), (0.375, "failed"), (1.25, "failed"), (-0.25, "failed")],
)
def test_of_samples_that_repeat_whole_ones_turn(tmp_path: Path, share: float, status: str) -> None:
    stage = Stage(tmp_path, PLAIN)
    near_edge(stage, "fc1", "fc1.bias")
    gradient = turned(stage, nearest(stage, "relu2"), share)
    np.save(tmp_path / "order.npy", np.tile(np.arange(IMAGES), 4)[None])
    stage.judge = PartJudge(stage.judge, IMAGES)  # type: ignore[assignment]
    assert stage.judged(gradient).status == status


def turns(stage: Stage) -> list[Turn]:
    return _turns(stage.expected.layers, {**stage.answer().activation, **stage.shown})


def nearest(stage: Stage, layer: str) -> Turn:
    return next(one for one in turns(stage) if not one.is_tie and one.words.startswith(layer))


@pytest.fixture(params=[SMALL, LARGE], ids=lambda one: one.name)
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Stage:
    found = Stage(tmp_path, PLAIN, request.param)
    near_edge(found, "fc1", "fc1.bias")
    return found


def test_a_decision_on_the_edge_is_found_and_shown(stage: Stage) -> None:
    turn = nearest(stage, "relu2")
    assert turn.margin < MARGIN
    parity = stage.judged(turned(stage, turn))
    assert parity.status == "passed", parity.reason
    assert parity.turned == [turn.words]


@pytest.mark.parametrize(("own", "shows"), [(3e-7, 4e-7), (3e-7, 0.0), (-3e-7, 1e-7)])
def test_the_output_says_what_was_decided_of_a_value_that_is_not_shown(
    tmp_path: Path, own: float, shows: float
) -> None:
    stage = Stage(tmp_path, PLAIN)
    near_edge(stage, "fc1", "fc1.bias", own)
    place = int(np.argmin(np.abs(stage.shown.pop("fc1"))))
    stage.shown["relu2"].flat[place] = shows
    otherwise = {**stage.shown, "relu2": stage.shown["relu2"].copy()}
    otherwise["relu2"].flat[place] = 0.0 if shows else 1e-7
    parity = stage.judged(stage.answer(otherwise).gradient)
    assert parity.status == "passed", parity.reason
    assert len(parity.turned) == 1
    assert f"relu2 unit {place}," in parity.turned[0]


@pytest.mark.parametrize("x", [3 + 1e-7, 3 - 1e-7])
def test_of_a_kind_of_ones_own_the_input_turns_and_the_output_stays(
    monkeypatch: pytest.MonkeyPatch, x: float
) -> None:
    """A hard sigmoid gives 1 at 3: what comes out of a kink need not be the kink."""
    traits = SimpleNamespace(kinks=(-3.0, 3.0), picks_largest=False)
    monkeypatch.setattr("timetrial.proof.decisions.layer_traits", lambda _: traits)
    values = {"fc": np.array([[x, 0.0]]), "gate": np.array([[min(x / 6 + 0.5, 1.0), 0.5]])}
    (turn,) = _turns([{"name": "gate", "kind": "hard_sigmoid", "inputs": ["fc"]}], values)
    assert turn.values.keys() == {"fc"}
    place, there = turn.values["fc"]
    assert place == 0
    assert (there > 3) == (x < 3)


@pytest.mark.parametrize("judge", [SMALL, LARGE], ids=lambda one: one.name)
@pytest.mark.parametrize(
    ("layer", "edge", "bias"), [("relu1", "norm", "norm.bias"), ("relu2", "sum", "conv2.bias")]
)
def test_where_images_depend_on_each_other_too(
    tmp_path: Path, judge: Any, layer: str, edge: str, bias: str
) -> None:
    stage = Stage(tmp_path, NORMALIZED, judge)
    near_edge(stage, edge, bias)
    parity = stage.judged(turned(stage, nearest(stage, layer)))
    assert parity.status == "passed", parity.reason
    assert any(layer in words for words in parity.turned)


@pytest.mark.parametrize("share", [0.5, -1.0, 2.0, 0.99])
def test_half_a_decision_is_none(stage: Stage, share: float) -> None:
    assert stage.judged(turned(stage, nearest(stage, "relu2"), share)).status == "failed"


@pytest.mark.parametrize("name", ["conv1.weight", "fc1.bias", "fc2.weight"])
def test_an_error_beside_a_turned_decision_is_still_an_error(stage: Stage, name: str) -> None:
    gradient = turned(stage, nearest(stage, "relu2"))
    gradient[name] = gradient[name] * (1 + 1e-3)
    assert stage.judged(gradient).status == "failed"


def test_a_decision_far_from_its_edge_is_not_excused(tmp_path: Path) -> None:
    stage = Stage(tmp_path, PLAIN)
    near_edge(stage, "fc1", "fc1.bias", 30 * MARGIN)
    x = stage.shown["fc1"].astype(np.float64)
    place = np.array([int(np.argmin(np.where(x > 0, x, np.inf)))])
    gradient = turned(
        stage, Turn("relu2", "", 0.0, {"fc1": (place, -x.flat[place]), "relu2": (place, np.zeros(1))})
    )
    assert stage.judged(gradient).status == "failed"


def of_pixels(tmp_path: Path, images: Any, judge: Any = SMALL) -> Stage:
    """Whose first convolution takes each pixel as it is: maxima are those of the images."""
    stage = Stage(tmp_path, PLAIN, judge)
    stage.batch["images"][:] = images
    np.save(tmp_path / "images.npy", stage.batch["images"])
    stage.parameters["conv1.weight"][:] = 0
    stage.parameters["conv1.weight"][:, 0, 1, 1] = (1.0, 0.5, 2.0, 1.0)
    stage.parameters["conv1.bias"][:] = 0
    stage.shown = stage.honest()
    return stage


@pytest.mark.parametrize("judge", [SMALL, LARGE], ids=lambda one: one.name)
def test_a_maximum_whose_rival_is_near(tmp_path: Path, judge: Any) -> None:
    images = np.random.default_rng(1).uniform(0.1, 0.5, (6, 1, 8, 8)).astype(np.float32)
    images[0, 0, 1, 1], images[0, 0, 2, 2] = 0.75, np.nextafter(np.float32(0.75), np.float32(0))
    stage = of_pixels(tmp_path, images, judge)
    close = [one for one in turns(stage) if not one.is_tie and one.words.startswith("pool")]
    assert len(close) == 4  # one of each channel
    gradient, plain = turned(stage, close[0]), stage.answer().gradient
    assert norm(gradient["conv1.weight"] - plain["conv1.weight"]) > 1e-4 * norm(plain["conv1.weight"])
    parity = stage.judged(gradient)
    assert (parity.status, parity.turned) == ("passed", [close[0].words]), parity.reason


def flat(tmp_path: Path, judge: Any = SMALL) -> Stage:
    """Of images with few values: windows with equal maxima, whose surroundings differ."""
    levels = np.random.default_rng(1).integers(1, 4, (6, 1, 8, 8)) / 4
    return of_pixels(tmp_path, levels, judge)


def last(stage: Stage) -> Tensors:
    return turned(stage, next(one for one in turns(stage) if one.is_tie and one.words.startswith("pool")))


def every(stage: Stage) -> Tensors:
    other = stage.judge.sized(stage.network.batch_size, "all")
    return dict(other.gradient(stage.values, stage.batch, stage.shown).gradient)


@pytest.mark.parametrize("convention", [last, every], ids=["last", "every"])
@pytest.mark.parametrize("judge", [SMALL, LARGE], ids=lambda one: one.name)
def test_conventions_of_equal_maxima(
    tmp_path: Path, convention: Callable[[Stage], Tensors], judge: Any
) -> None:
    stage = flat(tmp_path, judge)
    gradient = convention(stage)
    plain = stage.answer().gradient
    assert norm(gradient["conv1.weight"] - plain["conv1.weight"]) > 1e-2 * norm(plain["conv1.weight"])
    parity = stage.judged(gradient)
    assert (parity.status, parity.notes) == ("passed", ["ties"]), parity.reason


@pytest.mark.parametrize("convention", [last, every], ids=["last", "every"])
@pytest.mark.parametrize("share", [0.5, 0.9, 2.0, -1.0])
def test_part_of_a_convention_is_none(
    tmp_path: Path, convention: Callable[[Stage], Tensors], share: float
) -> None:
    stage = flat(tmp_path)
    gradient, plain = convention(stage), stage.answer().gradient
    off = {name: plain[name] + share * (gradient[name] - plain[name]) for name in plain}
    assert stage.judged(off).status == "failed"


def test_a_convention_for_one_tensor_only_is_none(tmp_path: Path) -> None:
    stage = flat(tmp_path)
    gradient, plain = every(stage), stage.answer().gradient
    off = {**plain, "conv1.weight": gradient["conv1.weight"]}
    assert stage.judged(off).status == "failed"


def dead(tmp_path: Path) -> Stage:
    """Rectifiers of two layers that read nothing but 0 in places."""
    stage = Stage(tmp_path, PLAIN)
    for name in ("conv1", "fc1"):
        stage.parameters[f"{name}.weight"][:2] = 0
        stage.parameters[f"{name}.bias"][:2] = 0
    stage.shown = stage.honest()
    return stage


@pytest.mark.parametrize("slope", ["half", "one"])
def test_the_slope_of_a_rectifier_at_zero_is_a_convention(tmp_path: Path, slope: Any) -> None:
    """The same in every layer."""
    stage = dead(tmp_path)
    other = stage.judge.sized(stage.network.batch_size, f"first-{slope}")  # type: ignore[arg-type]
    gradient = other.gradient(stage.values, stage.batch, stage.shown).gradient
    parity = stage.judged(dict(gradient))
    assert (parity.status, parity.notes) == ("passed", ["ties"]), parity.reason
    plain = stage.answer().gradient
    most = {name: plain[name] + 0.7 * (gradient[name] - plain[name]) for name in plain}
    assert stage.judged(most).status == "failed"


def test_what_agrees_asks_for_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(*_: Any) -> None:
        raise AssertionError("the search was asked")

    monkeypatch.setattr("timetrial.proof.court.Search", nobody)
    assert stage.judged(dict(stage.answer().gradient)).status == "passed"


@pytest.mark.parametrize("judge", [SMALL, LARGE], ids=lambda one: one.name)
@pytest.mark.parametrize("nodes", [PLAIN, NORMALIZED], ids=["plain", "normalized"])
def test_the_search_ends(tmp_path: Path, nodes: Any, judge: Any) -> None:
    """Also where it begins once more, with what last places make."""
    stage = Stage(tmp_path, nodes, judge)
    near_edge(stage, *(("fc1", "fc1.bias") if nodes is PLAIN else ("sum", "conv2.bias")))
    asked = 0
    ask = stage.judge.gradient

    def counted(*words: Any) -> Any:
        nonlocal asked
        asked += 1
        return ask(*words)

    stage.judge.gradient = counted  # type: ignore[method-assign]
    gradient = {name: values * 1.01 for name, values in stage.answer().gradient.items()}
    assert stage.judged(gradient).status == "failed"
    assert asked < 64


def test_what_last_places_make_turns_no_decision(tmp_path: Path) -> None:
    """Equal maxima, and rectifiers that read 6 or 0: what goes into normalizations alone is moved."""
    nodes = [dict(node) for node in NORMALIZED]
    nodes.insert(
        3, {"name": "pool", "kind": "max_pool2d", "attributes": {"kernel": 2, "stride": 1, "padding": 1}}
    )
    nodes[5]["inputs"] = ["conv2", "pool"]
    stage = Stage(tmp_path, nodes, spread=3.0)
    shown = stage.shown["relu1"].copy()
    shown[:, :, ::2] = shown[:, :, 1::2]  # each value twice in a window
    stage.shown = stage.honest({"relu1": shown})
    known = doubts_of(stage)
    plain = stage.answer().gradient
    for name in plain.keys() - {"conv1.bias"}:
        assert known["gradient", name] < 1e-3 * norm(plain[name]), name


def doubts_of(stage: Stage) -> Any:
    answer = stage.answer()
    look = Look(stage.parameters, layer_state=stage.states)
    seen = Observation("", "proof", 0, look, loss=answer.loss, shown=stage.shown)
    return Court(stage.judge, stage.expected, F32)._of_shifts(seen, stage.batch, answer)
