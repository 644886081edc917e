"""Tables in whatever width there is: nothing is cut off."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import fakes
import pytest
from fakes import FakeEngine
from rich.console import Console

from timetrial.environments import State
from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import run_experiment
from timetrial.report.columns import Grid, Layout, Line, Pairs
from timetrial.report.detail import CaseDetail, ExperimentDetail
from timetrial.report.frameworks import FrameworksReport
from timetrial.report.rendering import to_text
from timetrial.results.results import Results

WIDTHS = [16, 20, 30, 40, 60, 80, 100, 160]
LAYOUT = Layout(("backend", "threads", "step", "vs pytorch", "memory"), 2, frozenset({2, 4}))
LINES = [
    Line([("pytorch", ""), ("1", ""), ("23.4 ms", "bold"), ("reference", "dim"), ("236 MB", "")]),
    Line([("eigen", ""), ("1", ""), ("11.4 ms", "bold"), ("2.05x faster [2.01, 2.10]", ""), ("18 MB", "")]),
    Line(
        [("theano", ""), ("1", ""), ("-", "dim")], ("unavailable: needs Python 3.7 (pyenv install 3.7)", "")
    ),
]


def shown(renderable: object, width: int) -> list[str]:
    console = Console(width=width, color_system=None, file=io.StringIO())
    console.print(renderable)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def laid_out(width: int) -> list[str]:
    return [line.plain for line in LAYOUT.lines(LINES, width)]


def test_side_by_side_where_they_fit() -> None:
    assert laid_out(80) == [
        "backend  threads     step  vs pytorch                 memory",
        "pytorch  1        23.4 ms  reference                  236 MB",
        "eigen    1        11.4 ms  2.05x faster [2.01, 2.10]   18 MB",
        "theano   1              -  unavailable: needs Python 3.7 (pyenv install 3.7)",
    ]


def test_several_tables_each_with_the_keys() -> None:
    assert laid_out(59) == [
        "backend  threads     step  vs pytorch",
        "pytorch  1        23.4 ms  reference",
        "eigen    1        11.4 ms  2.05x faster [2.01, 2.10]",
        "theano   1              -  unavailable: needs Python 3.7",
        "                           (pyenv install 3.7)",
        "backend  threads  memory",
        "pytorch  1        236 MB",
        "eigen    1         18 MB",
    ]


def test_a_list_for_each_row_in_the_narrowest() -> None:
    assert laid_out(30) == [
        "pytorch · threads 1",
        "  step        23.4 ms",
        "  vs pytorch  reference",
        "  memory      236 MB",
        "eigen · threads 1",
        "  step        11.4 ms",
        "  vs pytorch  2.05x faster",
        "              [2.01, 2.10]",
        "  memory      18 MB",
        "theano · threads 1",
        "  unavailable: needs Python",
        "  3.7 (pyenv install 3.7)",
    ]


@pytest.mark.parametrize("width", WIDTHS)
def test_every_cell_is_there_in_every_width(width: int) -> None:
    lines = laid_out(width)
    assert all(len(line) <= width for line in lines)
    said = "".join("".join(lines).split())
    for line in LINES:
        for text, _ in [*line.cells, *([line.reason] if line.reason else [])]:
            assert text == "-" or "".join(text.split()) in said


@pytest.mark.parametrize("width", WIDTHS)
def test_grids_and_pairs_lose_nothing(width: int) -> None:
    long = "omp_get_max_threads(); CPU time over wall time 0.80, working threads 1; tasks 1"
    grid = Grid(["setting", "asked", "how read"], [["onednn.max_cpu_isa", "1", long], ["threads", "2", ""]])
    pairs = Pairs(
        [("in the proof, beside another", long), ("", "/a/path/that/is/long/enough/to/wrap.so\nmore")]
    )
    for one in (grid, pairs):
        lines = shown(one, width)
        assert all(len(line) <= width for line in lines)
        said = "".join("".join(lines).split())
        assert "".join(long.split()) in said
        assert "…" not in said


@pytest.mark.parametrize(("effort", "is_said"), [("quick", True), ("normal", False)])
def test_what_starts_took_beside_others_is_said_to_be_that(
    fake: FakeEngine, results_folder: Path, monkeypatch: pytest.MonkeyPatch, effort: str, is_said: bool
) -> None:
    monkeypatch.setattr("timetrial.experiment.phases.side_by_side_at_most", lambda *_: 2)
    fake.frameworks = ("slow", "fast")
    words = ["network=mlp", "backend=slow,fast,other", "threads=1", "launches=2", f"effort={effort}"]
    experiment = load_words(words, load_network=fakes.network)
    for row in run_experiment(experiment, results_folder, quiet=True, engine=fake.engine()).rows:
        lines = "\n".join(shown(CaseDetail(row), 100))
        assert "before the steps" in lines
        beside = "before the steps, beside another" in " ".join(lines.split())
        assert beside == (is_said and row.case.backend in fake.frameworks)


@pytest.fixture
def results(fake: FakeEngine, results_folder) -> Results:  # type: ignore[no-untyped-def]
    words = ["network=mlp", "backend=slow,fast,wrong,absent", "threads=1", "launches=3", "epochs=2"]
    experiment = load_words(words, load_network=fakes.network)
    return run_experiment(experiment, results_folder, quiet=True, engine=fake.engine())


def renderings(results: Results, width: int) -> Iterator[list[str]]:
    yield to_text(results, width).splitlines()
    yield shown(ExperimentDetail(results), width)
    for row in results.rows:
        yield shown(CaseDetail(row), width)


@pytest.mark.parametrize("width", [20, 40, 60, 80])
def test_what_show_prints_fits_and_is_whole(results: Results, width: int) -> None:
    wide = list(renderings(results, 400))
    for narrow, lines in zip(renderings(results, width), wide, strict=True):
        assert all(len(line) <= width for line in narrow)
        assert "…" not in "".join(narrow)
        said = "".join("".join(narrow).split())
        words = {word for line in lines for word in line.split() if word.strip("─-")}
        missing = {word for word in words if word not in said}
        assert not missing, missing


@pytest.mark.parametrize("width", [20, 40, 80, 160])
def test_frameworks_say_how_they_stand_in_every_width(width: int) -> None:
    detail = "needs a folder with Open MPI's libmpi.so.12 and libmpi_cxx.so.1"
    states = [
        State("cntk@2.7", "CNTK", "lacking", detail, "get it", (), ">=3.6,<3.7", 450, False, "-", False),
        State("jax@0.12", "JAX", "current", "here", "", ("jit", "eager"), ">=3.12", 611, True, "-", False),
    ]
    lines = shown(FrameworksReport(states, "/home/me/environments"), width)
    assert all(len(line) <= width for line in lines)
    said = "".join("".join(lines).split())
    for words in ("CNTK", "2.7", "-lacking", detail, ">=3.6,<3.7", "~450MB", "●current", "jit,eager"):
        assert "".join(words.split()) in said
