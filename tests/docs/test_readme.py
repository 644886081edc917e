"""README fits one screen; what README and pages show can be typed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import fakes
import pytest
from pages import PAGES, README, blocks, commands, mentioned, name_of
from typer.main import get_command

import timetrial
from timetrial.cli.main import app
from timetrial.errors import InputError
from timetrial.experiment.experiment import load_words
from timetrial.exports.formats import check_format

MOST_LINES = 150
WITH_COMMANDS = [page for page in PAGES if "timetrial " in page.read_text(encoding="utf-8")]


def test_readme_fits_one_screen() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def test_readme_has_the_table_that_pages_show() -> None:
    """Pasted from a run once, shown in three places."""
    text = README.read_text(encoding="utf-8")
    table = text.split("<!-- first table -->")[1].split("<!-- end of first table -->")[0]
    assert table.startswith("\n```\nfirst-look · ")
    assert "again: timetrial run first-look seed=1" in table
    pages = [
        page for page in PAGES if ":start-after: <!-- first table -->" in page.read_text(encoding="utf-8")
    ]
    assert len(pages) == 2


@pytest.fixture(scope="module")
def program() -> Any:
    return get_command(app)


def problem(program: Any, line: str, *, whole: bool = True) -> str | None:
    """Why a command line cannot be; None: it can. Nothing is run. `whole`: with all that it needs."""
    found, words = program, shlex.split(line.replace("...", ""))[1:]
    while words and words[0] in getattr(found, "commands", {}):
        found = found.commands[words.pop(0)]
    if getattr(found, "commands", {}):
        known = not words or not words[0].isalpha() or words[0].isupper()
        return None if known else f"there is no command '{words[0]}'"
    if not whole:
        options = {name for one in found.params for name in (*one.opts, *one.secondary_opts)}
        unknown = [word for word in words if word.startswith("--") and word.partition("=")[0] not in options]
        return f"there is no option {unknown[0]}" if unknown else None
    try:
        given = found.make_context(line, words).params
        if found.name in ("run", "race", "profile") and given["words"] and not given.get("resume"):
            _load(given["words"])
        if found.name == "export":
            check_format(given["format"])
    except InputError as error:
        return str(error)
    except Exception as error:  # whichever click typer carries
        return str(getattr(error, "message", None) or error) or type(error).__name__
    return None


def _load(words: list[str]) -> None:
    """Keys and values are checked; files, modules and libraries of others are not."""
    if len(words) == 1 and words[0].startswith((".", "results/")):
        return  # a race, again
    try:
        load_words(words, load_network=lambda _name: fakes.network("lenet5"))
    except InputError as error:
        if "no framework is installed" not in str(error):
            raise


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name_of)
def test_commands_can_be_typed(page: Path, program: Any) -> None:
    text = page.read_text(encoding="utf-8")
    found = {line: problem(program, line) for line in commands(text)}
    found |= {line: problem(program, line, whole=False) for line in mentioned(text)}
    assert {line: why for line, why in found.items() if why is not None} == {}


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("timetrial rum first-look", "no command 'rum'"),
        ("timetrial run first-look --quick", "--quick"),
        ("timetrial run network=mlp treads=1", "treads"),
        ("timetrial race network=mlp backend=eigen,null metric=x", "metric"),
        ("timetrial race --metric speed network=mlp", "speed"),
        ("timetrial export last --format excel", "excel"),
        ("timetrial frameworks instal jax", "instal"),
        ("timetrial run no-such-experiment", "no-such-experiment"),
    ],
)
def test_a_command_that_cannot_be_typed_is_found(program: Any, line: str, word: str) -> None:
    assert word in (problem(program, line) or "")


def test_an_option_in_prose_that_is_not_there_is_found(program: Any) -> None:
    assert problem(program, "timetrial show --json", whole=False) is None
    assert problem(program, "timetrial show --yaml", whole=False) == "there is no option --yaml"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_is_python_and_its_names_exist(page: Path) -> None:
    for code in blocks(page.read_text(encoding="utf-8"), "python"):
        compile(code, name_of(page), "exec")
        assert unknown_names(code) == []


def executed(page: str) -> dict[str, Any]:
    """The names that the first block of Python of a page defines."""
    names: dict[str, Any] = {}
    exec(next(blocks((README.parent / page).read_text(encoding="utf-8"), "python")), names)
    return names


def test_the_two_versions_of_the_first_race_compute_the_same() -> None:
    names = executed("docs/tutorial/first-race.md")
    assert names["make_before"]()() == pytest.approx(names["make_after"]()(), rel=1e-9)


def test_the_step_of_ones_own_learns() -> None:
    names = executed("docs/how-to/own-step.md")
    for step in (names["make_step"](), names["make_smaller"]()):
        first, *_, last = [step() for _ in range(20)]
        assert last < first
        step.reset()
        assert step() == first
        assert step.samples == 256


def test_the_steps_of_what_you_can_race_train() -> None:
    """The blocks of its training.py, one behind the other; what torch.compile makes of one is left out."""
    page = (README.parent / "docs/tutorial/what-you-can-race.md").read_text(encoding="utf-8")
    code = [block for block in blocks(page, "python") if "jax" not in block]
    names: dict[str, Any] = {"__name__": "training"}
    exec("\n".join(code), names)
    for maker in ("make_step", "every_batch", "every_fourth"):
        step = names[maker]()
        losses = [float(step().detach()) for _ in range(24)]
        assert losses[-1] < losses[0], maker
    assert names["eager"]()() is None
    assert names["small_batches"]().samples == names["large_batches"]().samples == 8192
    assert names["Images"]()[13][1] == 3


def unknown_names(code: str) -> list[str]:
    return [name for name in re.findall(r"\btt\.(\w+)", code) if name not in timetrial.__all__]


def test_an_unknown_name_is_found() -> None:
    assert unknown_names("tt.run(x); tt.rase(y)") == ["rase"]


def test_make_targets_exist() -> None:
    makefile = (README.parent / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        asked = re.findall(r"(?:^|`)make ([a-z][a-z-]*)", text, re.MULTILINE)
        assert set(asked) <= targets, name_of(page)
