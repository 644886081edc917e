"""Ways through sequences of unequal lengths, as a setting: proven, counted, and refused in words."""

from __future__ import annotations

import importlib.util
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from launching import make_plan, words
from sequence_networks import TABLE, directed, gated, texts

import timetrial as tt
from timetrial.errors import InputError
from timetrial.experiment.engine import real_engine
from timetrial.experiment.experiment import load_words
from timetrial.experiment.validate import validate
from timetrial.launch.run import run_launch
from timetrial.lengths.timed import time_steps_record
from timetrial.lengths.ways import rounded, steps_by
from timetrial.records.model import LaunchRecord, Passes, Segment
from timetrial.workloads.orders import Durations

RUNTIME = Path(tt.__file__).parent / "runtime"
PLANTED = Path(__file__).parents[1] / "frameworks" / "planted" / "adapter.py"
WAYS = ("padded", "trimmed", "packed")
TORCH = ("pytorch", "libtorch")


def launched(folder: Path, backend: str, way: str, text: str = "", **how: Any) -> LaunchRecord:
    """Sequences of at most 20 words, of an axis of their own: many are shorter."""
    own = folder / "own.toml"
    own.write_text(text or texts(), encoding="utf-8")
    settings = {"threads": "1", "lengths": way, **how.pop("settings", {})}
    data = {"network": str(own), "dataset": "synthetic-sentences@20", "batch_size": 6}
    return run_launch(make_plan(folder / "launch", backend, settings=settings, **data, **how))


def computed(record: LaunchRecord, way: str) -> None:
    """That the record says what that way computes, and that it is in force."""
    steps = record.time_steps
    assert steps is not None
    assert steps.computed is not None
    reading = next(one for one in record.settings if one.name == "lengths")
    assert (reading.asked, reading.effective, reading.status) == (way, way, "applied")
    if way == "padded":
        assert steps.computed == steps.padded
    elif way == "packed":
        assert steps.computed == pytest.approx(steps.useful)
    else:
        assert steps.useful < steps.computed < steps.padded


@pytest.mark.effect("lengths")
@pytest.mark.parametrize(
    ("backend", "way"),
    [
        *[("eigen", way) for way in WAYS],
        ("onednn", "rounded"),
        pytest.param("onednn", "padded", marks=pytest.mark.full),
        *[pytest.param(one, way, marks=pytest.mark.full) for one in ("cblas", *TORCH) for way in WAYS],
    ],
)
@pytest.mark.parametrize("text", [texts(), pytest.param(directed(texts()), marks=pytest.mark.full)])
def test_a_way_is_proven_and_counted(tmp_path: Path, backend: str, way: str, text: str) -> None:
    if backend in TORCH:
        pytest.importorskip("torch", reason="machine: the running interpreter has no torch")
    record = launched(tmp_path, backend, way, text, purpose="speed")
    assert record.outcome == "ok", words(record)
    assert record.end is not None
    assert record.end.status == "passed"
    computed(record, way)
    words_of = {
        "padded": "all 20 steps of every sample",
        "rounded": "as many steps as the longest of its batch has, rounded up to eighths of 20",
        "trimmed": "as many steps as the longest of its batch has",
        "packed": "the steps that count",
    }
    assert record.facts["one forward"].endswith(words_of[way])


@pytest.mark.parametrize("way", ["trimmed", "packed"])
@pytest.mark.parametrize("text", [texts(2), gated(False), directed(texts())])
def test_a_proof_of_a_way(tmp_path: Path, way: str, text: str) -> None:
    record = launched(tmp_path, "eigen", way, text, purpose="proof")
    assert record.outcome == "ok", words(record)
    assert record.parity is not None
    assert record.parity.status == "passed", record.parity


@pytest.mark.parametrize("backend", TORCH)
@pytest.mark.parametrize(
    "text", [texts(2), *[pytest.param(one, marks=pytest.mark.full) for one in (gated(), directed(texts()))]]
)
def test_torch_packs_and_says_which_path_that_is(tmp_path: Path, backend: str, text: str) -> None:
    pytest.importorskip("torch", reason="machine: the running interpreter has no torch")
    record = launched(tmp_path, backend, "packed", text, purpose="proof")
    assert record.outcome == "ok", words(record)
    assert record.parity is not None
    assert record.parity.status == "passed", record.parity
    for layer in ("one", "two"):
        assert record.facts[f"{layer} forward"] == "native loop over packed steps, the steps that count"
        faster = record.facts.get(f"{layer} faster", "none")
        assert faster.startswith("lengths=trimmed" if '"lstm"' in text else "none")


def test_a_compiled_function_has_one_way(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="machine: the running interpreter has no torch")
    record = launched(tmp_path, "pytorch", "packed", settings={"mode": "compiled"})
    assert record.outcome == "unavailable", words(record)
    assert "the backend has no lengths 'packed'; it has: padded" in (record.reason or "")


# The judge of it says no ------------------------------------------------------------------------------


def planted(folder: Path) -> str:
    """The NumPy framework of the tests over sequences, with the setting."""
    place = folder / "planted"
    place.mkdir()
    (place / "adapter.py").write_text(
        textwrap.dedent(
            f"""\
            import importlib.util
            spec = importlib.util.spec_from_file_location("planted_base", {str(PLANTED)!r})
            base = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(base)

            class Adapter(base.Adapter):
                several_inputs = True
                sequences = True
            """
        )
    )
    tables = (
        '[versions.settings."planted.defect"]\n[versions.settings.lengths]\nvalues = ["padded", "trimmed"]\n'
    )
    (place / "environment.toml").write_text(
        f'title = "Planted"\n[[versions]]\nversion = "1"\nmodules = {{ numpy = "numpy" }}\n'
        f'serves = ">=1.0"\n[versions.settings.threads]\naffinity = true\n{tables}'
    )
    return str(place)


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("defect", "way", "outcome", "said"),
    [
        ("none", "trimmed", "ok", ""),
        ("none", "padded", "ok", ""),
        ("cut_too_early", "trimmed", "wrong", "activation "),
        ("padded_end", "trimmed", "wrong", "activation two"),
        ("padded_as_trimmed", "trimmed", "mismatch", "lengths in force trimmed, which computes "),
        (
            "miscounted",
            "padded",
            "mismatch",
            "computes 120 steps of the sequences of a batch; its layers computed 121",
        ),
    ],
)
def test_what_is_planted_is_caught(tmp_path: Path, defect: str, way: str, outcome: str, said: str) -> None:
    settings = {"planted.defect": defect}
    record = launched(tmp_path, planted(tmp_path), way, settings=settings, purpose="proof")
    assert record.outcome == outcome, words(record)
    assert said in (record.reason or "")


# What is asked ----------------------------------------------------------------------------------------


def problem(*asked: str) -> str:
    """What is said before anything starts."""
    try:
        found = validate(load_words(list(asked)).cases, real_engine())
    except InputError as error:
        return str(error)
    return "; ".join(one.unavailable or "can be" for one in found)


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("network=lstm-vowels lengths=packed", "can be"),
        ("network=lstm-vowels lengths=cut", "lengths='cut': expected padded or rounded"),
        ("network=lstm-vowels lengths=rounded", "it has padded, trimmed, packed"),
        ("network=lstm-vowels lengths=rounded,packed", "it has padded, trimmed, packed; can be"),
        ("network=lstm-lm lengths=packed", "lengths=packed: the network 'lstm-lm' reads no lengths"),
        ("network=mlp,lstm-vowels lengths=packed", "the network 'mlp' reads no lengths"),
        ("network=lstm-vowels lengths=packed backend=reference", "has no setting 'lengths'"),
    ],
)
def test_ways_that_cannot_be(asked: str, said: str) -> None:
    words = asked.split()
    assert said in problem(*words, *([] if "backend" in asked else ["backend=eigen"]))


def test_a_network_that_looks_up_and_averages_has_one_way(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(TABLE)
    asked = [f"network={own}", "backend=eigen"]
    assert problem(*asked) == "can be"
    assert "has no layer that goes on from its own last state" in problem(*asked, "lengths=packed")


def test_a_framework_names_those_it_has(tmp_path: Path) -> None:
    asked = ["network=lstm-vowels", f"backend={planted(tmp_path)}"]
    assert "has padded, trimmed" in problem(*asked, "lengths=packed")
    assert problem(*asked, "lengths=trimmed") == "can be"


def test_who_counts_others_while_timed_has_them_in_the_record(tmp_path: Path) -> None:
    """Behind the timed part it would be a mismatch; of one that ended before, the record tells."""
    found = []
    for counted in (None, 960, 1000, 1200, 480):
        order = tmp_path / "order.npy"
        np.save(order, np.arange(8).reshape(2, 4))
        durations = Durations(np.array([3, 1, 10, 5, 3, 1, 10, 5]), order, 12)
        segment = Segment(
            kind="steady", steps=20, first_stamp=0, stamps=20, first_loss=0, losses=20, sequence_steps=counted
        )
        steps = time_steps_record(durations, Passes(steps=2), [segment], "padded")
        assert steps is not None
        assert (steps.useful, steps.padded) == (19, 48)
        found.append(steps.computed)
    assert found == [48, 48, 48, 60, 24]


# How many steps that are ------------------------------------------------------------------------------


def runtime_adapter() -> ModuleType:
    """What adapters import: the other side has the same rule of its own."""
    spec = importlib.util.spec_from_file_location("of_the_runtime", RUNTIME / "timetrial_adapter.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_rounded_is_one_of_eight_with_room_for_the_longest() -> None:
    other = runtime_adapter()
    for steps in (1, 2, 7, 8, 20, 29, 400):
        found = [rounded(longest, steps) for longest in range(1, steps + 1)]
        assert found == [other.rounded_steps(longest, steps) for longest in range(1, steps + 1)]
        # Who has something for each of these takes the first with room.
        assert found == [min(one for one in found if one >= longest) for longest in range(1, steps + 1)]
        assert all(least <= one <= steps for least, one in enumerate(found, start=1))
        assert found == sorted(found)
        assert len(set(found)) <= 8
        assert found[-1] == steps


def test_how_many_steps_each_computes() -> None:
    lengths = np.array([3, 1, 10, 5])
    by = {way: steps_by(way) for way in ("padded", "rounded", "trimmed", "packed")}
    assert {way: count(lengths, 16) for way, count in by.items() if count} == {
        "padded": 64, "rounded": 40, "trimmed": 40, "packed": 19,
    }  # fmt: skip
    assert steps_by("sorted") is None
    assert steps_by(None) is None
