"""Installing: from wheels, twice, at once, interrupted, and everything that can be in the way."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_framework import EXITS, Tiny, command, timetrial, version_table

from timetrial.environments import Wishes, install, locate, needs, remove, state_of
from timetrial.environments.marker import FILE, environment_folder, read_marker
from timetrial.errors import InputError, Unavailable


def folder_of(tiny: Tiny, word: str) -> Path:
    return environment_folder(tiny.framework, tiny.version(word))


def wait_for(what: Callable[[], bool]) -> None:
    for _ in range(600):
        if what():
            return
        time.sleep(0.05)
    raise AssertionError("it never came")


def test_two_versions_side_by_side(tiny: Tiny, wheels: Path, quick: str) -> None:
    heard: list[str] = []
    for word in ("1.0", "2.0"):
        wishes = Wishes(python=quick, wheels=wheels, say=heard.append)
        done = install(tiny.framework, tiny.version(word), wishes)
        assert done.how == "made"
        located = locate(tiny.framework, word, None)
        assert located.found == {"tinyframe": word}
        assert located.source == "installed"
        marker = read_marker(folder_of(tiny, word))
        assert marker is not None
        assert marker.pins == (f"tinyframe=={word}", "numpy==1.0")
        assert marker.installed["tinyframe"] == word
        assert marker.size_mb > 0
        assert not marker.adopted
    assert any("tinyframe" in words for words in heard)
    assert heard[-1] == "checking"
    assert not list(folder_of(tiny, "1.0").glob(".scratch"))
    assert install(tiny.framework, tiny.version("1.0"), Wishes()).how == "was there"
    assert locate(tiny.framework, "", None).version.version == "2.0"
    assert remove(tiny.framework, tiny.version("2.0")) == "removed"
    assert not folder_of(tiny, "2.0").exists()
    assert locate(tiny.framework, "", None).version.version == "1.0"


@pytest.mark.attempt
@pytest.mark.parametrize(
    "said", ['{"python": ["a"]}', '{"pins": 1}', '{"size_mb": "much"}', "[]", "1", '"\\ud800"', "[" * 9000]
)
def test_a_marker_that_says_something_else_is_none(tmp_path: Path, said: str) -> None:
    (tmp_path / FILE).write_text(said)
    assert read_marker(tmp_path) is None


def test_pip_is_brought_first_and_changed_pins_make_it_anew(tiny: Tiny, wheels: Path, quick: str) -> None:
    (pip,) = wheels.glob("pip-*.whl")
    wanted = pip.name.split("-")[1]
    tiny.write(version_table("1.0", "tinyframe==1.0", more=f'pip = "{wanted}"'))
    install(tiny.framework, tiny.version("1.0"), Wishes(python=quick, wheels=wheels))
    log = folder_of(tiny, "1.0").parent / "logs" / f"{folder_of(tiny, '1.0').name}.log"
    said = log.read_text()
    assert said.index(
        f"install --no-input --progress-bar off --no-index --find-links {wheels} pip=={wanted}"
    ) < (said.index("tinyframe==1.0"))
    tiny.write(version_table("1.0", "tinyframe==2.0"))
    heard: list[str] = []
    done = install(tiny.framework, tiny.version("1.0"), Wishes(wheels=wheels, say=heard.append))
    assert done.how == "made"
    assert heard[0] == "its pins have changed: making it anew"


@pytest.mark.attempt
def test_a_pin_that_does_not_exist_is_named(tiny: Tiny, wheels: Path, quick: str) -> None:
    tiny.write(version_table("9.9", "tinyframe==9.9"))
    done = timetrial("install", tiny.folder, "--python", quick, "--wheels", wheels)
    assert done.returncode == 1
    assert "the pin tinyframe==9.9 does not exist" in done.stdout
    assert "has only 1.0, 2.0, 3.0 for Python 3" in done.stdout
    log = Path(done.stdout.split("all that pip said: ")[1].strip().rstrip(")"))
    assert "tinyframe==9.9" in log.read_text()
    assert not folder_of(tiny, "9.9").exists()


@pytest.mark.attempt
def test_without_network_it_says_so_and_names_the_way_out(tiny: Tiny, quick: str) -> None:
    nowhere = {
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": "",
        "PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "1", "PIP_NO_INDEX": "0",
    }  # fmt: skip
    done = timetrial("install", f"{tiny.folder}@1.0", "--python", quick, **nowhere)
    assert done.returncode == 1
    assert "the package index cannot be reached" in done.stdout
    assert "--wheels FOLDER" in done.stdout


@pytest.mark.attempt
def test_an_interpreter_that_is_too_new(tiny: Tiny, wheels: Path) -> None:
    tiny.write(version_table("1.0", "tinyframe==1.0", more='python = ">=3.6,<3.8"'))
    done = timetrial("install", tiny.folder, "--python", shutil.which("python3"), "--wheels", wheels)
    assert done.returncode == 2
    assert "it is Python 3." in done.stderr
    assert "the packages exist for >=3.6,<3.8" in done.stderr
    tiny.write(version_table("1.0", "tinyframe==1.0", more='python = ">=3.3,<3.4"'))
    done = timetrial("install", tiny.folder)
    assert done.returncode == 1
    assert "it needs Python >=3.3,<3.4, and this machine has 3." in done.stdout
    assert "install a Python >=3.3,<3.4" in done.stdout


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("system", "said"),
    [
        ("no-such-compiler", "it needs no-such-compiler, which this machine does not have"),
        ("libnothing.so.7:libnothing7", "sudo apt install libnothing7"),
    ],
)
def test_what_pip_cannot_bring(tiny: Tiny, wheels: Path, system: str, said: str, quick: str) -> None:
    tiny.write(version_table("1.0", "tinyframe==1.0", more=f'system = ["sh", "libc.so.6", "{system}"]'))
    with pytest.raises(Unavailable, match=said):
        install(tiny.framework, tiny.version("1.0"), Wishes(python=quick, wheels=wheels))
    state = state_of(tiny.framework, tiny.version("1.0"))
    assert state.state == "lacking"
    assert system.partition(":")[0] in state.detail


@pytest.mark.attempt
def test_no_room_on_the_disk(tiny: Tiny, wheels: Path, monkeypatch: pytest.MonkeyPatch, quick: str) -> None:
    usage = shutil.disk_usage("/")._replace(free=100_000_000)
    monkeypatch.setattr(needs.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(Unavailable, match=r"it needs about 0\.2 GB in .*, and 0\.1 GB are free: make room"):
        install(tiny.framework, tiny.version("1.0"), Wishes(python=quick, wheels=wheels))
    assert not folder_of(tiny, "1.0").exists()


@pytest.mark.attempt
def test_one_that_does_not_start_is_not_installed(tiny: Tiny, wheels: Path, quick: str) -> None:
    tiny.write(version_table("3.0", "tinyframe==3.0"))
    assert "_exit(3)" in EXITS
    with pytest.raises(
        Unavailable, match="importing its adapter ended the process with status 3: no licence"
    ):
        install(tiny.framework, tiny.version("3.0"), Wishes(python=quick, wheels=wheels))
    assert not folder_of(tiny, "3.0").exists()
    with pytest.raises(Unavailable, match="not installed: timetrial frameworks install"):
        locate(tiny.framework, "3.0", None)


@pytest.mark.attempt
def test_interrupted_it_leaves_nothing(tiny: Tiny, slow_python: Path, tmp_path: Path) -> None:
    words = command("install", f"{tiny.folder}@1.0", "--python", slow_python)
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for((tmp_path / "started").exists)
    assert folder_of(tiny, "1.0").is_dir()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in out + err
    assert "interrupted: nothing half-made is left" in out
    assert not folder_of(tiny, "1.0").exists()
    assert not Path(f"/proc/{(tmp_path / 'started').read_text().strip()}").exists()


@pytest.mark.attempt
def test_a_half_made_one_is_never_used_and_makes_way(
    tiny: Tiny, slow_python: Path, wheels: Path, tmp_path: Path, quick: str
) -> None:
    words = command("install", f"{tiny.folder}@1.0", "--python", slow_python)
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for((tmp_path / "started").exists)
    process.kill()
    process.wait()
    half = folder_of(tiny, "1.0")
    assert half.is_dir()
    with pytest.raises(Unavailable, match="not installed"):
        locate(tiny.framework, "1.0", None)
    (half / "rubbish").touch()
    started = Path(f"/proc/{(tmp_path / 'started').read_text().strip()}")
    wait_for(lambda: not started.exists())  # what the killed process had started ends with it
    again = command("install", f"{tiny.folder}@1.0", "--python", quick, "--wheels", wheels)
    second = subprocess.run(again, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert second.returncode == 0, second.stderr
    assert not (half / "rubbish").exists()
    assert locate(tiny.framework, "1.0", None).found == {"tinyframe": "1.0"}


@pytest.mark.attempt
def test_two_at_once_make_it_once(tiny: Tiny, wheels: Path, quick: str) -> None:
    words = command("install", f"{tiny.folder}@1.0", "--python", quick, "--wheels", wheels)
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in "12"]
    said = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted("installed" in out for out, _ in said) == [False, True]
    assert sorted("is there" in out for out, _ in said) == [False, True]
    assert sum("waiting: another process" in err for _, err in said) == 1


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "which? Name frameworks"),
        (("tensorflwo",), "no framework is called 'tensorflwo'"),
        (("pytorch@0.1",), "pytorch has no version '0.1'; it has 2.13.0"),
        (("/no/such/folder",), "the folder has no environment.toml"),
        (("pytorch", "--wheels", "/no/such/folder"), "--wheels /no/such/folder: there is no such folder"),
        (("pytorch", "--python", "/no/python"), "there is no such interpreter"),
        (("pytorch", "--adopt", "python3", "--wheels", "/"), "--python and --wheels do not apply"),
        (("pytorch", "--path", "/"), "comes from packages and needs no folder of yours"),
    ],
)
def test_bad_input(words: tuple[str, ...], said: str) -> None:
    done = timetrial("install", *words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_path_belongs_to_one_framework(tiny: Tiny) -> None:
    done = timetrial("install", f"{tiny.folder}@1.0", f"{tiny.folder}@2.0", "--path", "/")
    assert done.returncode == 2
    assert "--adopt and --path belong to one framework" in done.stderr


def test_adopted_and_forgotten(tiny: Tiny, make_python: Callable[..., Path]) -> None:
    python = make_python("tinyframe_cpu-2.0")  # the module from a distribution of another name
    done = timetrial("install", f"{tiny.folder}@2.0", "--adopt", python)
    assert done.returncode == 0, done.stdout + done.stderr
    marker = json.loads((folder_of(tiny, "2.0") / FILE).read_text())
    assert (marker["adopted"], marker["python"]) == (True, str(python))
    located = locate(tiny.framework, "2.0", None)
    assert (located.interpreter.executable, located.found) == (python, {"tinyframe": "2.0"})
    done = timetrial("remove", f"{tiny.folder}@2.0")
    assert "is untouched" in done.stdout
    assert python.is_file()
    assert not folder_of(tiny, "2.0").exists()


@pytest.mark.attempt
def test_an_environment_without_numpy_is_not_adopted(tiny: Tiny, make_python: Callable[..., Path]) -> None:
    python = make_python(numpy=False)
    done = timetrial("install", f"{tiny.folder}@2.0", "--adopt", python)
    assert done.returncode == 1
    assert (
        f"{python} has no module numpy, which a contender needs: {python} -m pip install numpy" in done.stdout
    )
    assert not folder_of(tiny, "2.0").exists()


def test_adopting_replaces_nothing_that_was_installed(
    tiny: Tiny, wheels: Path, quick: str, make_python: Callable[..., Path]
) -> None:
    install(tiny.framework, tiny.version("2.0"), Wishes(python=quick, wheels=wheels))
    with pytest.raises(InputError, match="is installed already; first: timetrial frameworks remove"):
        install(tiny.framework, tiny.version("2.0"), Wishes(adopt=str(make_python())))
    python = folder_of(tiny, "2.0") / "bin" / "python"
    with pytest.raises(InputError, match="it is timetrial's own already"):
        install(tiny.framework, tiny.version("2.0"), Wishes(adopt=str(python)))
    assert locate(tiny.framework, "2.0", None).source == "installed"


@pytest.mark.attempt
def test_an_environment_of_another_version_is_not_adopted(
    tiny: Tiny, make_python: Callable[..., Path]
) -> None:
    with pytest.raises(Unavailable, match=r"has tinyframe 2\.0, and the adapter drives 1\.0"):
        install(tiny.framework, tiny.version("1.0"), Wishes(adopt=str(make_python())))


def test_one_that_needs_a_folder_of_the_users(tiny: Tiny, wheels: Path, tmp_path: Path, quick: str) -> None:
    own = tmp_path / "checkout"
    (own / "inner").mkdir(parents=True)
    (own / "inner" / "mine.py").touch()
    tiny.write(
        version_table(
            "own",
            "tinyframe==1.0",
            more='user_path = "a checkout"\nmodules = { mine = "mine", tinyframe = "tinyframe" }\n'
            'environment = { PYTHONPATH = "{path}/inner" }',
        )
    )
    version = tiny.version("own")
    with pytest.raises(Unavailable, match=r"it needs a checkout: .* --path FOLDER"):
        install(tiny.framework, version, Wishes(python=quick, wheels=wheels))
    assert install(tiny.framework, version, Wishes(python=quick, wheels=wheels, path=own)).how == "made"
    marker = read_marker(folder_of(tiny, "own"))
    assert marker is not None
    assert marker.path == str(own)
    shutil.rmtree(own)
    with pytest.raises(Unavailable, match=r"broken: .*checkout is gone: timetrial frameworks install"):
        locate(tiny.framework, "own", None)


@pytest.mark.attempt
def test_wishes_contradict(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--adopt takes an environment as it is"):
        Wishes(adopt="python3", python="python3")
