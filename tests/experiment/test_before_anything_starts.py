"""What can be known beforehand is refused beforehand, by name."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import fakes
import pytest
from fakes import FakeEngine
from typer.testing import CliRunner

from timetrial.cases.case import Case
from timetrial.cases.spec import parse_spec
from timetrial.cli.main import app
from timetrial.errors import InputError
from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import run_experiment
from timetrial.experiment.validate import validate
from timetrial.paths import user_path

pytestmark = pytest.mark.attempt

LONG = "x" * 300


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("HOME", "/root", "HOME lies inside the launch's folder"),
        ("TMPDIR", "/tmp", "TMPDIR lies inside the launch's folder"),
        ("A=B", "1", "'A=B' is no name of an environment variable"),
        ("", "1", "'' is no name"),
        ("A\0", "1", "is no name"),
        ("A", "b\0c", "A is 'b\\\\x00c'; no variable can hold a NUL"),
        ("A", "b" * 140_000, "A has 140002 bytes, 131000 are the most"),
    ],
)
def test_variables_that_no_contender_can_be_given(name: str, value: str, said: str) -> None:
    document = {"name": "x", "environment": {name: value}, "contender": [{"backend": "null"}]}
    with pytest.raises(InputError, match=said):
        parse_spec(document, "x.toml")


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("~nobody-here/x", "there is no user 'nobody-here' here"),
        ("~nobody-here", "there is no user 'nobody-here' here"),
        (LONG, "has 300 bytes: a file's name has 255 at most"),
        ("a/" * 2500, "has 4999 bytes"),
        ("a\0b", "no file can have a NUL"),
        ("\ud800", "no file can have this name"),
    ],
)
def test_paths_that_no_file_can_have(word: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        user_path(word)
    assert user_path("~") == Path.home()


@pytest.mark.parametrize("path", [LONG, "~nobody-here/x"])
@pytest.mark.parametrize(
    "words",
    [
        ["run", "{}"],
        ["run", "{}.toml"],
        ["run", "network={}.toml", "backend=null"],
        ["run", "network=mlp", "backend={}.so"],
        ["run", "network=mlp", "backend={}/adapter"],
        ["run", "network=mlp", "backend=eigen", "dataset=mnist", "dataset_folder={}"],
        ["run", "network=mlp", "backend=cblas", "blas.library={}.so"],
        ["run", "network=mlp", "backend=pytorch", "python={}"],
        ["race", "{}"],
        ["profile", "{}.toml"],
        ["show", "{}"],
        ["self-check", "--resume", "{}"],
        ["frameworks", "install", "caffe@own", "--path", "{}"],
        ["frameworks", "install", "jax", "--wheels", "{}"],
        ["frameworks", "remove", "{}/x"],
    ],
    ids=" ".join,
)
def test_commands_say_so(
    words: list[str], path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, [word.format(path) for word in words])
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    assert not list(tmp_path.iterdir())


def test_a_value_too_many_is_refused_before_cases_are_made() -> None:
    words = ["network=mlp", "backend=eigen,null", "batch_size=" + ",".join(map(str, range(1, 10_002)))]
    with pytest.raises(InputError) as refused:
        load_words(words)
    assert str(refused.value) == (
        "The experiment 'command-line' has 20,002 cases: backend (2) x batch_size (10001). Expected at most "
        "20,000: take values out, or ask for them with most_cases=20002."
    )
    assert len(load_words([*words, "most_cases=20002"]).cases) == 20_002


def test_thousands_of_cases_ask_for_their_contender_once(fake: FakeEngine) -> None:
    """A contender is its backend and its settings: whatever it is given to train, it is looked for once."""
    asked: list[str] = []
    words = ["network=mlp", "backend=fast,slow,absent", "threads=1,2,99"]
    sizes = "batch_size=" + ",".join(map(str, range(1, 1001)))
    experiment = load_words([*words, sizes])

    def resolve(case: Case) -> object:
        asked.append(case.backend)
        return fake.resolve(case)

    ready = validate(experiment.cases, dataclasses.replace(fake.engine(), resolve=resolve))
    assert len(ready) == 9_000
    assert sorted(asked) == sorted(["fast", "slow", "absent"] * 3)
    assert {one.unavailable for one in ready if one.case.backend == "absent"} == {
        "absent needs the module absent: pip install absent",
        next(str(one.unavailable) for one in ready if one.case.settings["threads"] == "99"),
    }
    assert all((one.unavailable is None) == (one.case.settings["threads"] != "99") for one in ready[:6000])


def test_a_network_too_large_for_memory_is_a_row_that_says_so(fake: FakeEngine, results_folder: Path) -> None:
    """On paper the scripted network needs 1,000 bytes for each sample."""
    fake.free_bytes = 64_000
    words = ["network=mlp", "backend=fast", "batch_size=64,65", "launches=1"]
    experiment = load_words(words, load_network=fakes.network)
    fits, large = validate(experiment.cases, fake.engine())
    assert fits.unavailable is None
    assert large.unavailable is not None
    assert "too large for memory: on paper mlp needs at least 0.00 GB" in large.unavailable
    assert "of a batch of 65" in large.unavailable
    assert "Take a smaller batch_size or network" in large.unavailable
    results = run_experiment(experiment, results_folder, quiet=True, engine=fake.engine())
    assert [row.outcome for row in results.rows] == ["ok", "unavailable"]
    assert {plan.case.workload.batch_size for plan in fake.log} == {64}, "nothing of the other was started"


def test_who_computes_nothing_of_the_network_needs_no_memory_of_it(fake: FakeEngine) -> None:
    fake.free_bytes = 1
    engine = fake.engine()
    (case,) = load_words(["network=mlp", "backend=fast"], load_network=fakes.network).cases

    def like(**changes: object) -> str | None:
        found = vars(engine.resolve(case.case)) | changes
        resolved = dataclasses.replace(engine, resolve=lambda _: SimpleNamespace(**found))
        return validate([case], resolved)[0].unavailable

    assert like() is not None
    assert like(flags=("reads_no_data",)) is None
    assert like(kind="callable") is None
