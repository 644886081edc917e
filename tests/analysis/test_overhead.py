from __future__ import annotations

import fakes
import numpy as np
import pytest
from fakes import FakeEngine

from timetrial.analysis.overhead import fit_overhead, overheads
from timetrial.errors import InputError
from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import run_experiment


def test_a_straight_line_is_found() -> None:
    overhead, per_sample, worst = fit_overhead([16, 64, 256], [500 + 3 * n for n in (16, 64, 256)])
    assert overhead == pytest.approx(500)
    assert per_sample == pytest.approx(3)
    assert worst < 1e-9


def test_short_steps_count_as_much_as_long_ones() -> None:
    # 5 % too long at the largest size moves the overhead by little; unweighted it would fall by a third.
    times = [500 + 3 * 16, 500 + 3 * 64, (500 + 3 * 256) * 1.05]
    overhead, _, worst = fit_overhead([16, 64, 256], times)
    assert overhead == pytest.approx(500, rel=0.05)
    plain = np.polyfit([16, 64, 256], times, 1)[1]
    assert abs(overhead - 500) < abs(plain - 500)
    assert 0.005 < worst < 0.05


def test_nothing_is_below_zero_and_a_curve_is_told() -> None:
    overhead, per_sample, worst = fit_overhead([1, 10, 100], [1, 100, 10_000])
    assert overhead >= 0
    assert per_sample >= 0
    assert worst > 0.5


def test_two_sizes_are_refused() -> None:
    with pytest.raises(InputError, match="2 batch sizes: expected at least 3"):
        fit_overhead([16, 64, 64], [1, 2, 2])


def test_contenders_are_told_apart(fake: FakeEngine, results_folder) -> None:  # type: ignore[no-untyped-def]
    words = ["network=mlp", "backend=fast,slow,absent", "batch_size=16,32,64", "launches=2", "threads=1"]
    experiment = load_words(words, load_network=fakes.network)
    results = run_experiment(experiment, results_folder, quiet=True, engine=fake.engine())
    lines = overheads(results.rows)
    assert [(line.axes["backend"], line.batch_sizes) for line in lines] == [
        ("fast", (16, 32, 64)),
        ("slow", (16, 32, 64)),
    ]
    # The fake's steps take as long with 64 samples as with 16: all is overhead.
    assert all(line.share(64) > 0.9 for line in lines)
    assert results.plot.overhead().axes[0].get_yticklabels()[0].get_text() == "fast"
    with pytest.raises(InputError, match="No contender has times for 3 batch sizes"):
        overheads(results.sel(batch_size=16).rows)


def test_an_overhead_is_drawn_with_its_interval_or_not_at_all(fake: FakeEngine, results_folder) -> None:  # type: ignore[no-untyped-def]
    def figure(launches: int):  # type: ignore[no-untyped-def]
        words = [
            "network=mlp",
            "backend=fast,slow",
            "batch_size=16,32,64",
            f"launches={launches}",
            "threads=1",
        ]
        experiment = load_words(words, load_network=fakes.network)
        results = run_experiment(experiment, results_folder, quiet=True, engine=fake.engine())
        drawn = results.plot.overhead()
        return overheads(results.rows), drawn, {one.get_text() for one in drawn.legends[0].get_texts()}

    lines, drawn, legend = figure(6)
    assert "95 % interval of the overhead" in legend
    assert "overhead" in legend
    shown = [tuple(line.get_xdata()) for line in drawn.axes[0].lines if len(line.get_xdata()) == 2]
    assert shown == [pytest.approx([ns * 1e-3 for ns in line.interval_ns]) for line in lines]
    for line in lines:
        assert line.interval_ns[0] <= line.overhead_ns <= line.interval_ns[1]
        assert line.interval_ns[1] > line.interval_ns[0]
    lines, drawn, legend = figure(2)
    assert [line.interval_ns for line in lines] == [None, None]
    assert "overhead" not in legend
    assert any("too few launches" in words for words in legend)
    assert not any("%" in text.get_text() for text in drawn.axes[0].texts)
