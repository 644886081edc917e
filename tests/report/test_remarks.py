"""What stands below a table names its rows and says what to do."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fakes
import pytest
from fakes import FakeEngine

import timetrial
from timetrial.cautions import Caution, Remark, advice_for, advised, caution_of, together
from timetrial.experiment.experiment import load_words
from timetrial.experiment.machine import gpus
from timetrial.experiment.runner import run_experiment
from timetrial.report.remarks import remark_lines, remarks_of, rows_words, sides_words
from timetrial.report.rendering import to_text
from timetrial.report.table import warnings
from timetrial.results.results import Results
from timetrial.runtime.loaded import cuda_of

AXES = ("backend", "threads")


def word(row: Any, axis: str) -> str:
    return str(row.case.axes[axis])


def rows(*names: str, lacking: tuple[str, ...] = ()) -> list[Any]:
    """'eigen 1': backend and threads."""
    return [
        SimpleNamespace(
            case=SimpleNamespace(id=name, axes=dict(zip(AXES, name.split(), strict=True))),
            launches=[] if name in lacking else ["a launch"],
            warnings=Counter(),
            outcome="ok",
            step_time_ns=None,
        )
        for name in names
    ]


SIX = ("eigen 1", "eigen 2", "onednn 1", "onednn 2", "pytorch 1", "pytorch 2")


@pytest.mark.parametrize(
    ("concerned", "words"),
    [
        (("eigen 2",), "eigen 2"),
        (("eigen 2", "onednn 1"), "eigen 2 and onednn 1"),
        (SIX, "every row"),
        (SIX[1:], "every row but eigen 1"),
        (("eigen 2", "onednn 2", "pytorch 2"), "every row with threads 2"),
        (("eigen 1", "eigen 2", "onednn 1"), "eigen 1, eigen 2 and onednn 1"),
        (("eigen 2", "onednn 2", "pytorch 2", "pytorch 1"), "every row but eigen 1 and onednn 1"),
    ],
)
def test_rows_are_named_in_few_words(concerned: tuple[str, ...], words: str) -> None:
    assert rows_words(rows(*SIX), set(concerned), AXES, word) == words


def test_many_rows_are_named_by_what_they_share() -> None:
    names = [f"{backend} {threads}" for backend in ("eigen", "onednn", "pytorch") for threads in range(1, 9)]
    concerned = {name for name in names if name.startswith("onednn") or name == "eigen 3"}
    assert rows_words(rows(*names), concerned, AXES, word) == "every row of onednn and eigen 3"


def test_what_was_never_launched_is_no_row_that_something_was_seen_in() -> None:
    found = rows_words(rows(*SIX, lacking=("jax 1", "eigen 1")), set(SIX[1:]), AXES, word)
    assert found == "every row that was launched"


def test_sides_of_a_race() -> None:
    assert sides_words(["a"], ["a", "b"]) == "a"
    assert sides_words(["a", "b"], ["a", "b"]) == "both sides"
    assert sides_words(["a", "b"], ["a", "b", "c"]) == "a and b"
    assert sides_words(["a", "b", "c"], ["a", "b", "c"]) == "all sides"


def test_a_remark_on_some_cases_names_them_and_is_silent_of_others() -> None:
    several = [Remark("no steady state, says nobody", ("eigen 1",)), Remark("of all")]
    assert remarks_of(rows("eigen 1", "eigen 2"), several, AXES, word) == [
        "eigen 1: no steady state, says nobody",
        "of all",
    ]
    assert remarks_of(rows("eigen 2"), several, AXES, word) == ["of all"]


def test_numbers_that_differ_from_row_to_row_are_said_as_a_range() -> None:
    two, many = rows("eigen 1", "eigen 2"), rows(*SIX)
    for number, row in enumerate(two):
        row.warnings[Caution.TWO_GROUPS.words(apart=3 + 9 * number)] = 1
    (said,) = remarks_of(two, [], AXES, word)
    assert said.startswith("every row: its launches form two groups, 3 to 12 % apart")
    for row in many:
        row.warnings[Caution.SUBNORMAL.words(tensors=f"fc{row.case.id}")] = 1
    (said,) = remarks_of(many, [], AXES, word)
    assert "in fceigen 1 / fceigen 2 / fconednn 1 and 3 more: arithmetic" in said


def test_settings_of_different_names_are_not_thrown_together() -> None:
    two = rows("eigen 1", "eigen 2")
    two[0].warnings[Caution.ADJUSTED.words(name="threads", asked="2", effective="1")] = 1
    two[1].warnings[Caution.ADJUSTED.words(name="cache", asked="warm", effective="cold")] = 1
    first, second = remarks_of(two, [], AXES, word)
    assert first.startswith("eigen 1: threads asked 2, effective 1: adjusted. Read the row as")
    assert second.startswith("eigen 2: cache asked warm, effective cold: adjusted")


def test_words_of_other_versions_are_shown_as_they_are() -> None:
    assert caution_of("the moon was full") is None
    assert advised("the moon was full") == "the moon was full"
    assert together(["the moon was full"]) == "the moon was full"
    one = rows("eigen 1")
    one[0].warnings["the moon was full"] = 3
    assert remarks_of(one, [], AXES, word) == ["eigen 1: the moon was full (3 launches)"]


def test_texts_that_no_version_of_ours_wrote_cost_nothing() -> None:
    text = "x asked y, effective " * 100_000
    assert caution_of(text) is None
    assert advised(text) == text


FILLED = {name: f"<{name}>" for caution in Caution for name in re.findall(r"\{(\w+)\}", caution.seen)}


@pytest.mark.parametrize("caution", Caution)
def test_the_list_is_closed(caution: Caution) -> None:
    """Each says what to do, in one sentence; none is taken for another; each is used."""
    if "{cure}" in caution.seen:
        assert not caution.advice
    else:
        assert caution.advice[0].isupper() or caution.advice.startswith("timetrial ")
        assert caution.advice.endswith(".")
        assert ". " not in caution.advice, "one sentence"
    text = caution.words(**FILLED)
    assert caution_of(text) is caution
    assert caution.fields_of(text) == {name: FILLED[name] for name in re.findall(r"\{(\w+)\}", caution.seen)}
    sources = Path(timetrial.__file__).parent.rglob("*.py")
    assert any(re.search(rf"Caution\.{caution.name}\b", one.read_text("utf-8")) for one in sources)


@pytest.fixture
def measure(fake: FakeEngine, results_folder: Path) -> Callable[..., Results]:
    def measure(*words: str) -> Results:
        asked = load_words(["network=mlp", *words], load_network=fakes.network)
        return run_experiment(asked, results_folder, quiet=True, engine=fake.engine())

    return measure


def test_launches_of_rows_are_counted_and_each_row_is_named(
    measure: Callable[..., Results], fake: FakeEngine
) -> None:
    results = measure("backend=fast,slow,other", "launches=6", "threads=1,2")
    counts = {"fast 1": 3, "slow 1": 1, "other 2": 2}
    for row in results.rows:
        row.warnings.clear()
        name = f"{row.case.backend} {row.case.axes['threads']}"
        if name in counts:
            row.warnings[Caution.TURNS_UNSTEADY.words()] = counts[name]
    (said,) = warnings(results)
    assert said.startswith(
        "fast 1, slow 1 and other 2: took its turns before its steps were steady (6 launches). Ratios allow"
    )
    assert said.endswith(advice_for(Caution.TURNS_UNSTEADY.words()))


def test_disturbed_rows_are_named(measure: Callable[..., Results], fake: FakeEngine) -> None:
    def disturb(plan: Any) -> None:
        is_slow = plan.case.backend == "slow"
        fake.witnesses = {"steal_ratio": 0.09} if is_slow and plan.purpose == "speed" else {}

    fake.before = disturb
    text = " ".join(to_text(measure("backend=fast,slow", "launches=2", "threads=1")).split())
    assert "! slow 1: 2 of 4 timed launches disturbed (the hypervisor took up to 9 %): kept, marked." in text
    assert advice_for(Caution.DISTURBED.words(disturbed=2, timed=4, how="x")) in text


@pytest.mark.parametrize("width", [40, 80, 120])
def test_remarks_keep_to_the_width(width: int, measure: Callable[..., Results]) -> None:
    results = measure("backend=fast,chancy", "launches=2", "threads=1")
    lines = to_text(results, width=width).splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("! "))
    said = [line for line in lines[first:] if not line.startswith("  records:")]
    assert any(line.startswith("! chancy 1: not deterministic") for line in said)
    assert all(
        len(line.rstrip()) <= width for line in said if line.startswith(("! ", "  ")) and "/" not in line
    )


def test_lines_of_a_remark_stand_under_it() -> None:
    plain = [line.plain for line in remark_lines(["one two three four", "five"], 22)]
    assert plain == ["! one two three four", "! five"]
    assert [line.plain for line in remark_lines(["one two three four five"], 20)] == [
        "! one two three four", "  five",
    ]  # fmt: skip


@pytest.mark.parametrize(("number", "is_said"), [(0, True), (1, False), (None, False)])
@pytest.mark.parametrize("cuda", ["12.8", None])
def test_a_cuda_build_without_a_gpu_is_named_below_its_memory(
    number: int | None, is_said: bool, cuda: str | None, fake: FakeEngine, results_folder: Path
) -> None:
    machine = fake.engine().machine() | ({} if number is None else {"gpus": number})
    engine = dataclasses.replace(fake.engine(), machine=lambda: machine)
    asked = load_words(["network=mlp", "backend=fast,slow", "launches=2"], load_network=fakes.network)
    results = run_experiment(asked, results_folder, quiet=True, engine=engine)
    for launch in results.launches:
        file = launch.folder / "record.json"
        record = json.loads(file.read_text("utf-8"))
        if cuda and record["case"] == results.rows[1].case.id:
            record["facts"]["torch.cuda"] = cuda
            file.write_text(json.dumps(record), encoding="utf-8")
    found = [one for one in warnings(Results(results.path)) if "CUDA" in one]
    assert found == (
        [
            "slow -: its torch (CUDA 12.8) is a CUDA build, and this machine has no GPU: libraries for GPUs "
            "count in its memory. Install its CPU build (a version that ends with +cpu) before comparing "
            "memory."
        ]
        if is_said and cuda
        else []
    )


def test_gpus_are_counted_by_their_devices(tmp_path: Path) -> None:
    assert gpus(tmp_path) == 0
    (tmp_path / "nvidiactl").touch()
    assert gpus(tmp_path) == 0, "the driver alone is no GPU"
    (tmp_path / "dxg").touch()
    assert gpus(tmp_path) == 1
    (tmp_path / "nvidia0").touch()
    (tmp_path / "nvidia1").touch()
    assert gpus(tmp_path) == 2


def test_a_torch_says_for_which_cuda_it_was_built() -> None:
    def built(cuda: str | None) -> dict[str, Any]:
        return {"torch": SimpleNamespace(version=SimpleNamespace(cuda=cuda))}

    assert cuda_of(built("12.8")) == {"torch.cuda": "12.8"}
    assert cuda_of(built(None)) == cuda_of({}) == cuda_of({"torch": None}) == {}


def test_where_names_would_fill_lines_their_number_stands() -> None:
    names = [f"backend{number} {threads}" for number in range(30) for threads in (1, 2)]
    every_third = set(names[::3])
    found = rows_words(rows(*names), every_third, AXES, word)
    assert found == "20 of 60 rows, backend0 1 and backend1 2 among them"
    assert rows_words(rows(*names), set(names[:-1]), AXES, word) == "every row but backend29 2"
