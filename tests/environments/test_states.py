"""How things stand: list, check, what breaks later, and what doctor and `timetrial list` say of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_framework import Tiny, timetrial, version_table

from timetrial import environments
from timetrial.environments import Framework, State, Wishes, install, locate, state_of, states, summary
from timetrial.environments.marker import FILE, environment_folder
from timetrial.errors import InputError, Unavailable
from timetrial.experiment import catalog, doctor

MakeInstalled = Callable[[str], Path]


@pytest.fixture
def installed(tiny: Tiny, wheels: Path, quick: str) -> MakeInstalled:
    """Installs a version; its folder."""

    def make(word: str) -> Path:
        install(tiny.framework, tiny.version(word), Wishes(python=quick, wheels=wheels))
        return environment_folder(tiny.framework, tiny.version(word))

    return make


@pytest.fixture
def shipped(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> dict[str, Framework]:
    """As if the package had this framework and no other."""
    found = {"tiny": tiny.framework}
    for module in ("timetrial.environments", "timetrial.contenders.registry"):
        monkeypatch.setattr(f"{module}.shipped_frameworks", lambda: found)
    return found


def state(tiny: Tiny, word: str) -> State:
    return state_of(tiny.framework, tiny.version(word))


def test_every_state(tiny: Tiny, installed: MakeInstalled) -> None:
    tiny.write(
        version_table("2.0", "tinyframe==2.0", more='modes = ["eager", "graph"]')
        + version_table("1.0", "tinyframe==1.0", more='python = ">=3.3,<3.4"')
        + version_table("0.9", "tinyframe==0.9", more='user_path = "a checkout"')
        + version_table("now", more='modules = { timetrial = "timetrial", numpy = "numpy" }\nserves = ">=0"')
    )
    before = state(tiny, "2.0")
    assert (before.state, before.modes, before.size_mb, before.measured) == (
        "available", ("eager", "graph"), 30, False,
    )  # fmt: skip
    assert before.cure == f"timetrial frameworks install {tiny.folder}@2.0"
    installed("2.0")
    after = state(tiny, "2.0")
    assert (after.state, after.measured, after.cure) == ("installed", True, "")
    lacking = state(tiny, "1.0")
    assert lacking.state == "lacking"
    assert "it needs Python >=3.3,<3.4" in lacking.detail
    path = state(tiny, "0.9")
    assert (path.state, path.detail) == ("lacking", "needs a checkout")
    assert "--path FOLDER" in path.cure


def test_the_list_for_people_and_as_json(tiny: Tiny, installed: MakeInstalled) -> None:
    installed("1.0")
    names = (f"{tiny.folder}@2.0", f"{tiny.folder}@1.0")
    found = json.loads(timetrial("list", "--json", *names).stdout)["frameworks"]
    assert [(one["name"], one["state"]) for one in found] == [
        ("tiny@2.0", "available"), ("tiny@1.0", "installed"),
    ]  # fmt: skip
    shown = timetrial("list", *names).stdout
    assert "Tiny" in shown
    assert "● installed" in shown
    assert "○ available" in shown
    assert "next: timetrial frameworks install --cheap" in shown
    everything = timetrial("list")
    assert everything.returncode == 0
    assert "PyTorch" in everything.stdout


def test_check_says_what_broke_and_installing_again_cures_it(
    tiny: Tiny, installed: MakeInstalled, wheels: Path, quick: str
) -> None:
    folder = installed("1.0")
    name = f"{tiny.folder}@1.0"
    assert timetrial("check", name).returncode == 0
    (library,) = folder.glob("lib/python3*/site-packages/tinyframe/libtiny.so")
    library.unlink()
    done = timetrial("check", name, "--json")
    assert done.returncode == 1
    (found,) = json.loads(done.stdout)["frameworks"]
    assert "importing its adapter: OSError" in found["problem"]
    assert "libtiny.so: cannot open shared object file" in found["problem"]
    assert found["cure"] == f"timetrial frameworks install {name}"
    done = timetrial("install", name, "--python", quick, "--wheels", wheels)
    assert "broken, making it anew: importing its adapter" in done.stderr
    assert done.returncode == 0
    assert timetrial("check", name).returncode == 0


def test_what_the_adapter_does_not_import_is_imported_too(tiny: Tiny, installed: MakeInstalled) -> None:
    (tiny.folder / "adapter.py").write_text("class Adapter:\n    def load(self, settings): pass\n")
    folder = installed("1.0")
    (library,) = folder.glob("lib/python3*/site-packages/tinyframe/libtiny.so")
    library.unlink()
    problem = environments.check(tiny.framework, tiny.version("1.0"))
    assert problem is not None
    assert problem.startswith("importing tinyframe: OSError")


def test_an_environment_may_be_there_before_its_adapter(tiny: Tiny, installed: MakeInstalled) -> None:
    (tiny.folder / "adapter.py").unlink()
    installed("1.0")
    assert environments.check(tiny.framework, tiny.version("1.0")) is None


def test_check_sees_a_version_that_is_not_the_pinned_one(tiny: Tiny, installed: MakeInstalled) -> None:
    folder = installed("1.0")
    (information,) = folder.glob("lib/python3*/site-packages/tinyframe-1.0.dist-info")
    metadata = information / "METADATA"
    metadata.write_text(metadata.read_text().replace("Version: 1.0", "Version: 1.5"))
    environments.interpreters.forget()
    problem = environments.check(tiny.framework, tiny.version("1.0"))
    assert problem == "tinyframe==1.0 is pinned, and 1.5 is installed"


def test_check_of_nothing_and_of_what_is_not_installed(tiny: Tiny) -> None:
    done = timetrial("check", f"{tiny.folder}@1.0")
    assert done.returncode == 1
    assert "not installed: timetrial frameworks install" in done.stdout


def test_a_hand_made_environment_counts_and_a_cut_marker_does_not(
    tiny: Tiny, make_python: Callable[..., Path]
) -> None:
    python = make_python()
    folder = environment_folder(tiny.framework, tiny.version("2.0"))
    folder.parent.mkdir()
    shutil.move(python.parents[1], folder)
    (folder / FILE).write_text("{}")
    assert locate(tiny.framework, "2.0", None).found == {"tinyframe": "2.0"}
    assert state(tiny, "2.0").state == "installed"
    (folder / FILE).write_text('{"python": ')
    with pytest.raises(Unavailable, match="not installed"):
        locate(tiny.framework, "2.0", None)


def test_an_environment_whose_interpreter_is_gone(tiny: Tiny, installed: MakeInstalled) -> None:
    folder = installed("1.0")
    (folder / "bin" / "python").unlink()
    with pytest.raises(
        Unavailable, match=r"broken: .*bin/python is gone: timetrial frameworks install .*@1.0"
    ):
        locate(tiny.framework, "1.0", None)
    assert state(tiny, "1.0").state == "broken"


def test_an_adopted_environment_that_is_gone(tiny: Tiny, make_python: Callable[..., Path]) -> None:
    python = make_python()
    install(tiny.framework, tiny.version("2.0"), Wishes(adopt=str(python)))
    assert f"{python}" in state(tiny, "2.0").detail
    shutil.rmtree(python.parents[1])
    found = state(tiny, "2.0")
    assert found.state == "broken"
    assert "--adopt PYTHON" in found.cure


def test_one_line_for_a_framework(
    shipped: dict[str, Framework], installed: MakeInstalled, tiny: Tiny
) -> None:
    none = summary(shipped["tiny"])
    both = f"{tiny.folder}@2.0 {tiny.folder}@1.0"
    assert none.words == f"not installed: 2.0, 1.0 (timetrial frameworks install {both})"
    assert doctor._framework_checks()[-1].cure == "timetrial frameworks install --cheap"
    installed("1.0")
    words = catalog.catalog("backends")["backends"]["tiny"]
    assert words == f"ready: 1.0; not installed: 2.0 (timetrial frameworks install {tiny.folder}@2.0)"
    ready, missing = doctor._framework_checks()
    assert (ready.name, ready.state, ready.detail) == ("framework tiny", "ready", "1.0")
    assert (missing.state, missing.detail) == ("missing", "not installed: tiny@2.0")
    (environment_folder(tiny.framework, tiny.version("1.0")) / "bin" / "python").unlink()
    assert "broken: 1.0: " in summary(shipped["tiny"]).words
    assert doctor._framework_checks()[0].state == "missing"


def test_the_running_interpreter_counts(tiny: Tiny) -> None:
    tiny.write(version_table("1.0", more='modules = { pytest = "pytest" }\nserves = ">=1"'))
    assert summary(tiny.framework).ready == (f"{pytest.__version__} (current)",)
    with pytest.raises(Unavailable, match="not installed"):  # it has pytest, in another version
        locate(tiny.framework, "1.0", None)
    tiny.write(version_table(pytest.__version__, more='modules = { pytest = "pytest" }'))
    assert locate(tiny.framework, pytest.__version__, None).source == "current"
    assert state(tiny, pytest.__version__).state == "current"
    done = install(tiny.framework, tiny.version(pytest.__version__), Wishes())
    assert done.how == "current"
    assert not environment_folder(tiny.framework, tiny.version(pytest.__version__)).exists()


def test_one_that_needs_a_path_is_not_taken_for_current(tiny: Tiny) -> None:
    tiny.write(version_table("own", more='user_path = "a checkout"\nmodules = { numpy = "numpy" }'))
    with pytest.raises(Unavailable, match=r"--path FOLDER \(a checkout\)"):
        locate(tiny.framework, "", None)


def test_an_unknown_version_names_the_known_ones(tiny: Tiny) -> None:
    with pytest.raises(InputError, match=r"tiny has no version '7'; it has 2\.0, 1\.0"):
        locate(tiny.framework, "7", None)


def test_what_can_be_installed_here(tiny: Tiny) -> None:
    tiny.write(
        version_table("2.0", "tinyframe==2.0")
        + version_table("1.0", "tinyframe==1.0", more='python = "<3.4"')
    )
    assert states.can_be_installed(tiny.framework, tiny.version("2.0"))
    assert not states.can_be_installed(tiny.framework, tiny.version("1.0"))
