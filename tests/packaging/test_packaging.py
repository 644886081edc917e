"""The package as a stranger gets it: built from its source distribution, in a clean environment."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from shared import made_once

pytestmark = pytest.mark.full  # the wheel takes minutes to build
ROOT = Path(__file__).parents[2]


def run(*command: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    """Runs to the end and shows everything when it fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


def strangers(home: Path, **more: str) -> dict[str, str]:
    """An environment with nothing of ours but a lock of its own: two tests at once are no two measurements of
    one machine."""
    lock = os.environ["TIMETRIAL_LOCK"]
    return {"PATH": os.environ["PATH"], "HOME": str(home), "TIMETRIAL_LOCK": lock, **more}


@pytest.fixture(scope="module")
def distributions(workers_folder: Path) -> tuple[Path, Path]:
    """(sdist, wheel) of `make dist`; the wheel is built from the unpacked sdist, in isolation."""
    folder = made_once(
        workers_folder / "dist", lambda made: run(sys.executable, ROOT / "tools/dist.py", made)
    )
    (sdist,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def clean_python(distributions: tuple[Path, Path], workers_folder: Path) -> Path:
    """An interpreter whose environment holds the wheel and its dependencies, and the oldest pytest that is
    promised."""

    def make(folder: Path) -> None:
        venv.create(folder, with_pip=True)
        pip = (folder / "bin" / "python", "-m", "pip", "install", "--quiet")
        run(*pip, distributions[1], "pytest==8.0.*")

    return made_once(workers_folder / "clean", make) / "bin" / "python"


def test_sources_are_those_that_git_has(distributions: tuple[Path, Path]) -> None:
    """And nothing of what lies beside them: a virtual environment with a package "cmake" was in it once."""
    with tarfile.open(distributions[0]) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    kept = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).stdout.splitlines()
    assert names - set(kept) == {"PKG-INFO"}
    assert {
        "CMakeLists.txt",
        "cpp/CMakeLists.txt",
        "cmake/Native.cmake",
        "benchmarks/first-look.toml",
    } <= names


def test_wheel_says_for_which_machines_it_is(distributions: tuple[Path, Path]) -> None:
    assert re.search(r"-manylinux_2_\d+_x86_64\.whl$", distributions[1].name)


def test_wheel_brings_its_own_libraries_and_nobody_elses(distributions: tuple[Path, Path]) -> None:
    """A bundled libgomp would be a second pool of threads beside that of oneDNN; a bundled oneDNN or OpenBLAS
    would be one that nobody chose."""
    names = [Path(name).name for name in zipfile.ZipFile(distributions[1]).namelist()]
    shared = {name for name in names if ".so" in name}
    assert {"onednn.so", "eigen-avx512.so", "cblas-sse2.so", "libtimetrial-c.so"} <= shared
    assert not [name for name in shared if re.match(r"lib(gomp|dnnl|openblas|scipy_openblas|stdc)", name)]
    assert "timetrial-child" in names


def test_installed_wheel_needs_no_compiler(clean_python: Path, tmp_path: Path) -> None:
    """Nothing on PATH but the environment's own programs."""
    environment = strangers(tmp_path, PATH=str(clean_python.parent))
    assert shutil.which("g++", path=environment["PATH"]) is None
    words = ["network=mlp", "dataset=synthetic", "backend=eigen,onednn,cblas", "threads=1", "launches=2"]
    done = run(clean_python.parent / "timetrial", "run", *words, "--json", cwd=tmp_path, env=environment)
    cases = {case["axes"]["backend"]: case for case in json.loads(done.stdout)["cases"]}
    assert {name: case["outcome"] for name, case in cases.items()} == dict.fromkeys(cases, "ok")
    assert {case["parity"]["status"] for case in cases.values()} == {"passed"}
    assert cases.keys() == {"eigen", "onednn", "cblas"}


def test_what_is_built_at_first_use_says_that_it_needs_a_compiler(
    clean_python: Path, only_torch: Path, tmp_path: Path
) -> None:
    environment = strangers(tmp_path, PATH=str(clean_python.parent), PYTHONPATH=str(only_torch))
    command = [clean_python.parent / "timetrial", "backends", "build", "libtorch"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode != 0
    assert "g++ is not on PATH" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_installed_wheel_runs_an_experiment(clean_python: Path, tmp_path: Path) -> None:
    command = [
        clean_python.parent / "timetrial",
        "run",
        "network=mlp",
        "dataset=synthetic",
        "backend=null,eigen",
        "--json",
    ]
    done = run(*command, cwd=tmp_path, env=strangers(tmp_path))
    outcomes = {case["axes"]["backend"]: case["outcome"] for case in json.loads(done.stdout)["cases"]}
    assert outcomes == {"null": "ok", "eigen": "ok"}


def test_installed_wheel_knows_the_shipped_experiments(clean_python: Path, tmp_path: Path) -> None:
    done = run(clean_python.parent / "timetrial", "list", cwd=tmp_path)
    assert "first-look" in done.stdout


def test_installed_wheel_is_a_plugin_of_pytest(clean_python: Path) -> None:
    code = "from importlib.metadata import entry_points as e; print(*[o.value for o in e(group='pytest11')])"
    assert "timetrial.testing.plugin" in run(clean_python, "-c", code).stdout.split()


def test_installed_wheel_serves_the_oldest_pytest_that_is_promised(
    clean_python: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text("def make_step():\n    return lambda: sum(range(1000))\n")
    (tmp_path / "test_mine.py").write_text(
        "def test_it(bench):\n"
        "    mine = bench.step('mine:make_step', threads=1)\n"
        "    bench.assert_not_slower(mine, than=mine)\n"
    )
    environment = strangers(tmp_path)
    done = run(clean_python, "-m", "pytest", cwd=tmp_path, env=environment)
    assert "pytest-8.0." in done.stdout
    assert "1 timing assertion not judged (--bench=full judges them)" in done.stdout


def test_installed_wheel_says_what_a_missing_torch_costs(clean_python: Path, tmp_path: Path) -> None:
    environment = strangers(tmp_path)
    done = run(clean_python.parent / "timetrial", "backends", "list", "--json", cwd=tmp_path, env=environment)
    states = {state["name"]: state for state in json.loads(done.stdout)["backends"]}
    assert states["eigen"]["state"] == "ready"
    assert states["libtorch"]["state"] == "unavailable"
    assert f"libtorch needs torch in {clean_python}" in states["libtorch"]["detail"]
    assert "-m pip install torch" in states["libtorch"]["cure"]


@pytest.fixture
def only_torch(tmp_path: Path) -> Path:
    """A folder for PYTHONPATH, with this environment's torch."""
    torch = importlib.util.find_spec("torch")
    assert torch is not None
    assert torch.origin is not None
    folder = tmp_path / "path"
    folder.mkdir()
    (folder / "torch").symlink_to(Path(torch.origin).parent)
    return folder


def test_installed_wheel_brings_what_is_built_at_first_use(
    clean_python: Path, only_torch: Path, tmp_path: Path
) -> None:
    """The sources in the wheel are enough, with this environment's torch."""
    environment = strangers(tmp_path, PYTHONPATH=str(only_torch))
    command = [clean_python.parent / "timetrial", "backends", "build", "libtorch"]
    done = run(*command, cwd=tmp_path, env=environment)
    assert "libtorch: built for torch" in done.stdout
