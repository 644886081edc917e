"""Curves of an experiment as figure, table and trace; from launches whose looks were written by hand."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fakes
import pytest
from fakes import FakeEngine
from matplotlib.lines import Line2D

from timetrial.errors import InputError
from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import run_experiment
from timetrial.figures.plots_style import QUESTIONS
from timetrial.results.results import Results

MB = 1 << 20
SECOND = 1_000_000_000
THREADS = "time_ns\tpid\ttid\tcpu_ns\twait_ns\tslices\tname\n0\t1\t1\t0\t0\t1\tmain\n"


@pytest.fixture
def run(fake: FakeEngine, results_folder: Path) -> Callable[..., Results]:
    def measured(*words: str) -> Results:
        experiment = load_words(
            ["network=mlp", "backend=fast,slow", "threads=1", "launches=1", *words],
            load_network=fakes.network,
        )
        return run_experiment(experiment, results_folder, quiet=True, engine=fake.engine())

    return measured


def look_at(results: Results, cores: int = 2) -> None:
    """Three looks in two seconds: it takes 30 MB, gives 10 back, and burns so many processors."""
    for one in results.launches:
        if one.record.purpose == "resources":
            looks = [
                {
                    "time_ns": number * SECOND,
                    "cpu_ns": cores * number * SECOND,
                    "anonymous_bytes": held * MB,
                    "file_bytes": 5 * MB,
                    "peak_bytes": 40 * MB,
                }
                for number, held in enumerate((0, 30, 20))
            ]
            fakes.write_looks(one.folder, looks)
            last = f"{SECOND}\t1\t1\t{SECOND // 2}\t0\t2\t\n"
            (one.folder / "thread_samples.tsv").write_text(THREADS + last)


def test_the_figure_shows_what_was_seen(run: Callable[..., Results]) -> None:
    results = run("resource_launches=2")
    look_at(results)
    figure = results.plot.resources()
    assert figure.get_suptitle().startswith(f"{QUESTIONS['resources']}\n")
    memory, _, cores, _ = figure.axes
    lines = {line.get_label(): line for line in memory.lines}
    assert max(lines["private"].get_ydata()) == pytest.approx(30, rel=0.01)
    assert max(lines["with shared and mapped files"].get_ydata()) == pytest.approx(35, rel=0.01)
    assert max(lines["kernel's high-water mark"].get_ydata()) == pytest.approx(40)
    assert cores.get_ylabel() == "processors used"
    assert max(cores.lines[0].get_ydata()) == pytest.approx(2)
    assert memory.get_title().startswith("fast\n2 launches, 1 looks/s")


def test_the_legend_has_the_color_of_each_case(run: Callable[..., Results]) -> None:
    results = run("resource_launches=1")
    look_at(results)
    figure = results.plot.resources()
    drawn = [str(panel.lines[0].get_color()) for panel in figure.axes[:2]]
    [legend] = figure.legends
    colors = [str(line.get_color()) for line in legend.findobj(Line2D)]
    assert len(set(drawn)) == 2
    assert set(drawn) <= set(colors)
    assert legend.get_texts()[0].get_text() == "private"
    assert len(colors) == 2 + len(legend.get_texts()) - 1, "the others look alike in all cases"


def test_a_part_of_the_results_is_drawn_alone(run: Callable[..., Results]) -> None:
    results = run("resource_launches=1")
    look_at(results)
    assert len(results.sel(backend="slow").plot.resources().axes) == 2


def test_without_looks_there_is_nothing_to_draw(run: Callable[..., Results]) -> None:
    results = run()
    with pytest.raises(InputError, match="resource_launches=3 makes launches for that"):
        results.plot.resources()
    assert len(results.to_pandas("samples")) == 0
    events = json.loads(str(results.export("perfetto")))["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X"}, "phases, and no counters"


def test_a_trace_has_phases_and_counters(run: Callable[..., Results], tmp_path: Path) -> None:
    results = run("resource_launches=1")
    look_at(results)
    file = results.export("perfetto", tmp_path / "trace.json")
    events: list[dict[str, Any]] = json.loads(Path(file).read_text())["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X", "C"}
    named = [one["args"]["name"] for one in events if one["name"] == "process_name"]
    assert len(named) == len(results.launches)
    (process,) = [number for number, name in enumerate(named, 1) if "fast" in name and "resources" in name]
    memory = [one for one in events if one["name"] == "memory [MB]" and one["pid"] == process]
    assert [one["args"] for one in memory] == [
        {"private": 0.0, "shared and files": 5.0},
        {"private": 30.0, "shared and files": 5.0},
        {"private": 20.0, "shared and files": 5.0},
    ]
    assert memory[2]["ts"] - memory[1]["ts"] == pytest.approx(1e6)
    threads = [one for one in events if one["name"] == "processors of main 1" and one["pid"] == process]
    own = [one["args"]["used"] for one in threads]
    assert own == pytest.approx([0, 0.5])


def test_every_look_is_in_the_exported_table(run: Callable[..., Results], tmp_path: Path) -> None:
    results = run("resource_launches=1")
    look_at(results)
    results.export("csv", tmp_path / "tables")
    with (tmp_path / "tables" / "samples.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["anonymous_bytes"] for row in rows[:3]] == ["0", str(30 * MB), str(20 * MB)]
    assert {row["threads"] for row in rows} == {"1"}, "those that were asked"
    assert {row["purpose"] for row in rows} == {"resources"}
    with (tmp_path / "tables" / "dictionary.csv").open(newline="") as file:
        described = {(row["table"], row["column"]) for row in csv.DictReader(file)}
    assert {("samples", name) for name in rows[0]} <= described
