"""What `timetrial doctor` prints: it fits, it groups, and it asks for nothing."""

from __future__ import annotations

import dataclasses
import json

import pytest
from typer.testing import CliRunner

from timetrial.cli.main import app
from timetrial.experiment import doctor as module
from timetrial.experiment.doctor import COUNTERS, FRAMEWORKS, LIBRARIES, REPORTS, STACKS, Check, Diagnosis
from timetrial.records.model import Counter
from timetrial.report.doctor import to_text

LONG = "/a/very/long/path/to/an/environment/that/lies/deep/below/a/home/folder/of/somebody/bin/python"
MACHINE = {
    "cpu": "Intel Xeon Gold 6226R", "cpus": 64, "usable_cpus": 32, "memory_bytes": 2**38,
    "kernel": "6.1.0-18-amd64", "python": "3.12.1",
}  # fmt: skip
READY = [
    Check("timetrial-child", "ready", f"{LONG}/timetrial-child"),
    Check("backend eigen", "ready", f"native, avx512: {LONG}/eigen-avx512.so"),
    Check("backend null", "ready", f"native: {LONG}/null.so"),
    Check("framework pytorch", "ready", "2.13.0+cpu (current), 1.4.0"),
    *(Check(f"library openblas-{one}", "ready", f"{LONG}/lib.so.0, version 0.3.{one}") for one in range(20)),
    Check("pandas (to_pandas)", "ready", "pandas"),
]
MISSING = [
    Check("backend libtorch", "missing", f"libtorch needs torch in {LONG}", f"{LONG} -m pip install torch",
          STACKS),
    Check("frameworks", "missing", f"not installed: {', '.join(f'neon@2.{n}.0' for n in range(30))}",
          "timetrial frameworks list", FRAMEWORKS),
    *(Check(f"library {name}", "missing", name, f"apt install {name}", LIBRARIES)
      for name in ("mkl", "blis", "atlas")),
    Check("matplotlib (figures)", "missing", "the module matplotlib is not installed",
          f"{LONG} -m pip install 'timetrial[report]'", REPORTS),
]  # fmt: skip
WHOLE = Diagnosis(
    [*READY, *MISSING], MACHINE, 21.0, {"1": 1e11, "32": 2.5e12}, 1.9, ["the load is 7.0: " * 9]
)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_it_fits_eighty_columns(width: int) -> None:
    lines = to_text(WHOLE, width=width).splitlines()
    assert max(map(len, lines)) <= min(width, 80)
    assert not any("…" in line for line in lines)
    assert len(to_text(Diagnosis([READY[0]] * 3, MACHINE, None, {}, None, [])).splitlines()) < 8


def test_what_is_missing_stands_under_what_one_would_gain() -> None:
    text = to_text(WHOLE)
    before, after = text.split("Nothing more is needed. If you want\n")
    assert "libtorch" not in before
    places = [after.index(f"  {gain}:") for gain in (STACKS, FRAMEWORKS, LIBRARIES, REPORTS)]
    assert places == sorted(places)
    libraries = after[places[2] : places[3]]
    assert "mkl, blis, atlas" in libraries
    assert "timetrial list libraries" in libraries
    assert "apt install" not in libraries, "nobody asked for all of these"
    assert after.count(LIBRARIES) == 1
    assert "'timetrial[report]'" in after[places[3] :]


def test_names_are_told_apart_without_paths() -> None:
    text = " ".join(to_text(WHOLE).split())
    assert "eigen (avx512), null" in text
    assert "pytorch 2.13.0+cpu (current) / 1.4.0" in text
    assert "openblas-3 0.3.3" in text
    assert "eigen-avx512.so" not in text
    assert "also" in text.split("pandas")[0]


def test_nothing_is_asked_for_where_nothing_is_missing() -> None:
    whole = dataclasses.replace(WHOLE, checks=READY, advice=[])
    text = to_text(whole)
    assert "timetrial works. Ready:" in text
    for words in ("If you want", "cure", "install", "missing"):
        assert words not in text


def test_what_is_broken_comes_with_its_cure_and_never_as_working() -> None:
    broken = Check("compiled core", "broken", "no such file", "pip install --force-reinstall timetrial")
    text = to_text(dataclasses.replace(WHOLE, checks=[broken]))
    assert "timetrial does not work here." in text
    assert "works" not in text.replace("does not work here", "")
    assert "broken  compiled core: no such file\n      pip install --force-reinstall timetrial" in text


def test_what_is_missing_here_has_a_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    found = [*module._module_checks(), *module._library_checks(), *module._framework_checks()]
    missing = [one for one in found if one.state == "missing"]
    assert missing
    assert all(one.gain for one in missing)
    done = CliRunner().invoke(app, ["doctor", "--json"])
    assert all(one["gain"] for one in json.loads(done.stdout)["checks"] if one["state"] == "missing")


def test_what_can_be_counted_is_ready_and_the_rest_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    why = "EACCES: kernel.perf_event_paranoid is 4: sudo sysctl kernel.perf_event_paranoid=2"
    counters = [
        Counter(name="instructions", reason=why),
        Counter(name="cycles", reason=why),
        Counter(name="page_faults", per_step=1.0),
    ]
    monkeypatch.setattr("timetrial.observing.counted.counted_here", lambda: counters)
    checks = module._counter_checks()
    assert [(one.name, one.state, one.gain) for one in checks] == [
        ("counter page_faults", "ready", ""),
        ("instructions, cycles", "missing", COUNTERS),
    ]
    text = " ".join(to_text(dataclasses.replace(WHOLE, checks=[*READY, *MISSING, *checks])).split())
    assert "counters page_faults" in text
    assert f"instructions, cycles: {why}" in text
