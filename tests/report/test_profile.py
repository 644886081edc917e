"""The profile of scripted contenders: numbers, table, JSON, figure."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import fakes
import pytest
from fakes import FakeEngine

from timetrial.errors import InputError
from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import profile_experiment
from timetrial.figures.plots_profile import OTHERS, bars, difference
from timetrial.figures.plots_roofline import EDGE, Ceilings, ceilings, points
from timetrial.figures.plots_style import check_figure_file
from timetrial.report.rendering import to_html, to_text
from timetrial.results.loading import load
from timetrial.results.profile import Profile


@pytest.fixture
def profiled(fake: FakeEngine, results_folder: Path) -> Any:
    def profiled(*words: str) -> Profile:
        experiment = load_words(["network=mlp", *words], load_network=fakes.network)
        return profile_experiment(experiment, results_folder, quiet=True, engine=fake.engine())

    return profiled


TABLE = """\
look · mlp · digits28 · batch 64 · profile · Test CPU, 2 cores · NOT equal: wrong

fast, threads 1  3 profiled steps · measured peak 100 GFLOP/s · memory 5.0 GB/s
layer         kind                   direction              time  spread    share  GFLOP/s  of peak  GB/s     of limit
conv1         conv2d                 forward            20.00 us  ±0.2 %   20.0 %     20.0     20 %          20 % peak
                                     backward weights   30.00 us  ±0.2 %   30.0 %     13.3     13 %          13 % peak
relu1         relu                   forward             2.00 us  ±2.5 %    2.0 %                     2.0  40 % memory
                                     backward            3.00 us  ±1.7 %    3.0 %                     2.0  40 % memory
fc1           dense                  forward            14.00 us  ±0.4 %   14.0 %     28.6     29 %          29 % peak
                                     backward data      13.00 us  ±0.4 %   13.0 %     30.8     31 %          31 % peak
                                     backward weights   12.00 us  ±0.4 %   12.0 %     33.3     33 %          33 % peak
loss          softmax_cross_entropy  loss                1.00 us  ±5.0 %    1.0 %
all layers                           update              5.00 us  ±1.0 %    5.0 %                     0.0   1 % memory
sum of these                                           100.00 us          100.0 %     20.0     20 %
plain step                                              98.00 us  ±0.0 %              20.4     20 %
  a profiled step takes 100 us, a plain one 98.0 us (90.0 us of CPU time): timing the layers costs 2.0 %

other, threads 1  unavailable: other does not time its layers

wrong, threads 1  wrong: gradient conv1.weight: relative L2 error 0.5, tolerance 2e-05

absent, threads 1  unavailable: absent needs the module absent: pip install absent

  time: median of the profiled steps; spread: half of their middle half
"""  # noqa: E501


def test_the_table(profiled: Any) -> None:
    profile = profiled("name=look", "backend=fast,other,wrong,absent", "threads=1")
    lines = to_text(profile, width=120).splitlines()
    assert lines[:-2] == TABLE.splitlines()
    assert lines[-2].startswith("  records: ")
    assert lines[-1].startswith("  again: timetrial profile network=mlp name=look")
    assert "look" in to_html(profile)
    assert repr(profile) == to_text(profile)


def test_json_has_every_key_for_every_case(profiled: Any) -> None:
    profile = profiled("backend=fast,absent", "threads=1")
    document = profile.to_json()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    fast, absent = document["cases"]
    assert list(fast) == list(absent)
    assert (absent["outcome"], absent["layers"], absent["layers_time_ns"]) == ("unavailable", [], None)
    assert fast["outcome"] == "ok"
    assert fast["profiled_steps"] == 3
    assert fast["layers_time_ns"] == 100_000
    assert fast["profiled_step_time_ns"] == {"median": 100_000, "low": 99_550, "high": 100_450}
    assert fast["step_time_ns"]["median"] == 98_000
    assert fast["step_cpu_time_ns"] == 90_000
    assert fast["overhead"] == pytest.approx(100 / 98 - 1)
    assert fast["percent_of_peak"] == pytest.approx(100 * 2e6 / 98e-6 / 1e11)
    assert fast["peak_step_time_ns"] == pytest.approx(20_000)
    assert fast["facts"] == {"blas.kernel": "SkylakeX"}
    assert sum(layer["share"] for layer in fast["layers"]) == pytest.approx(1)
    conv1, weights, relu1 = fast["layers"][:3]
    assert (conv1["node"], conv1["kind"], conv1["direction"]) == ("conv1", "conv2d", "forward")
    assert conv1["flops_per_s"] == pytest.approx(2 * 200_000 / 20e-6)
    assert conv1["percent_of_peak"] == pytest.approx(20)
    assert conv1["bytes_per_s"] is None
    assert weights["multiply_accumulates"] == 200_000
    assert relu1["percent_of_peak"] is None, "absent, never 0"
    assert relu1["bytes_per_s"] == pytest.approx(4_000 / 2e-6)
    assert (conv1["bytes"], conv1["operations_per_byte"], conv1["limit"]) == (8_000, 50, "peak")
    assert conv1["percent_of_limit"] == pytest.approx(20)
    assert (relu1["limit"], relu1["percent_of_limit"]) == ("memory", pytest.approx(40))
    assert (fast["memory_bandwidth"], fast["cache_bandwidth"]) == (5e9, 5e10)


def test_a_record_loads_again(profiled: Any) -> None:
    profile = profiled("backend=fast,slow", "threads=1")
    again = load(profile.path).profile
    assert again.to_json() == profile.to_json()
    assert len(again.sel(backend="slow")) == 1
    frame = profile.to_pandas()
    assert len(frame) == 2 * len(fakes.PROFILED)
    assert {"backend", "threads", "node", "direction", "time_ns", "share"} <= set(frame.columns)


def test_a_run_is_no_profile(fake: FakeEngine, results_folder: Path) -> None:
    experiment = load_words(["network=mlp", "backend=fast", "launches=1"], load_network=fakes.network)
    from timetrial.experiment.runner import run_experiment

    results = run_experiment(experiment, results_folder, quiet=True, engine=fake.engine())
    with pytest.raises(InputError, match="has no profile launches"):
        results.profile  # noqa: B018


def test_without_a_proof_no_percent_of_peak(profiled: Any, fake: FakeEngine) -> None:
    launch = fake.launch

    def unproven(plan: Any) -> Any:
        record = launch(plan)
        if plan.purpose != "proof":
            return record
        parity = record.parity.model_copy(update={"status": "unproven"})
        record = record.model_copy(update={"parity": parity})
        (plan.folder / "record.json").write_text(record.model_dump_json())
        return record

    fake.launch = unproven  # type: ignore[method-assign]
    profile = profiled("backend=fast", "threads=1")
    assert "unproven: no percent of peak" in to_text(profile)
    (case,) = profile.to_json()["cases"]
    assert case["percent_of_peak"] is None
    assert case["layers"][0]["percent_of_peak"] is None
    assert case["layers"][0]["percent_of_limit"] is None
    with pytest.raises(InputError, match="No case has a roofline to draw: each needs a proof"):
        profile.roofline()
    assert case["layers"][0]["flops_per_s"] > 0


def test_a_disturbed_launch_is_named(profiled: Any, fake: FakeEngine) -> None:
    fake.witnesses = {"others_cpus": 0.6, "cpus": 2, "wall_s": 1.0}
    text = to_text(profiled("backend=fast,slow", "threads=1"))
    assert (
        "! 2 of 2 timed launches disturbed (other programs used up to 0.6 of the 2 CPUs): kept, marked"
        in text
    )


def test_numbers_of_the_bars(profiled: Any) -> None:
    fast, slow = bars(profiled("backend=fast,other,slow", "threads=1"))
    assert [bar.label for bar in (fast, slow)] == ["fast", "slow"]
    assert [(piece.layer, piece.direction) for piece in fast.pieces] == [
        ("conv1", "forward"), ("conv1", "backward_weights"), ("relu1", "forward"), ("relu1", "backward"),
        ("fc1", "forward"), ("fc1", "backward_data"), ("fc1", "backward_weights"), ("loss", "loss"),
        ("update", "update"),
    ]  # fmt: skip
    assert [round(piece.seconds * 1e6) for piece in fast.pieces] == [20, 30, 2, 3, 14, 13, 12, 1, 5]
    assert [round(piece.start_s * 1e6) for piece in fast.pieces] == [0, 20, 50, 52, 55, 69, 82, 94, 95]
    assert fast.end_s == pytest.approx(100e-6)
    assert slow.end_s == pytest.approx(200e-6), "absolute time: stacks can be compared"
    assert fast.plain_s == pytest.approx(98e-6)
    assert fast.peak_s == slow.peak_s == pytest.approx(20e-6)
    assert fast.percent_of_peak == pytest.approx(100 * 20 / 98)


def test_why_a_bar_and_its_line_differ_is_said(profiled: Any) -> None:
    results = profiled("backend=fast,slow", "threads=1")
    words = " ".join(results.plot().axes[0].get_xlabel().split())
    assert "Bar against line: +2 %, the cost of timing layers (longer), or work between layers" in words
    longer = dataclasses.replace(bars(results)[0], plain_s=80e-6)
    shorter = dataclasses.replace(bars(results)[1], plain_s=250e-6)
    assert "Bar against line: -20 to +25 %," in difference([longer, shorter])
    assert difference([dataclasses.replace(longer, plain_s=None)]) == ""


def test_small_layers_are_drawn_together(profiled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shares = {("conv1", "forward"): 960, ("relu1", "forward"): 20, ("fc1", "forward"): 20}
    monkeypatch.setattr(fakes, "PROFILED", shares)
    (bar,) = bars(profiled("backend=fast", "threads=1"))
    assert [(piece.layer, round(piece.seconds * 1e6)) for piece in bar.pieces] == [("conv1", 96), (OTHERS, 4)]


def test_the_figure_is_drawn(profiled: Any, tmp_path: Path) -> None:
    profile = profiled("backend=fast,slow", "threads=1")
    figure = profile.plot()
    figure.savefig(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 0
    labels = {text.get_text() for legend in figure.legends for text in legend.get_texts()}
    assert {"conv1", "fc1", "update", "backward, data", "at 100 % of measured peak"} <= labels
    with pytest.raises(InputError, match="No case has a profile to draw"):
        profiled("backend=absent").plot()


def test_points_of_the_roofline(profiled: Any) -> None:
    profile = profiled("backend=fast,other,slow", "threads=1")
    machine = ceilings(profile)
    assert machine == Ceilings(1e11, 5e9, 5e10)
    assert [machine.reachable(one) for one in (1, 20, 1000)] == [5e9, 1e11, 1e11]
    drawn = points(profile)
    conv1, _, relu1 = drawn[:3]
    assert (conv1.name, conv1.direction, conv1.operations_per_byte) == ("conv1", "forward", 50)
    assert conv1.flops_per_s == pytest.approx(2e10)
    assert (relu1.name, relu1.operations_per_byte) == ("relu1", EDGE)
    assert relu1.flops_per_s / machine.reachable(EDGE) == pytest.approx(0.4), "as far below as its bytes"
    assert {point.case for point in drawn} == {0, 2}
    assert "loss" not in {point.name for point in drawn}, "nothing is known of its work"


def test_the_roofline_is_drawn(profiled: Any, tmp_path: Path) -> None:
    figure = profiled("backend=fast,slow", "threads=1").roofline()
    figure.savefig(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 0
    (panel,) = figure.axes
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
    words = [text.get_text() for text in panel.texts]
    assert {"memory: 5 GB/s", "second cache: 50 GB/s", "peak: 100 GFLOP/s", "conv1"} <= {*words}
    labels = {text.get_text() for legend in figure.legends for text in legend.get_texts()}
    assert {"fast", "slow", "forward", "backward, data", "update"} <= labels


def test_threads_have_ceilings_of_their_own(profiled: Any) -> None:
    profile = profiled("backend=fast", "threads=1,2")
    with pytest.raises(InputError, match="several numbers of threads"):
        profile.roofline()
    assert ceilings(profile.sel(threads=2)).peak_flops == 2e11


def test_a_run_measures_no_bandwidth(fake: FakeEngine, results_folder: Path) -> None:
    from timetrial.experiment.runner import run_experiment

    experiment = load_words(["network=mlp", "backend=fast", "launches=1"], load_network=fakes.network)
    results = run_experiment(experiment, results_folder, quiet=True, engine=fake.engine())
    assert results.experiment.peak_flops
    assert results.experiment.memory_bandwidth == results.experiment.cache_bandwidth == {}


@pytest.mark.parametrize(("name", "message"), [("a.xyz", "expected a name"), ("no/a.png", "no folder")])
def test_files_that_cannot_be_figures(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_figure_file(tmp_path / name)
