"""The three JSON formats, key by key."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeEngine

import timetrial as tt
from timetrial.errors import InputError
from timetrial.experiment.runner import Interrupted
from timetrial.exports import FORMATS, left_out
from timetrial.results.names import LONGEST, names_of
from timetrial.results.results import Results

JSON_FORMATS = ("google-benchmark", "bencher", "github-action")
OLD = Path(__file__).parents[1] / "records" / "1"
REST = "network=mlp threads=1 dataset=digits28 batch_size=64"


def read(found: Any, format: str) -> Any:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(found.export(format), parse_constant=refuse)


def test_bencher(measured: Results) -> None:
    document = read(measured, "bencher")
    fast, slow = measured.to_json()["cases"][:2]
    assert list(document) == [f"fast {REST}", f"slow {REST} (unproven)"]
    for case, measures in zip((fast, slow), document.values(), strict=True):
        assert list(measures) == ["latency", "samples-per-second", "peak-memory"]
        time = case["step_time_ns"]
        assert measures["latency"] == {
            "value": time["estimate"], "lower_value": time["low"], "upper_value": time["high"],
        }  # fmt: skip
        speed = case["samples_per_s_interval"]
        assert measures["samples-per-second"] == {
            "value": case["samples_per_s"], "lower_value": speed["low"], "upper_value": speed["high"],
        }  # fmt: skip
        assert measures["peak-memory"] == {"value": case["peak_memory_bytes"]}
    assert all(len(slug) <= 64 for measures in document.values() for slug in measures)


def test_github_action(measured: Results) -> None:
    document = read(measured, "github-action")
    for case, entry in zip(measured.to_json()["cases"], document, strict=False):
        assert list(entry) == ["name", "unit", "value", "range", "extra"]
        assert entry["name"] == f"{case['axes']['backend']} {REST}"
        assert entry["unit"] == "ns"
        assert entry["value"] == case["step_time_ns"]["estimate"]
        assert json.loads(entry["range"]) == [case["step_time_ns"]["low"], case["step_time_ns"]["high"]]
    assert len(document) == 2
    fast, slow = (entry["extra"].splitlines() for entry in document)
    assert "proven" in fast
    assert "unproven" in slow
    assert f"record {measured.path.name}, timetrial {tt.__version__}" in fast


def test_google_benchmark(fake: FakeEngine, run: Callable[..., Results]) -> None:
    fake.witnesses = {"cpus_used": 1.5, "frequency_hz": 2.9e9}
    measured = run("backend=fast,slow,absent,crashes,mismatched,wrong", "threads=1", "launches=3")
    document = read(measured, "google-benchmark")
    assert document["context"] == {
        "date": measured.experiment.created_at,
        "num_cpus": 2,
        "mhz_per_cpu": 2900,
        "cpu_model": "Test CPU",
        "library_build_type": "release",
        "json_schema_version": 1,
        "timetrial_version": tt.__version__,
        "timetrial_record": measured.path.name,
    }
    fast, slow, *failed = document["benchmarks"]
    case = measured.to_json()["cases"][0]
    time = case["step_time_ns"]
    assert fast == {
        "name": f"fast {REST}",
        "family_index": 0,
        "per_family_instance_index": 0,
        "run_name": f"fast {REST}",
        "run_type": "iteration",
        "repetitions": 1,
        "repetition_index": 0,
        "threads": 1,
        "iterations": case["steps"]["n"],
        "real_time": time["estimate"],
        "cpu_time": time["estimate"] * case["cpus_used"],
        "time_unit": "ns",
        "items_per_second": case["samples_per_s"],
        "real_time_low": time["low"],
        "real_time_high": time["high"],
        "launches": 3,
        "peak_memory_bytes": case["peak_memory_bytes"],
    }
    assert slow["label"] == "unproven"
    assert [one["error_message"].partition(":")[0] for one in failed] == [
        "unavailable", "crash", "mismatch", "wrong",
    ]  # fmt: skip
    for one in failed:
        assert one["error_occurred"] is True
        assert "\n" not in one["error_message"]
        assert not {"real_time", "cpu_time", "iterations", "items_per_second"} & one.keys(), "no numbers"


def test_what_is_left_out_is_named(measured: Results) -> None:
    assert left_out(measured) == [
        f"absent {REST}: unavailable: absent needs the module absent: pip install absent",
        f"crashes {REST}: crash: the contender crashes",
        f"mismatched {REST}: mismatch: threads asked 1, working 2",
        f"wrong {REST}: wrong: gradient conv1.weight: relative L2 error 0.5, tolerance 2e-05",
    ]
    assert left_out(measured.sel(backend="fast")) == []


def test_a_selection_exports_itself_under_the_same_names(measured: Results) -> None:
    part = measured.sel(backend="slow")
    assert read(part, "bencher").items() <= read(measured, "bencher").items()
    assert len(read(part, "github-action")) == len(read(part, "google-benchmark")["benchmarks"]) == 1


def test_one_launch_has_no_interval(run: Callable[..., Results]) -> None:
    one = run("backend=fast", "launches=1")
    assert all(list(value) == ["value"] for value in next(iter(read(one, "bencher").values())).values())
    (entry,) = read(one, "github-action")
    assert list(entry) == ["name", "unit", "value", "extra"]
    assert "one launch: no interval" in entry["extra"]
    (line,) = read(one, "google-benchmark")["benchmarks"]
    assert not {"real_time_low", "real_time_high", "cpu_time", "threads"} & line.keys(), "not known: absent"


def test_a_repetition_has_a_name_of_its_own(run: Callable[..., Results]) -> None:
    same = run("backend=fast,fast", "launches=2")
    assert len(read(same, "bencher")) == len(same) == 2


def test_a_race(raced: Callable[..., Any]) -> None:
    found = raced("backend=fast,slow")
    levels = found.to_json()["levels"]
    bencher = read(found, "bencher")
    for level, measures in zip(levels.values(), bencher.values(), strict=True):
        assert measures == {
            "latency": {
                "value": level["estimate"], "lower_value": level["low"], "upper_value": level["high"],
            }
        }  # fmt: skip
    base, challenger = read(found, "github-action")
    assert base["value"] == levels["fast"]["estimate"]
    assert json.loads(challenger["range"]) == [levels["slow"]["low"], levels["slow"]["high"]]
    assert "worse against the base" in challenger["extra"].splitlines()
    lines = read(found, "google-benchmark")["benchmarks"]
    assert [line["real_time"] for line in lines] == [level["estimate"] for level in levels.values()]
    assert [line["label"] for line in lines] == ["base", "worse against the base"]
    assert lines[0]["iterations"] > 0


def test_a_race_of_throughput_is_in_time_where_smaller_is_better(raced: Callable[..., Any]) -> None:
    found = raced("backend=fast,slow", metric="samples_per_s")
    level = found.to_json()["levels"]["fast"]
    measures = next(iter(read(found, "bencher").values()))
    assert measures["samples-per-second"]["value"] == level["estimate"]
    fast, slow = read(found, "github-action")
    assert fast["unit"] == "ns/sample"
    assert fast["value"] == pytest.approx(1e9 / level["estimate"])
    assert json.loads(fast["range"]) == pytest.approx([1e9 / level["high"], 1e9 / level["low"]])
    assert fast["value"] < slow["value"], "fast is better, so smaller"
    line = read(found, "google-benchmark")["benchmarks"][0]
    assert line["real_time"] == fast["value"]
    assert line["items_per_second"] == level["estimate"]
    assert "time of a sample" in line["label"]


def test_a_race_of_memory_has_no_time(raced: Callable[..., Any]) -> None:
    found = raced("backend=fast,slow", metric="peak_memory")
    assert read(found, "github-action")[0]["unit"] == "bytes"
    assert read(found, "github-action")[0]["value"] == pytest.approx(50 * 2**20)
    with pytest.raises(InputError, match="google-benchmark has times only"):
        found.export("google-benchmark")


def test_a_race_in_which_a_side_fails(raced: Callable[..., Any]) -> None:
    found = raced("backend=fast,crashes")
    assert read(found, "bencher") == {}
    assert read(found, "github-action") == []
    lines = read(found, "google-benchmark")["benchmarks"]
    assert [line["error_occurred"] for line in lines] == [True, True]
    assert len(left_out(found)) == 2
    assert "pairs are void" in left_out(found)[1]


@pytest.mark.parametrize("folder", sorted(OLD.iterdir()), ids=lambda folder: folder.name)
def test_old_records_export(folder: Path, tmp_path: Path) -> None:
    found = tt.load(folder)
    for format in JSON_FORMATS:
        read(found, format)
    assert found.export("csv", tmp_path / "csv") == tmp_path / "csv"


HOSTILE = "a,b\"c'd\n<script>alert(1)</script>\t|é=\r\n{}"


def called(results: Results, name: str) -> Results:
    """The same with another word for the first backend."""
    first, *rest = results.experiment.cases
    first = first.model_copy(
        update={"called": name, "backend": name, "axes": {**first.axes, "backend": name}}
    )
    record = results.experiment.model_copy(update={"cases": [first, *rest]})
    again = Results(results.path)
    again.experiment = record
    return again


@pytest.mark.attempt
def test_names_may_hold_anything(measured: Results, tmp_path: Path) -> None:
    hostile = called(measured, HOSTILE)
    for format in JSON_FORMATS:
        path = hostile.export(format, tmp_path / format)
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        names = list(document) if format == "bencher" else [
            one["name"] for one in (document["benchmarks"] if isinstance(document, dict) else document)
        ]  # fmt: skip
        assert names[0].startswith("a,b\"c'd <script>alert(1)</script> |é= {} network=mlp")


@pytest.mark.attempt
@pytest.mark.parametrize("letter", ["x", "é", "猫", "🐈"])
def test_long_names_are_cut_and_still_differ(measured: Results, letter: str) -> None:
    first, second, *_ = measured.experiment.cases
    long = [one.model_copy(update={"called": letter * 5000}) for one in (first, second)]
    names = names_of(long)
    assert len(set(names.values())) == 2
    assert all(len(name.encode()) <= LONGEST for name in names.values())
    assert all(name.startswith(letter * 50) for name in names.values())
    bencher = read(called(measured.sel(), letter * 5000), "bencher")
    assert all(len(name) <= 1024 for name in bencher)
    twins = [one.model_copy(update={"called": "same", "settings": {}, "axes": {}}) for one in (first, second)]
    assert len(set(names_of(twins).values())) == 2


def test_formats_are_those_of_the_table() -> None:
    from timetrial import exports

    assert all(f"| `{name}` " in (exports.__doc__ or "") for name in FORMATS)


def test_what_was_interrupted_has_no_numbers(
    fake: FakeEngine, run: Callable[..., Results], results_folder: Path, tmp_path: Path
) -> None:
    def interrupt(plan: Any) -> None:
        if len(fake.log) == 3:
            raise KeyboardInterrupt

    fake.before = interrupt
    with pytest.raises(Interrupted):
        run("backend=fast,slow", "launches=3")
    found = Results(next(results_folder.iterdir()))
    assert None in [row.outcome for row in found]
    assert any(line.endswith(": not measured") for line in left_out(found))
    assert len(read(found, "bencher")) == sum(row.outcome == "ok" for row in found)
    cases = Path(found.export("csv", tmp_path / "csv"), "cases.csv").read_text(encoding="utf-8")
    assert len(cases.splitlines()) == 1 + len(found)


def test_the_tool_of_google_benchmark_compares_them(
    fake: FakeEngine, run: Callable[..., Results], tmp_path: Path
) -> None:
    """Debian's libbenchmark-tools; PyPI's package has the library without it."""
    tool = Path("/usr/share/benchmark/compare.py")
    if not tool.is_file():
        pytest.skip("Google Benchmark's compare.py is not installed: apt install libbenchmark-tools")
    words = ("backend=fast,slow,crashes", "threads=1", "launches=2")
    fake.witnesses = {"cpus_used": 1.0}
    files = [tmp_path / "old.json", tmp_path / "new.json"]
    for file in files:
        run(*words).export("google-benchmark", file)
    command = [sys.executable, str(tool), "--no-color", "benchmarks", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, cwd=tool.parent)
    told = [line.split() for line in done.stdout.splitlines() if REST in line]
    assert [line[0] for line in told] == ["fast", "slow"], "what failed has no time"
    assert all(float(line[len(REST.split()) + 1]) == 0 for line in told)
