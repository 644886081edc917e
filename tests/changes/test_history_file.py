"""The history file: appended to by many, read whatever stands in it, drawn without a line across a break."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import timetrial as tt
from timetrial.changes.entry import Entry, commit_of, entries_of
from timetrial.changes.history import LONGEST_LINE, append, history
from timetrial.cli.main import app
from timetrial.errors import InputError
from timetrial.races import Race

Run = Callable[..., tt.Results]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "history.jsonl"


def entry(number: int = 0, **changed: Any) -> Entry:
    facts = {
        "when": f"2026-10-{1 + number // 24:02d}T{number % 24:02d}:00:00+00:00",
        "source": "run", "name": "mine threads=1", "record": f"r{number}", "outcome": "ok",
        "metric": "step_time", "unit": "ns", "direction": "lower",
        "estimate": 1e6 + number, "low": 9e5, "high": 1.2e6,
        "machine_id": "m1", "machine": {"cpu": "A"}, "environment_id": "e1", "environment": {"kernel": "6.1"},
        "timetrial_version": "0.1.0",
    }  # fmt: skip
    return Entry(**{**facts, **changed})


def test_a_run_joins_with_what_must_be_known(run: Run, file: Path) -> None:
    found = run("backend=fast,slow,crashes", "threads=1", "launches=4")
    assert found.export("history", file) == file
    fast, slow, ratio, crashed, no_ratio = history(file).entries
    case = found.to_json()["cases"][1]
    assert slow.estimate == case["step_time_ns"]["estimate"]
    assert (slow.unit, slow.direction, slow.against, slow.metric) == ("ns", "lower", None, "step_time")
    assert ratio.estimate == case["ratio"]["estimate"]
    assert (ratio.low, ratio.high) == (case["ratio"]["low"], case["ratio"]["high"])
    assert (ratio.unit, ratio.against) == ("1", fast.name)
    assert (crashed.outcome, crashed.estimate, no_ratio.estimate) == ("crash", None, None)
    assert fast.record == found.path.name
    assert fast.when.isoformat() == found.experiment.created_at
    assert fast.machine == {
        "cpu": "Test CPU", "cpu_model": "None", "cpus": "2", "usable_cpus": "2", "cpu_quota": "None",
    }  # fmt: skip
    assert fast.environment["setting threads"] == "1"
    assert fast.environment["timetrial"] == tt.__version__
    assert found.export("history") == file.read_text()


def test_a_race_joins_with_its_verdict(raced: Callable[..., Race], file: Path) -> None:
    race = raced("backend=fast,slow")
    race.export("history", file)
    base, level, ratio = history(file).entries
    assert (base.against, level.against, ratio.against) == (None, None, base.name)
    assert ratio.verdict == "worse"
    assert ratio.estimate == pytest.approx(1 + race.duels[0].effect.estimate, rel=0.02)  # type: ignore[union-attr]
    assert base.source == "race"


def test_the_same_code_is_no_environment(run: Run, file: Path) -> None:
    """What changes from commit to commit is what a history follows; another seed is no other environment."""
    one, other = (
        entries_of(run("backend=fast", "threads=1", "launches=2", f"seed={seed}")) for seed in (1, 2)
    )
    assert one[0].environment_id == other[0].environment_id
    assert one[0].record != other[0].record


def test_it_is_appended_to_by_many_at_once(file: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: append(file, [entry(number), entry(number, name="other")]), range(60)))
    found = history(file)
    assert len(found) == 120
    assert found.notes == []
    assert [one.when for one in found.entries] == sorted(one.when for one in found.entries)


def test_a_line_that_was_torn_ends_before_the_next(file: Path) -> None:
    append(file, [entry(0)])
    with file.open("a") as torn:
        torn.write('{"schema_version":1,"when":"2026')
    assert history(file).notes == ["1 line is cut off at the end, line 2: left out"]
    append(file, [entry(1)])
    found = history(file)
    assert len(found) == 2
    assert found.notes == ["1 line is torn: no JSON, or with a number that is none, line 2: left out"]


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("no json", "torn"),
        ("[1, 2]", "not of a history"),
        ('{"name": "of another tool"}', "not of a history"),
        (entry(3).model_dump_json().replace("1000003.0", "NaN"), "torn"),
        (entry(3).model_dump_json().replace("1000003.0", "1e999"), "not of a history"),
        (entry(3).model_dump_json().replace("1000003.0", '"fast"'), "not of a history"),
        (entry(3).model_dump_json().replace("+00:00", "").replace("00:00Z", "00:00"), "not of a history"),
        (
            entry(3).model_dump_json().replace('"schema_version":1', '"schema_version":2'),
            "of a newer timetrial",
        ),
        (entry(0).model_dump_json(), "repeats another one"),
        ("x" * (LONGEST_LINE + 5), "longer than 1 MB"),
        ("\x00" * 50, "torn"),
        ("[" * 100_000, "torn"),
    ],
)
def test_what_cannot_be_used_is_said(file: Path, line: str, words: str) -> None:
    append(file, [entry(0)])
    with file.open("a") as other:
        other.write(f"{line}\n\n")
    append(file, [entry(1)])
    found = history(file)
    assert len(found) == 2
    (note,) = found.notes
    assert words in note
    assert "line 2" in note
    assert "left out" in repr(found)


def test_fields_of_later_versions_are_passed_over(file: Path) -> None:
    file.write_text(json.dumps({**json.loads(entry().model_dump_json()), "later": 1}) + "\n")
    assert len(history(file)) == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.write_text("name,time\na,1\n"), "is no history: its first line is no JSON object"),
        (lambda path: path.mkdir(), "cannot be written: Is a directory"),
        (lambda path: os.mkfifo(path), "cannot be written|is no regular file"),
    ],
)
def test_what_is_no_history_is_never_appended_to(
    file: Path, make: Callable[[Path], Any], message: str
) -> None:
    make(file)
    before = file.read_bytes() if file.is_file() else None
    with pytest.raises(InputError, match=message):
        append(file, [entry()])
    assert before is None or file.read_bytes() == before
    with pytest.raises(InputError):
        history(file)


def test_nothing_to_read(file: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no history '.*'. These begin one: timetrial export last"):
        history(file)
    file.write_text("")
    with pytest.raises(InputError, match="holds no history: it is empty"):
        history(file)
    with pytest.raises(InputError, match="cannot be written"):
        append(tmp_path / "nowhere" / "h.jsonl", [entry()])


def test_a_full_disk_leaves_what_was_there(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append(file, [entry(0)])
    before = file.read_bytes()
    whole = os.write
    monkeypatch.setattr("timetrial.changes.history.os.write", lambda fd, data: whole(fd, data[:20]))
    with pytest.raises(InputError, match="No space left"):
        append(file, [entry(1)])
    monkeypatch.undo()
    assert file.read_bytes() == before


def test_records_are_not_written_into(run: Run) -> None:
    found = run("backend=fast", "threads=1", "launches=1")
    with pytest.raises(InputError, match="lies in a record"):
        found.export("history", found.path / "history.jsonl")


def test_the_commit_of_the_users_repository(tmp_path: Path) -> None:
    assert commit_of(tmp_path) == {"commit": None, "modified": None}
    (tmp_path / "a").write_text("1")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "a"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    found = commit_of(tmp_path)
    assert len(found["commit"]) == 40
    assert found["modified"] is False
    (tmp_path / "a").write_text("2")
    assert commit_of(tmp_path) == {"commit": found["commit"], "modified": True}


# ---------------------------------------------------------------------------------------------- its figure


def panels_of(entries: list[Entry], file: Path) -> Any:
    pytest.importorskip("matplotlib")
    append(file, entries)
    return history(file).plot().axes


def test_nothing_is_joined_across_machines_or_environments(file: Path) -> None:
    entries = [
        entry(
            number, machine_id="m2" if 2 <= number < 4 else "m1", environment_id="e2" if number >= 6 else "e1"
        )
        for number in range(8)
    ]
    (panel,) = panels_of(entries, file)
    runs = [line for line in panel.lines if len(line.get_xdata()) and line.get_linestyle() == "-"]
    sizes = [len(line.get_xdata()) for line in runs if line.get_marker() == "o"]
    assert sizes == [2, 2, 2, 2]
    breaks = [line for line in panel.lines if line.get_linestyle() == "--"]
    assert len(breaks) == 3
    words = [text.get_text() for text in panel.texts]
    assert words[:2] == ["another machine", "another machine"]


def test_a_panel_for_each_name_and_ratio(file: Path) -> None:
    entries = [entry(n, name=name) for n in range(3) for name in ("a $x$ b$", "b")]
    entries += [entry(n, name="b", against="a", unit="1", estimate=0.5, low=0.4, high=0.6) for n in range(3)]
    entries.append(entry(9, name="b", estimate=None, low=None, high=None, outcome="crash"))
    panels = panels_of(entries, file)
    assert [panel.get_title(loc="left").partition(",")[0] for panel in panels] == ["a $x$ b$", "b", "b"]
    assert panels[2].get_ylabel() == "ratio to\na"
    assert "failed: no number" in [line.get_label() for line in panels[1].lines]


def test_one_point_and_no_interval(file: Path) -> None:
    (panel,) = panels_of([entry(low=None, high=None)], file)
    assert panel.get_ylabel() == "ms"


def test_nothing_to_draw(file: Path) -> None:
    pytest.importorskip("matplotlib")
    append(file, [entry(estimate=None, low=None, high=None, outcome="crash")])
    with pytest.raises(InputError, match="everything in it failed"):
        history(file).plot()


# --------------------------------------------------------------------------------------- the command line


@pytest.mark.parametrize("kind", ["png", "svg", "html"])
def test_the_verb_draws(file: Path, tmp_path: Path, kind: str) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    append(file, [entry(n, name=name) for n in range(3) for name in ("<b>mine</b>", "other $ $")])
    target = tmp_path / f"out.{kind}"
    done = CliRunner().invoke(app, ["history", str(file), "-o", str(target)])
    assert done.exit_code == 0, done.output
    data = target.read_bytes()
    if kind == "png":
        assert data.startswith(b"\x89PNG")
    else:
        assert b"<svg" in data
        assert b"<b>mine" not in data


def test_the_verb_shows_and_chooses(file: Path) -> None:
    append(file, [entry(n, name=name) for n in range(3) for name in ("mine", "other")])
    done = CliRunner().invoke(app, ["history", str(file), "--name", "mi*"])
    assert done.exit_code == 0
    assert "mine" in done.stdout
    assert "other" not in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--name", "nothing*"], "No name in .* fits 'nothing\\*'"),
        (["-o", "x.nonsense"], "expected a name that ends with one of"),
        (["-o", "nowhere/x.png"], "there is no folder"),
    ],
)
def test_bad_input_to_the_verb(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    append(file, [entry()])
    done = CliRunner().invoke(app, ["history", str(file), *words])
    assert done.exit_code == 2

    assert re.search(message, done.stderr)
