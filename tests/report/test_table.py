from __future__ import annotations

from pathlib import Path

import fakes
import pytest
from fakes import FakeEngine
from rich.console import Console

from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import run_experiment
from timetrial.report.detail import CaseDetail, ExperimentDetail
from timetrial.report.numbers import OF_PEAK, duration, memory, plus_minus, ratio_words, seconds
from timetrial.report.rendering import to_html, to_text
from timetrial.results.results import Results
from timetrial.statistics.intervals import Estimate, positive_location


@pytest.fixture
def measure(fake: FakeEngine, results_folder: Path):  # type: ignore[no-untyped-def]
    def measure(*words: str) -> Results:
        words = words if any("network=" in word for word in words) else ("network=mlp", *words)
        experiment = load_words(list(words), load_network=fakes.network)
        return run_experiment(experiment, results_folder, quiet=True, engine=fake.engine())

    return measure


def test_the_table(measure) -> None:  # type: ignore[no-untyped-def]
    results = measure("name=look", "backend=slow,fast,wrong,absent", "threads=1", "launches=6", "epochs=12")
    lines = to_text(results, width=100).splitlines()
    assert lines == [
        "look · mlp · digits28 · batch 64 · 6 launches each · Test CPU, 2 cores · NOT equal: wrong · ",
        "reference: slow (the first contender that is ok)",
        "backend  threads            step  vs slow                    of peak  memory     accuracy",
        "slow     1        207 us  ±1.9 %  reference                     10 %   50 MB  97.2 % ±2.3",
        "fast     1        105 us  ±2.8 %  1.98x faster [1.95, 2.00]     19 %   50 MB  97.2 % ±2.3",
        "wrong    1                     -  wrong: gradient conv1.weight: relative L2 error 0.5, tolerance",
        "                                  2e-05",
        "absent   1                     -  unavailable: absent needs the module absent: pip install absent",
        f"  of peak: {OF_PEAK} · memory: without mapped files and what",
        "is shared",
        *lines[-3:],
    ]
    assert lines[-3].startswith("  records: ")
    assert lines[-2].startswith("  again: timetrial run network=mlp")


def test_what_is_unavailable_everywhere_is_listed_once(measure) -> None:  # type: ignore[no-untyped-def]
    text = to_text(
        measure("backend=fast,absent,slow", "network=mlp,lenet5", "task=train,forward", "launches=2")
    )
    assert text.count("absent needs the module absent") == 1
    lines = text.splitlines()
    assert lines[lines.index("everywhere") + 1].startswith("absent ")
    assert sum(line.startswith("slow ") for line in lines) == 4


def test_cpus_used_are_a_column_on_demand(measure, fake: FakeEngine) -> None:  # type: ignore[no-untyped-def]
    fake.witnesses = {"cpus_used": 1.984}
    results = measure("backend=slow,fast,wrong", "threads=2", "launches=2", "epochs=12")
    assert "CPUs" not in to_text(results, width=200)
    console = Console(width=200)
    with console.capture() as capture:
        console.print(results.table(columns=["cpus"]))
    lines = capture.get().splitlines()
    titles = next(line for line in lines if line.startswith("backend"))
    row = next(line for line in lines if line.startswith("slow"))
    end = titles.index("CPUs") + len("CPUs")
    assert row[:end].endswith(" 1.98")
    assert titles.index("memory") < titles.index("CPUs") < titles.index("accuracy")
    assert results.to_json()["cases"][0]["cpus_used"] == 1.984
    assert results.to_json()["cases"][2]["cpus_used"] is None
    assert list(results.to_pandas("cases")["cpus_used"])[:2] == [1.984, 1.984]


def test_a_library_that_varies_stands_beside_the_kernel_it_chose(measure) -> None:  # type: ignore[no-untyped-def]
    results = measure("backend=fast", "blas.library=one,other", "threads=1", "launches=2")
    lines = to_text(results, width=200).splitlines()
    assert lines[1].split()[:5] == ["backend", "threads", "blas.library", "blas", "kernel"]
    assert lines[2].startswith("fast     1        one           SkylakeX ")
    assert lines[3].startswith("fast     1        other         Haswell ")
    assert "blas kernel" not in to_text(measure("backend=fast", "blas.library=one", "launches=2"), width=150)


def test_different_work_stands_under_headings(measure) -> None:  # type: ignore[no-untyped-def]
    results = measure("backend=slow,fast", "task=train,forward", "threads=1", "launches=2")
    lines = to_text(results, width=200).splitlines()
    assert [line.split()[0] for line in lines[1:8]] == [
        "backend", "train", "slow", "fast", "forward", "slow", "fast",
    ]  # fmt: skip
    assert lines[1].split()[:3] == ["backend", "threads", "step"]


def test_chance_is_noted(measure) -> None:  # type: ignore[no-untyped-def]
    results = measure("backend=fast,chancy", "launches=2", "threads=1")
    assert "! chancy 1: not deterministic: five steps, taken twice" in to_text(results, width=150)
    console = Console(width=150)
    with console.capture() as capture:
        console.print(CaseDetail(results.rows[1]))
    assert "five steps, taken twice from the same weights, gave DIFFERENT numbers" in capture.get()


def test_a_contender_that_says_megabytes_about_itself(measure) -> None:  # type: ignore[no-untyped-def]
    results = measure("backend=fast", "launches=2", "threads=1")
    launch = results.rows[0].launches[-1].record
    for one in results.rows[0].launches:
        one.record.facts.update({f"fact {number}": "x" * 1000 for number in range(5000)})
    console = Console(width=150)
    with console.capture() as capture:
        console.print(CaseDetail(results.rows[0]))
    assert len(capture.get()) < 20_000
    assert "characters; the record has them all)" in capture.get()
    assert len(launch.facts) > 5000


def test_reference_asked_but_not_there(measure) -> None:  # type: ignore[no-untyped-def]
    text = to_text(measure("backend=absent,fast,slow", "launches=2", "reference=absent"), width=200)
    assert "reference: fast (the first contender that is ok)" in text
    assert "! the reference absent is unavailable: absent needs the module absent" in text
    assert "1.98x slower" in text or "2.0" in text


def test_one_launch_carries_no_interval(measure) -> None:  # type: ignore[no-untyped-def]
    text = to_text(measure("backend=fast", "launches=1"), width=200)
    assert "±" not in text
    assert "no way to tell a difference from chance" in text


def test_html_has_the_table_and_no_script(measure) -> None:  # type: ignore[no-untyped-def]
    page = to_html(measure("backend=fast,slow", "launches=2"))
    assert "reference" in page
    assert "<script" not in page
    assert "style=" in page


def test_details_name_what_a_reader_asks_for(measure) -> None:  # type: ignore[no-untyped-def]
    results = measure("backend=fast,crashes", "threads=1", "launches=2")
    console = Console(width=120, record=True, file=open("/dev/null", "w", encoding="utf-8"))  # noqa: SIM115
    console.print(ExperimentDetail(results))
    for row in results:
        console.print(CaseDetail(row))
    console.file.close()
    text = console.export_text()
    for words in (
        "Test CPU",
        "geometric mean, 95 % t interval",
        "passed against reference",
        "threads",
        "blas.kernel: SkylakeX",
        "Traceback",
    ):
        assert words in text


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0.5, "0.50 ns"),
        (45, "45.0 ns"),
        (1234, "1.23 us"),
        (8.93e6, "8.93 ms"),
        (19.6e6, "19.6 ms"),
        (2.5e9, "2.50 s"),
    ],
)
def test_durations(ns: float, text: str) -> None:
    assert duration(ns) == text


def test_other_numbers() -> None:
    assert memory(46 * 2**20) == "46 MB"
    assert memory(1_281_867_776) == "1.19 GB"  # as "1 GB" it would pass for twice the 600 MB beside it
    assert memory(24 * 2**30) == "24 GB"
    assert memory(100) == "100 B"
    assert [seconds(value) for value in (0.2, 45, 150, 7800)] == ["1 s", "45 s", "2 min", "2 h 10 min"]
    single = positive_location([1.0])
    assert single is not None
    assert plus_minus(single) == ""


def test_an_interval_that_says_nothing_is_no_number() -> None:
    assert plus_minus(Estimate(10.0, 8.0, 13.0, 6, "t")) == "±25 %"
    assert plus_minus(Estimate(10.0, 1.0, 160.0, 6, "t")) == "± unknown"


@pytest.mark.parametrize(
    ("estimate", "low", "high", "words"),
    [
        (0.5, 0.48, 0.52, "2.00x faster [1.92, 2.08]"),
        (2.0, 1.9, 2.1, "2.00x slower [1.90, 2.10]"),
        (1.01, 0.9, 1.1, "inconclusive [0.91, 1.11]"),
        (0.05, 0.049, 0.051, "20.0x faster [19.6, 20.4]"),
        (0.5, None, None, "2.00x faster"),
    ],
)
def test_ratios_in_words(estimate: float, low: float | None, high: float | None, words: str) -> None:
    assert ratio_words(Estimate(estimate, low, high, 6, "order statistics")) == words
