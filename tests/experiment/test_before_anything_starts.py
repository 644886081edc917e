"""What can be known beforehand is refused beforehand, by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from timetrial.cli.main import app
from timetrial.errors import InputError
from timetrial.experiment.spec import parse_spec
from timetrial.paths import user_path

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
