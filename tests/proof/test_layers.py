"""Each layer of a contender is held against what the judge makes of what was shown in front of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stages import NORMALIZED, PLAIN, Stage

from timetrial.agreement.sizes import norm
from timetrial.proof.judge import LARGE, SMALL

JUDGES = pytest.mark.parametrize("judge", [SMALL, LARGE], ids=lambda one: one.name)


def right(stage: Stage, shown: dict[str, Any] | None = None) -> dict[str, Any]:
    """The gradients at what is shown."""
    return dict(stage.answer(shown).gradient)


@JUDGES
@pytest.mark.parametrize("nodes", [PLAIN, NORMALIZED], ids=["plain", "normalized"])
def test_an_honest_contender_passes(tmp_path: Path, judge: Any, nodes: list[dict[str, Any]]) -> None:
    stage = Stage(tmp_path, nodes, judge)
    parity = stage.judged(right(stage))
    assert (parity.status, parity.turned) == ("passed", []), parity.reason
    assert parity.comparisons[0].tensor.startswith("activation ")


@JUDGES
@pytest.mark.parametrize("nodes", [PLAIN, NORMALIZED], ids=["plain", "normalized"])
@pytest.mark.parametrize("share", [1e-4, 0.01])
def test_a_layer_that_is_off_is_named_whatever_comes_behind(
    tmp_path: Path, judge: Any, nodes: list[dict[str, Any]], share: float
) -> None:
    """Right from there on, and with the gradients of all that."""
    stage = Stage(tmp_path, nodes, judge)
    for layer in stage.expected.layers:
        name = layer["name"]
        shown = stage.honest({name: stage.shown[name] * np.float32(1 + share)})
        parity = stage.judged(right(stage, shown), shown)
        assert (parity.status, parity.tensor) == ("failed", f"activation {name}"), parity.reason


@pytest.mark.parametrize("name", ["relu1", "pool", "flat", "relu2"])
def test_what_only_chooses_is_exact_to_the_last_bit(tmp_path: Path, name: str) -> None:
    stage = Stage(tmp_path, PLAIN)
    other = stage.shown[name].copy()
    place = int(np.argmax(other))
    other.flat[place] = np.nextafter(other.flat[place], np.float32(9))
    shown = stage.honest({name: other})
    parity = stage.judged(right(stage, shown), shown)
    assert parity.tensor == f"activation {name}"
    assert next(one for one in parity.comparisons if not one.passed).tolerance == 0


def test_a_sum_of_two_is_rounded_once(tmp_path: Path) -> None:
    stage = Stage(tmp_path, NORMALIZED)
    two = stage.shown["conv2"] + stage.shown["relu1"]
    assert np.array_equal(two, stage.shown["sum"])
    other = stage.honest({"sum": np.nextafter(two, np.float32(9))})
    assert stage.judged(right(stage, other), other).tensor == "activation sum"


def test_what_is_flushed_to_zero_is_no_other_bit(tmp_path: Path) -> None:
    """Subnormal numbers behind a rectifier, of whoever has none."""
    stage = Stage(tmp_path, PLAIN)
    before = stage.shown["fc1"].copy()
    before.flat[0] = np.float32(1e-40)
    # The layer that makes it is off by what it was: it is judged by its norm.
    shown = {**stage.shown, "fc1": before}
    behind = np.maximum(before, 0)
    behind.flat[0] = 0
    found = stage.judge.gradient(stage.values, stage.batch, {**shown, "relu2": behind})
    assert abs(float(found.activation["relu2"].flat[0]) - 1e-40) < 1e-45
    shown = stage.honest({"fc1": before, "relu2": behind})
    names = [one.tensor for one in stage.judged(right(stage, shown), shown).comparisons if not one.passed]
    assert "activation relu2" not in names


@JUDGES
def test_a_rectifier_decides_as_it_is_shown_though_nobody_shows_what_goes_in(
    tmp_path: Path, judge: Any
) -> None:
    """What another layer writes over is hidden: both are judged together."""
    stage = Stage(tmp_path, PLAIN, judge)
    hidden = {name: values for name, values in stage.shown.items() if name not in ("conv1", "fc1")}
    assert stage.judged(right(stage, hidden), hidden).status == "passed"
    x = stage.answer(hidden).activation["fc1"]
    place = int(np.argmin(np.where(x > 0, x, np.inf)))
    rectified = hidden["relu2"].copy()
    assert rectified.flat[place] > 0
    # As if its sum had been rounded to the other side of 0: within what both may be off by, or not.
    near = stage.parameters["fc1.bias"].copy()
    near[place % len(near)] -= x.flat[place] * (1 - 1e-7)
    stage.parameters["fc1.bias"][:] = near
    hidden = {n: v for n, v in stage.honest().items() if n not in ("conv1", "fc1")}
    rectified = hidden["relu2"].copy()
    rectified.flat[place] = 0 if rectified.flat[place] > 0 else 1e-9
    turned = {**hidden, "relu2": rectified}
    plain, other = right(stage, hidden), right(stage, turned)
    assert norm(other["fc1.weight"] - plain["fc1.weight"]) > 1e-3 * norm(plain["fc1.weight"])
    assert stage.judged(other, turned).status == "passed"


def test_whoever_shows_another_batch_is_caught_by_the_first_layer(tmp_path: Path) -> None:
    stage = Stage(tmp_path, PLAIN)
    images = stage.batch["images"]
    stage.batch["images"] = images[::-1].copy()
    shown = stage.honest()
    stage.batch["images"] = images
    parity = stage.judged(right(stage), shown)
    assert parity.tensor == "activation conv1"


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_named(tmp_path: Path, value: float) -> None:
    stage = Stage(tmp_path, PLAIN)
    other = stage.shown["fc1"].copy()
    other.flat[3] = value
    shown = {**stage.shown, "fc1": other}
    parity = stage.judged(right(stage), shown)
    assert (parity.status, parity.tensor) == ("failed", "activation fc1")


@pytest.mark.parametrize("dtype", ["f2", "i4"])
def test_what_is_shown_is_in_f32(tmp_path: Path, dtype: str) -> None:
    """Whoever keeps what rectifiers give in f16 shows it so, and would be right to the last bit of that."""
    stage = Stage(tmp_path, PLAIN)
    shown = {**stage.shown, "relu2": stage.shown["relu2"].astype(dtype)}
    parity = stage.judged(right(stage, shown), shown)
    assert parity.tensor == "activation relu2"
    assert "expected float32" in (parity.reason or "")
    shown["relu2"] = shown["relu2"].astype("f4")
    assert stage.judged(right(stage, shown), shown).tensor == "activation relu2"


def test_a_contender_in_doubles_shows_doubles(tmp_path: Path) -> None:
    stage = Stage(tmp_path, PLAIN)
    shown = stage.honest()
    for layer in stage.expected.layers:
        shown[layer["name"]] = stage.answer(shown).activation[layer["name"]]
    assert stage.judged(right(stage, shown), shown).status == "passed"


def test_names_that_nobody_knows_are_nobodys(tmp_path: Path) -> None:
    stage = Stage(tmp_path, PLAIN)
    shown = {**stage.shown, "images": stage.batch["images"], "loss": np.zeros(1, np.float32)}
    assert stage.judged(right(stage), at=stage.shown, shown=shown).status == "passed"


def test_a_channel_that_hardly_varies_excuses_no_other(tmp_path: Path) -> None:
    stage = Stage(tmp_path, NORMALIZED)
    stage.parameters["conv1.weight"][0] *= 1e-6
    stage.parameters["conv1.bias"][0] = 3
    stage.shown = stage.honest()
    assert stage.judged(right(stage)).status == "passed"
    other = stage.shown["norm"].copy()
    other[:, 2] *= 1 + 1e-4
    shown = stage.honest({"norm": other})
    parity = stage.judged(right(stage, shown), shown)
    assert (parity.status, parity.tensor) == ("failed", "activation norm")


def test_half_of_the_rows_is_not_the_shape(tmp_path: Path) -> None:
    stage = Stage(tmp_path, PLAIN)
    shown = {**stage.shown, "fc1": stage.shown["fc1"][:3]}
    parity = stage.judged(right(stage), at=stage.shown, shown=shown)
    assert parity.reason == "activation fc1: shape (3, 12), expected (6, 12)"


def test_whoever_shows_what_the_judge_wants_and_takes_other_gradients_is_caught(tmp_path: Path) -> None:
    stage = Stage(tmp_path, NORMALIZED)
    gradient = right(stage)
    for name in gradient.keys() - {"conv1.bias"}:  # of which the normalization leaves nothing
        off = {**gradient, name: gradient[name] * (1 + 1e-3)}
        assert stage.judged(off).status == "failed", name


def test_whoever_shows_nothing_is_judged_by_the_judges_own_decisions(tmp_path: Path) -> None:
    stage = Stage(tmp_path, PLAIN)
    assert stage.judged(right(stage, {}), {}).status == "passed"
    assert stage.judged({n: v * 1.001 for n, v in right(stage, {}).items()}, {}).status == "failed"
