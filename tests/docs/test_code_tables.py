"""The reference has an entry with words for everything that the code has; a missing one is refused."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import fakes
import pytest
from fakes import FakeEngine
from pages import ROOT

import timetrial
from code_tables import TABLES, TEXTS, commands, python_names
from code_tables.entry import Entry, Table, faults
from timetrial import contenders, environments
from timetrial.cases.case import Case, Workload
from timetrial.cases.keys import EXPERIMENT_KEYS
from timetrial.cases.settings import COMMON_SETTINGS, PROCESS_SETTINGS
from timetrial.errors import TimetrialError
from timetrial.experiment import catalog
from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import run_experiment
from timetrial.records.meaning import RACE_FIELDS
from timetrial.records.metric import Metric
from timetrial.records.model import Outcome
from timetrial.report.titles import PROFILE_TITLES, RUN_TITLES
from timetrial.results.results import Results
from timetrial.workloads import DATASETS, NETWORKS

REFERENCE = ROOT / "docs" / "reference"


@pytest.mark.parametrize("name", TABLES)
def test_every_entry_has_words(name: str) -> None:
    table = TABLES[name]()
    assert table.entries
    assert faults(table) == []


def test_every_table_is_on_a_page() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in REFERENCE.glob("*.md"))
    asked = re.findall(r"^<!-- (?:table|text): (\S+) -->$", text, re.MULTILINE)
    assert sorted(asked) == sorted([*TABLES, *TEXTS])


def known_settings() -> set[str]:
    """Of every backend that comes along, as far as this machine can ask it."""
    known = {*COMMON_SETTINGS, *PROCESS_SETTINGS}
    for name in contenders.native_backends():
        try:
            case = Case(name, Workload("mlp", "synthetic", 1, {}))
            known |= {*contenders.resolve(case, build=False).settings}
        except TimetrialError:
            continue
    for framework in environments.shipped_frameworks().values():
        for version in framework.versions:
            known |= {*version.settings}
    return known


REQUIRED: dict[str, Callable[[], Any]] = {
    "experiment-keys": lambda: {".".join(place) for place in EXPERIMENT_KEYS.values()},
    "settings": known_settings,
    "native-backends": contenders.native_backends,
    "frameworks": environments.shipped_frameworks,
    "networks": lambda: NETWORKS,
    "datasets": lambda: DATASETS,
    "experiments": lambda: catalog.catalog("experiments")["experiments"],
    "metrics": lambda: get_args(Metric),
    "outcomes": lambda: get_args(Outcome),
}


@pytest.mark.parametrize("name", REQUIRED)
def test_nothing_of_the_code_lacks_an_entry(name: str) -> None:
    assert faults(TABLES[name](), REQUIRED[name]()) == []


@pytest.mark.parametrize("name", REQUIRED)
def test_a_missing_entry_is_refused(name: str) -> None:
    table = TABLES[name]()
    gone = sorted(set(REQUIRED[name]()))[0]
    less = dataclasses.replace(table, entries=[one for one in table.entries if one.name != gone])
    assert faults(less, REQUIRED[name]()) == [f"{gone}: no entry"]


def test_an_entry_without_words_and_one_twice_are_refused() -> None:
    table = Table(("name", "words"), [Entry("a", " "), Entry("b", "x"), Entry("b", "y")])
    assert faults(table, ["a", "c"]) == ["a: no description", "b: listed twice", "c: no entry"]


def test_only_settings_that_exist_are_listed() -> None:
    """What no shipped backend has was renamed, or never was; libtorch may not be built here."""
    listed = {one.name for one in TABLES["settings"]().entries}
    assert {one for one in listed - known_settings() if not one.startswith("torch.")} == set()


def paths(value: Any, path: str = "") -> Iterator[str]:
    """Every field of a JSON document; an interval is one, and what is keyed by names of the user's is one."""
    if isinstance(value, Mapping) and value.keys() != {"estimate", "low", "high"} and not _of_the_user(path):
        for key, inner in value.items():
            yield from paths(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value and isinstance(value[0], Mapping):
        yield path
        for inner in value:
            yield from paths(inner, f"{path}[]")
    elif path:
        yield path


def _of_the_user(path: str) -> bool:
    field = path.removeprefix("cases[].").removeprefix("races[].")
    return field in ("axes", "outcomes", "facts", "levels", "other_statistics")


def undescribed(document: Any, table: Table) -> list[str]:
    listed = {one.name.removesuffix("[]") for one in table.entries}
    parents = {name.rpartition("[]")[0] for name in listed}
    return sorted({path for path in paths(document) if path not in listed | parents})


@pytest.fixture
def run(fake: FakeEngine, results_folder: Path) -> Callable[..., Results]:
    """An experiment with scripted contenders."""

    def measured(*words: str) -> Results:
        experiment = load_words(["network=mlp", *words], load_network=fakes.network)
        return run_experiment(experiment, results_folder, quiet=True, engine=fake.engine())

    return measured


def test_every_field_of_a_run(run: Callable[..., Results]) -> None:
    failing = "absent,crashes,mismatched,wrong"
    document = run(f"backend=fast,slow,{failing}", "threads=1", "launches=3", "epochs=12").to_json()
    table = TABLES["json-run"]()
    assert undescribed(document, table) == []
    found = {*paths(document)}
    entries = {one.name.removesuffix("[]") for one in table.entries}
    assert {one for one in entries - found if "accuracy_against" not in one} == set()
    document["cases"][0]["steps"]["p12_ns"] = 1.0
    assert undescribed(document, table) == ["cases[].steps.p12_ns"]


def test_every_field_of_a_race(raced: Callable[..., Any]) -> None:
    table = TABLES["json-race"]()
    two, three = raced("backend=fast,slow").to_json(), raced("backend=fast,slow,other").to_json()
    assert undescribed(two, table) == undescribed(three, table) == []
    found = {*paths(two), *paths(three)}
    against_a_revision = {"origins"}  # tests/race/test_against.py
    assert {one.removesuffix("[]") for one in RACE_FIELDS} - found == against_a_revision
    assert undescribed({**two, "luck": 1}, table) == ["luck"]


def described(title: str, titles: Mapping[str, str]) -> bool:
    """Whether a title is listed, or one that begins or ends so."""
    patterns = [re.escape(one).replace(r"\.\.\.", ".+") for one in titles]
    return any(re.fullmatch(pattern, title) for pattern in patterns)


def test_every_column_of_a_run(run: Callable[..., Results]) -> None:
    results = run("backend=fast,slow,other", "threads=1", "launches=3", "epochs=12", "blas.library=a,b")
    titles = results.table(columns=["cpus"]).titles
    assert {"step", "of peak", "memory", "CPUs", "accuracy"} <= {*titles}
    unlisted = [one for one in titles if not described(one, RUN_TITLES) and one != "blas.library"]
    assert unlisted == []  # an axis in which rows differ is a column of its own
    assert not described("luck", RUN_TITLES)


def test_every_column_of_a_profile() -> None:
    from timetrial.report.profile import _TITLES

    assert [*PROFILE_TITLES] == [*_TITLES]


def lacking(names: list[python_names.Name]) -> list[str]:
    return [one.path for one in names if not one.words.strip()]


def test_every_public_name_is_described() -> None:
    names = python_names.public()
    assert lacking(names) == []
    assert {f"timetrial.{name}" for name in timetrial.__all__} <= {one.path for one in names}


def test_what_public_names_hand_out_is_described() -> None:
    names = python_names.handed_out()
    assert lacking(names) == []
    paths_of = {one.path for one in names}
    assert "timetrial.analysis.summary.Row.step_time_ns" in paths_of
    assert "timetrial.testing.bench.Bench.assert_not_slower" in paths_of


def test_a_name_without_words_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def plain() -> None: ...

    class Plain:
        """With words."""

        field: int

        @property
        def bare(self) -> int:
            return 1

    Plain.__module__ = "timetrial.plain"
    for name, value in {"plain": plain, "Plain": Plain, "PLAIN": 1}.items():
        monkeypatch.setattr(timetrial, name, value, raising=False)
    monkeypatch.setattr(timetrial, "__all__", ["plain", "Plain", "PLAIN"])
    without = ["plain", "Plain.field", "Plain.bare", "PLAIN"]
    assert lacking(python_names.public()) == [f"timetrial.{name}" for name in without]


def test_every_option_is_described() -> None:
    for verb in commands.verbs():
        assert verb.words, verb.name
        assert faults(verb.options) == [], verb.name


def test_exit_codes_of_a_race_are_those_that_it_has() -> None:
    from timetrial.results.race import EXIT_CODES

    [words] = [one.words for one in TABLES["exit-codes"]().entries if one.name == "timetrial race"]
    assert {int(code) for code in re.findall(r"\b\d+\b", words)} == {*EXIT_CODES.values(), 2, 130}


def test_a_cell_is_what_it_says() -> None:
    """Nothing in words is taken for markup, and no bar ends a cell."""
    table = Table(("name", "a", "words"), [Entry("a|b", "x * y <b> [z] `p|q` | r_s", ("",))])
    line = table.markdown("t").splitlines()[-1]
    assert line == r"| `a\|b`{#t-a-b} |  | x \* y \<b\> \[z\] `p\|q` \| r\_s |"
