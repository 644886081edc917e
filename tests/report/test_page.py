"""The page of `timetrial report`: says what the JSON says, and is safe, small and alone."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import fakes
import pytest
from fakes import FakeEngine
from typer.testing import CliRunner

from timetrial.cli.main import app
from timetrial.errors import InputError, Unavailable
from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import profile_experiment, run_experiment
from timetrial.races import Race, RaceInterrupted
from timetrial.records.model import Parity
from timetrial.report.numbers import duration, ratio_words
from timetrial.results.results import Results

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

from timetrial.page import page as page_module
from timetrial.page.page import page, write_report

VOID = {"meta", "br", "link", "img"}
SVG_NAMESPACES = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
Measured = Callable[..., Results]
Raced = Callable[..., Race]


@pytest.fixture
def measure(fake: FakeEngine, results_folder: Path) -> Measured:
    def measure(*words: str) -> Results:
        words = words if any("network=" in word for word in words) else ("network=mlp", *words)
        experiment = load_words(list(words), load_network=fakes.network)
        return run_experiment(experiment, results_folder, quiet=True, engine=fake.engine())

    return measure


class Page(HTMLParser):
    """Tables by class as lines of cells, all text, tags, attributes and ids; tags must match."""

    def __init__(self, html: str):
        super().__init__()
        self.html = html
        self.tables: dict[str, list[list[list[str]]]] = {}
        self.words: list[str] = []
        self.answers: list[str] = []
        self.ids: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self._open: list[tuple[str, str]] = []
        self._table: list[list[str]] = []
        self.feed(html)
        assert not self._open, "every tag is closed"
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.tags.add(tag)
        self.attributes += found.items()
        self.ids += [found["id"]] if "id" in found else []
        if tag not in VOID:
            self._open.append((tag, found.get("class", "")))
        if tag == "table":
            self._table = []
            self.tables.setdefault(found.get("class", ""), []).append(self._table)
        elif tag == "tr":
            self._table.append([])
        elif tag in ("td", "th"):
            self._table[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        within = [tag for tag, _ in self._open]
        if "style" in within:
            return
        self.words.append(data)
        if ("div", "answer") in self._open:
            self.answers.append(data)
        if within and within[-1] in ("td", "th"):
            self._table[-1][-1] += data

    @property
    def answer(self) -> str:
        return " ".join("".join(self.answers).split())


def page_of(*found: Results | Race) -> Page:
    return Page(page([one.folder if isinstance(one, Race) else one.path for one in found]))


def test_says_what_the_json_says(measure: Measured) -> None:
    results = measure(
        "name=look", "backend=slow,fast,other,wrong,crashes,absent", "threads=1,2", "launches=6", "epochs=12"
    )
    shown = page_of(results)
    (titles, *lines), cases = shown.tables["cases"][0], results.to_json()["cases"]
    assert titles[:4] == ["backend", "threads", "step", "vs slow"]
    assert len(lines) == len(cases)
    for line, case in zip(lines, cases, strict=True):
        assert line[:2] == [case["axes"]["backend"], str(case["axes"]["threads"])]
        if case["outcome"] != "ok":
            assert line[2] == "-"
            assert line[3].startswith(f"{case['outcome']}: ")
            assert case["warnings"][0].splitlines()[0] in line[3]
            continue
        assert line[2].startswith(f"{duration(case['step_time_ns']['estimate'])} ")
        if case["reference"] == case["id"]:
            assert line[3] == "reference"
        else:
            row = next(row for row in results.rows if row.case.id == case["id"])
            assert row.ratio is not None
            assert row.ratio.estimate == case["ratio"]["estimate"]
            assert line[3] == ratio_words(row.ratio)
        assert line[titles.index("alike")] == case["alike"]
    for row, line in zip(results.rows, shown.tables["facts"][0][1:], strict=True):
        if row.step_time_ns is not None:
            low, high = row.step_time_ns.low, row.step_time_ns.high
            assert low is not None
            assert high is not None
            assert f"[{duration(low)}, {duration(high)}]" in line[1]
    settings = {(line[0], line[1], line[2]) for line in shown.tables["settings"][0][1:]}
    asked = {(one["name"], one["asked"], one["effective"]) for case in cases for one in case["settings"]}
    assert settings == asked
    for heading in ("Results", "Figures", "How steady", "How proven", "What failed", "Environment"):
        assert heading in shown.text
    assert results.experiment.again in shown.text
    assert "Test CPU" in shown.text
    assert shown.html.count("<svg") == 2, "step times and learning"
    assert shown.html.count("Traceback: much more") >= 2, "reasons as a whole"


def test_it_is_alone_small_and_whole(measure: Measured) -> None:
    results = measure("backend=slow,fast", "threads=1", "launches=3", "epochs=12")
    other = measure("backend=slow,fast", "threads=1", "launches=3", "epochs=12", "seed=2")
    shown = page_of(results, other)
    assert not shown.tags & {"script", "link", "iframe", "img", "object", "base", "form"}
    assert set(re.findall(r"https?://[^\"'\s<)]+", shown.html)) <= SVG_NAMESPACES
    assert "@import" not in shown.html
    assert "javascript:" not in shown.html
    assert not [name for name, _ in shown.attributes if name.startswith("on")]
    assert len(shown.ids) == len(set(shown.ids))
    for name, value in shown.attributes:
        if name in ("href", "xlink:href"):
            assert value.startswith(("#", "data:image/png;base64,"))
            assert not value.startswith("#") or value[1:] in shown.ids
    assert set(re.findall(r"url\(#([^)]+)\)", shown.html)) <= set(shown.ids)
    assert page([results.path]) == page([results.path]), "the same records make the same page"


def test_forty_rows_take_less_than_two_megabytes(measure: Measured, fake: FakeEngine) -> None:
    fake.plain = lambda step: [int(step * (1 + 0.01 * (n % 97))) for n in range(2000)]
    backends = ",".join(["slow", "fast", "other", "chancy"] * 10)
    results = measure(f"backend={backends}", "threads=1", "launches=3")
    assert len(results.rows) == 40
    shown = page_of(results)
    assert len(shown.tables["cases"][0]) == 41
    assert "<svg" in shown.html
    assert len(shown.html.encode()) < 2_000_000


HOSTILE = "<b>&,\"'$x$ `code` [red]</script>"


def test_names_are_text(measure: Measured) -> None:
    results = measure("backend=slow,fast", "threads=1", "launches=3")
    rename(results.path, HOSTILE)
    shown = page_of(Results(results.path))
    assert HOSTILE in shown.text.replace(" ` ", "`")
    assert "b" not in shown.tags
    assert shown.tables["cases"][0][2][0] == HOSTILE
    assert "<b>" not in shown.html
    assert "$x$" in shown.html[shown.html.index("<svg") : shown.html.index("</svg")], "a name is no formula"


def rename(folder: Path, name: str) -> None:
    """The experiment and the contender fast."""
    file = folder / "experiment.json"
    document = json.loads(file.read_text())
    document |= {"name": name, "question": name, "again": name}
    document["cases"][1]["called"] = name
    document["machine"]["cpu"] = name
    file.write_text(json.dumps(document))


def test_answers_of_runs(measure: Measured, fake: FakeEngine) -> None:
    three = page_of(measure("backend=slow,fast,other", "threads=1", "launches=6"))
    assert re.fullmatch(
        r"fast is the fastest of 3, 10\d us ±.* %: [\d.]+x faster \[.*\] than slow\.", three.answer
    )
    reference = page_of(measure("backend=fast,slow,other", "threads=1", "launches=6"))
    assert re.search(r"^fast is the fastest of 3, .*; the next is other, [\d.]+x slower \[", reference.answer)
    two = page_of(measure("backend=slow,fast,crashes", "threads=1", "launches=6"))
    assert two.answer.startswith("fast is the fastest of 2, ")
    assert two.answer.endswith("Without a step time: 1 crash.")
    nothing = page_of(measure("backend=crashes,hangs,absent", "threads=1", "launches=2"))
    assert nothing.answer == "Nothing could be measured: 1 crash, 1 hang, 1 unavailable."
    once = page_of(measure("backend=slow,fast", "threads=1", "launches=1"))
    assert once.answer.startswith("Which of 2 is the fastest cannot be told: too few launches.")
    alone = page_of(measure("backend=fast", "threads=1", "launches=3"))
    assert alone.answer.endswith("there is nothing to compare it with.")
    tasks = page_of(measure("backend=slow,fast,other", "task=train,forward", "threads=1", "launches=6"))
    assert tasks.answer.count("fast is the fastest of 3") == 2
    assert "mlp, digits28, batch 64, forward: " in tasks.answer


@pytest.mark.parametrize("backends", ["fast,chancy", "fast,chancy,blind", "slow,fast,chancy"])
def test_what_cannot_be_told_apart_is_said(measure: Measured, fake: FakeEngine, backends: str) -> None:
    """All but slow have the same step, but for noise."""
    fake.factor = lambda plan: 1 + 0.02 * ((7 * plan.block + 5 * len(plan.case.backend)) % 5)
    results = measure(f"backend={backends}", "threads=1", "launches=6")
    answer = page_of(results).answer
    assert "is the fastest" not in answer
    assert re.search(r"has the shortest step of \d, .*, but cannot be told apart from (fast|chancy)", answer)


def test_unproven_rows_are_not_called_equal_work(measure: Measured, fake: FakeEngine) -> None:
    fake.parity = {"fast": Parity(status="unproven", reason="it shows no tensors")}
    answer = page_of(measure("backend=slow,fast,other", "threads=1", "launches=6")).answer
    assert "is the fastest" not in answer
    assert answer.startswith("fast has the shortest step of 3, ")
    assert answer.endswith("That they do equal work is not shown (not proven: fast).")


def test_a_race(raced: Raced) -> None:
    found = raced("backend=fast,slow,other")
    shown, document = page_of(found), found.to_json()
    (_, base, *others) = shown.tables["race"][0]
    assert base[:2] == ["base", "fast"]
    levels = document["levels"]
    for line in (base, *others):
        assert line[2].startswith(duration(levels[line[1]]["estimate"]))
    for line, duel, said in zip(others, found.duels, document["races"], strict=True):
        assert said["verdict"] == "worse"
        assert line[1] == said["challenger"]
        assert line[4] == f"{said['pairs']} pairs and 4 to confirm"
        assert duel.effect is not None
        percent = 100 * said["effect"]["estimate"]
        slower = f"{1 + percent / 100:.2f}x slower" if percent > 50 else f"{percent:.1f} % slower"
        assert line[3].startswith(slower)
        assert f"{line[1]} against fast: {line[3]}." in shown.answer
    assert "<svg" in shown.html
    assert "confirmed by an independent second race" in shown.text
    assert "Does the step time differ from that of fast?" in shown.text


def test_a_race_that_nothing_came_of(raced: Raced, fake: FakeEngine) -> None:
    crashed = page_of(raced("backend=fast,crashes"))
    assert "crashes against fast: not judged: " in crashed.answer
    assert "What failed" in crashed.text

    def interrupt(plan: Any) -> None:
        if plan.purpose == "race":
            raise KeyboardInterrupt

    fake.before = interrupt
    with pytest.raises(RaceInterrupted) as stopped:
        raced("backend=fast,slow")
    shown = page_of(stopped.value.race)
    assert "not judged: interrupted" in shown.answer
    assert "unfinished: timetrial race --resume" in shown.text
    assert "<svg" not in shown.html


def test_an_unproven_race(raced: Raced, fake: FakeEngine) -> None:
    fake.parity = {"slow": Parity(status="unproven", reason="it shows no tensors")}
    shown = page_of(raced("backend=fast,slow"))
    assert shown.answer.endswith("That they do equal work is not shown.")
    assert "it shows no tensors" in shown.text


def test_a_profile(fake: FakeEngine, results_folder: Path) -> None:
    words = ["network=mlp", "backend=fast,other", "threads=1"]
    experiment = load_words(words, load_network=fakes.network)
    found = profile_experiment(experiment, results_folder, quiet=True, engine=fake.engine())
    shown = Page(page([found.path]))
    assert "Where the time goes" in shown.text
    assert "plain step" in shown.text


def test_several_results(measure: Measured, raced: Raced) -> None:
    first = measure("name=first", "backend=slow,fast", "threads=1", "malloc=keep", "launches=3")
    second = measure("name=second", "backend=fast,other", "threads=1", "malloc=keep", "launches=3")
    race = raced("backend=fast,slow", "threads=1")
    shown = page_of(first, second, race)
    assert [one for one in shown.ids if re.fullmatch(r"r\d", one)] == ["r1", "r2", "r3"]
    assert {"#r1", "#r2", "#r3"} <= {value for name, value in shown.attributes if name == "href"}
    assert "3 results" in shown.text
    titles, *lines = shown.tables["over-time"][0]
    assert len(titles) == 4
    assert [line[0] for line in lines] == ["slow", "fast"], "cases that several have"
    for results in (first, second):
        column = next(n for n, title in enumerate(titles) if results.experiment.id in title)
        cases = {case["axes"]["backend"]: case for case in results.to_json()["cases"]}
        for line in lines:
            if line[0] in cases:
                assert line[column].startswith(duration(cases[line[0]]["step_time_ns"]["estimate"]))
            else:
                assert line[column] == ""
    assert "is not a comparison" in shown.text


def test_two_machines_are_never_compared(measure: Measured) -> None:
    here = measure("backend=slow,fast", "threads=1", "launches=3")
    there = measure("backend=slow,fast", "threads=1", "launches=3", "seed=2")
    file = there.path / "experiment.json"
    file.write_text(file.read_text().replace("Test CPU", "Quick CPU"))
    shown = page_of(here, Results(there.path))
    assert "These results are of 2 machines. Times of different machines are not compared." in shown.text
    assert "Quick CPU, 2 of 2 CPUs" in shown.text
    assert "over-time" not in shown.tables


def test_damaged_records(measure: Measured, tmp_path: Path) -> None:
    results = measure("backend=slow,fast", "threads=1", "launches=3")
    broken = tmp_path / "results" / "broken"
    shutil.copytree(results.path, broken)
    (broken / "experiment.json").write_text('{"schema_version": 1, "id"')
    launch = sorted(results.path.glob("launches/*/stamps.bin"))[0]
    launch.write_bytes(b"")
    shown = Page(page([broken, results.path]))
    assert "This record cannot be read." in shown.answer
    assert "is damaged (truncated?)" in shown.answer
    assert "has 0 bytes" in shown.text
    assert "damaged" in {line[1] for line in shown.tables["failed"][0]}


def test_an_unfinished_run(measure: Measured) -> None:
    results = measure("backend=slow,fast", "threads=1", "launches=3")
    (results.path / "unfinished").touch()
    shutil.rmtree(results.path / "launches" / "001")
    shown = page_of(Results(results.path))
    assert "unfinished: timetrial run --resume" in shown.text
    for part in ("launches", "proof"):
        shutil.rmtree(results.path / part)
    begun = page_of(Results(results.path))
    assert begun.answer == "Nothing could be measured: 2 not measured."
    assert "unfinished: timetrial run --resume" in begun.text


def test_the_command(measure: Measured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = measure("backend=slow,fast", "threads=1", "launches=3")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["report", "last", results.path.name, "--title", "Mine"])
    assert done.exit_code == 0, done.output
    assert done.stdout == "report.html\n"
    shown = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert shown.html.count("<section") == 1, "the same record stands in it once"
    assert shown.text.startswith("Mine ")
    assert list(tmp_path.glob("tmp*")) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nothing",), "There are no records at 'nothing'"),
        (("last", "-o", "nowhere/report.html"), "there is no folder"),
        (("last", "-o", "."), "which is a folder"),
        (("last", "-o", "/dev/null"), "which is no file"),
    ],
)
def test_bad_input(
    measure: Measured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    measure("backend=fast", "threads=1", "launches=2")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(page_module, "page", lambda *_: pytest.fail("something was computed"))
    done = CliRunner().invoke(app, ["report", *words])
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "report.html").exists()


def test_an_older_page_stays_where_none_can_be_made(
    measure: Measured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = measure("backend=fast", "threads=1", "launches=2")
    output = tmp_path / "report.html"
    output.write_text("older")
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    with pytest.raises(Unavailable, match=r"pip install 'timetrial\[report\]'"):
        write_report([results.path], output)
    with pytest.raises(InputError, match="no records"):
        write_report([tmp_path / "none"], output)
    assert output.read_text() == "older"


def test_on_a_phone_facts_say_what_they_are(measure: Measured) -> None:
    """There a line of them is a list; each cell brings the title of its column."""
    found = page_of(measure("backend=fast,slow", "launches=3"))
    tables = found.tables["facts"]
    assert tables
    said = [value for name, value in found.attributes if name == "data-title"]
    assert said == [title for titles, *lines in tables for _ in lines for title in titles[1:]]
    assert "@media (max-width: 48rem)" in found.html


def test_lines_of_a_race_have_all_cells(raced: Raced) -> None:
    (table,) = page_of(raced("backend=fast,slow")).tables["race"]
    assert len({len(line) for line in table}) == 1
