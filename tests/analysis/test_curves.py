"""Curves over tables made by hand: what is computed from looks, and how launches lie over one another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fakes
import numpy as np
import pytest

from timetrial.analysis.resources import Curves, Span, aligned, curves_of, rates, spans_of
from timetrial.analysis.steps import steps_of
from timetrial.control.sampling import Looks, check, hz_of, judge
from timetrial.errors import InputError
from timetrial.records.model import Evaluation, LaunchRecord, Phase, Segment
from timetrial.records.samples import COLUMNS, read_samples, read_thread_samples, sample_marks

MS = 1_000_000


def written(folder: Path, looks: list[dict[str, int]], end: str = "\n") -> Path:
    return fakes.write_looks(folder, looks, end)


def record(**fields: Any) -> LaunchRecord:
    asked = {"id": "1", "case": "c", "purpose": "learning", "seed": 1, "block": 0, "position": 0}
    return LaunchRecord(**asked, outcome="ok", started_at="", duration_s=1.0, **fields)


def nothing() -> Any:
    return steps_of(record(), np.empty(0, np.uint64), np.empty(0))


def test_two_processors_for_half_a_second_and_one_that_waits(tmp_path: Path) -> None:
    looks = [
        {
            "time_ns": 1000 * MS,
            "cpu_ns": 0,
            "wait_ns": 0,
            "anonymous_bytes": 10,
            "file_bytes": 5,
            "peak_bytes": 9,
        },
        {
            "time_ns": 1500 * MS,
            "cpu_ns": 1000 * MS,
            "wait_ns": 250 * MS,
            "anonymous_bytes": 30,
            "peak_bytes": 90,
        },
        {"time_ns": 2000 * MS, "cpu_ns": 1000 * MS, "wait_ns": 250 * MS, "minor_faults": 7, "peak_bytes": 80},
    ]
    samples = read_samples(written(tmp_path, looks))
    assert samples is not None
    phases = [Phase(name="exec", ns=900 * MS), Phase(name="start", ns=1100 * MS)]
    curves = curves_of(record(phases=phases), nothing(), samples)
    assert curves is not None
    assert curves.seconds.tolist() == pytest.approx([0.1, 0.6, 1.1])
    assert curves.cores.tolist() == pytest.approx([0, 2, 0])
    assert curves.waiting.tolist() == pytest.approx([0, 0.5, 0])
    assert curves.faults_per_s.tolist() == pytest.approx([0, 0, 14])
    assert curves.private_bytes.tolist() == [10, 30, 0]
    assert curves.whole_bytes.tolist() == [15, 30, 0]
    assert curves.peak_bytes.tolist() == [9, 90, 90]
    assert curves.anchors == pytest.approx({"start": 0.2, "end": 1.1})


def test_one_look_is_no_curve(tmp_path: Path) -> None:
    samples = read_samples(written(tmp_path, [{"time_ns": 1}]))
    assert samples is not None
    assert curves_of(record(), nothing(), samples) is None
    assert rates(np.array([5, 5]), np.array([1, 2])).tolist() == [0, 0], "no time between two looks"


def test_spans_are_phases_steps_and_evaluations() -> None:
    """Two epochs of two steps, an evaluation between them."""
    stamps = np.array([t << 8 | kind for t, kind in [(30, 0), (40, 1), (50, 1), (80, 0), (85, 1), (95, 1)]])
    segments = [
        Segment(kind="train", steps=2, first_stamp=3 * n, stamps=3, first_loss=2 * n, losses=2)
        for n in (0, 1)
    ]
    evaluation = Evaluation(steps=2, epoch=1, accuracy=0.5, loss=1.0, samples=4, duration_ns=20, ended_ns=75)
    phases = [
        Phase(name=name, ns=ns) for name, ns in (("exec", 0), ("start", 10), ("import", 20), ("build", 25))
    ]
    seen = record(segments=segments, evaluations=[evaluation], phases=phases)
    assert spans_of(seen, steps_of(seen, stamps.astype(np.uint64), np.zeros(4))) == (
        Span("start", 0, 10),
        Span("import", 10, 20),
        Span("build", 20, 25),
        Span("training", 30, 50),
        Span("evaluation", 55, 75),
        Span("training", 80, 95),
    )


def launch(start_s: float, end_s: float, held: float) -> Curves:
    seconds = np.linspace(0, end_s, 101)
    flat = np.zeros(101)
    memory = np.where(seconds < start_s, 0.0, held)
    spans = (Span("start", 0, int(start_s * 1e9)),)
    return Curves(0, seconds, memory, memory, memory, flat, flat, flat, 0.001, spans)


def test_launches_lie_over_one_another_phase_by_phase() -> None:
    """One starts in 1 s and the other in 3; without stretching, the band would be as wide as all of it."""
    found = aligned([launch(1.0, 4.0, 10.0), launch(3.0, 8.0, 12.0)], ["private_bytes"])
    assert found.anchors == pytest.approx({"start": 2.0, "end": 6.0})
    band = found.bands["private_bytes"]
    late = found.seconds > 2.3
    assert np.allclose(band.low[late], 10)
    assert np.allclose(band.middle[late], 11)
    assert np.allclose(band.high[late], 12)
    assert np.allclose(band.high[found.seconds < 1.7], 0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no column 'time_ns'"),
        ("time_ns\tcpu_ns\n1\t2\n", "no column 'wait_ns'"),
        ("\t".join(COLUMNS) + "\n1\t2\n", "too few or too many columns"),
        ("\t".join(COLUMNS) + "\n" + "\t".join("x" * 15) + "\n", "invalid literal"),
        ("\t".join(COLUMNS) + "\n" + "\t".join(["9" * 30] * 15) + "\n", "damaged"),
        ("\t".join(COLUMNS) + "\n" + "\t".join("2" * 15) + "\n" + "\t".join("1" * 15) + "\n", "go backward"),
    ],
)
def test_a_damaged_table_is_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "samples.tsv").write_text(text)
    with pytest.raises(InputError, match=says):
        read_samples(tmp_path)


def test_what_was_cut_off_while_it_was_written_is_left_out(tmp_path: Path) -> None:
    samples = read_samples(written(tmp_path, [{"time_ns": 1}, {"time_ns": 2}], end="\n3\t4"))
    assert samples is not None
    assert samples["time_ns"].tolist() == [1, 2]


def test_threads_by_name(tmp_path: Path) -> None:
    header = "time_ns\tpid\ttid\tcpu_ns\twait_ns\tslices\tname"
    lines = [header, "1\t7\t7\t0\t0\t1\tmain", "1\t7\t8\t5\t0\t1\ta pool", "2\t7\t8\t9\t3\t2\t"]
    (tmp_path / "thread_samples.tsv").write_text("\n".join(lines) + "\n")
    main, pool = read_thread_samples(tmp_path)
    assert (main.name, main.tid, len(main.time_ns)) == ("main", 7, 1)
    assert (pool.name, pool.cpu_ns.tolist(), pool.wait_ns.tolist()) == ("a pool", [5, 9], [0, 3])
    assert [*sample_marks(tmp_path)] == ["thread_samples.tsv"]
    assert read_samples(tmp_path / "nowhere") is None
    assert read_thread_samples(tmp_path / "nowhere") == []


def test_who_is_looked_at() -> None:
    assert hz_of({}, "learning") == hz_of({}, "resources") == 20
    assert hz_of({}, "speed") is hz_of({}, "proof") is None
    assert hz_of({"samples.hz": "5"}, "speed") == 5
    assert hz_of({"memory.cap": "1GB"}, "proof") == 20  # it may be all that there is
    assert hz_of({"memory.cap": "none"}, "proof") is hz_of({"memory.cap": "1GB"}, "speed") is None
    assert hz_of({"samples.hz": "0"}, "learning") is None


@pytest.mark.parametrize("word", ["-1", "2.5", "often", "1001", ""])
def test_no_such_rate(word: str) -> None:
    with pytest.raises(InputError, match=r"expected a whole number from 0 \(never\) to 1000"):
        check({"samples.hz": word})


@pytest.mark.parametrize(
    ("asked", "looks", "status", "effective"),
    [
        ("20", Looks(41, 2.0), "applied", "20"),
        ("20", Looks(5, 2.0), "adjusted", "2"),
        ("20", Looks(), "adjusted", "0"),
        ("0", Looks(), "applied", "0"),
        ("0", Looks(41, 2.0), "adjusted", "20"),
    ],
)
def test_the_lines_say_whether_it_was_so(asked: str, looks: Looks, status: str, effective: str) -> None:
    setting = judge(asked, looks)
    assert (setting.status, setting.effective) == (status, effective)
