"""Wheels, a framework, interpreters of the user's; every test has environments of its own."""

from __future__ import annotations

import ensurepip
import sysconfig
import venv
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tiny_framework import ADAPTER, EXITS, MODULE, TWO_VERSIONS, WRAPPED, Tiny, build_wheel

from timetrial.core import native
from timetrial.environments import interpreters


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """tinyframe 1.0, 2.0, 3.0 (which ends the process), tinyframe-cpu, an empty NumPy, Python's pip."""
    folder = tmp_path_factory.mktemp("wheels")
    library = (native.native_dir() / "backends" / "null.so").read_bytes()
    for name, version in (("tinyframe", "1.0"), ("tinyframe", "2.0"), ("tinyframe-cpu", "2.0")):
        files = {
            "tinyframe/__init__.py": MODULE.format(version=version).encode(),
            "tinyframe/libtiny.so": library,
        }
        build_wheel(folder, name, version, files)
    build_wheel(folder, "numpy", "1.0", {"numpy/__init__.py": b""})
    build_wheel(folder, "tinyframe", "3.0", {"tinyframe/__init__.py": EXITS.encode()})
    # Where Python keeps it, or where a distribution like Debian says that it does.
    shared = sysconfig.get_config_var("WHEEL_PKG_DIR") or "/usr/share/python-wheels"
    (pip, *_) = (
        wheel
        for folder in (Path(ensurepip.__file__).parent / "_bundled", Path(shared))
        for wheel in folder.glob("pip-*.whl")
    )
    (folder / pip.name).write_bytes(pip.read_bytes())
    return folder


@pytest.fixture(autouse=True)
def own_environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Environments of the test's own."""
    folder = tmp_path / "environments"
    monkeypatch.setenv("TIMETRIAL_ENVIRONMENTS", str(folder))
    interpreters.forget()
    yield folder
    interpreters.forget()


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    """Versions 2.0 (the default) and 1.0."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "adapter.py").write_text(ADAPTER)
    made = Tiny(folder)
    made.write(TWO_VERSIONS)
    return made


@pytest.fixture
def make_python(tmp_path: Path, wheels: Path) -> Callable[..., Path]:
    """An environment of the user's: the wheel unpacked by hand, and perhaps NumPy."""

    def make(wheel: str = "tinyframe-2.0", *, numpy: bool = True) -> Path:
        folder = tmp_path / "users"
        venv.create(folder)
        (site,) = folder.glob("lib/python3*/site-packages")
        (found,) = wheels.glob(f"{wheel}-*.whl")
        zipfile.ZipFile(found).extractall(site)
        if numpy:
            (site / "numpy").mkdir()
            (site / "numpy" / "__init__.py").write_text('__version__ = "1.0"\n')
        return folder / "bin" / "python"

    return make


@pytest.fixture
def slow_python(tmp_path: Path, template: Path) -> Path:
    """An interpreter whose virtual environments never get finished."""
    path = tmp_path / "slow-python"
    started = tmp_path / "started"  # at its place when it is whole: who waits for it reads it at once
    make = f"mkdir -p $last/bin; echo $$ > {started}.new; mv {started}.new {started}; exec sleep 60"
    path.write_text(WRAPPED.format(real=template / "bin" / "python", make=make))
    path.chmod(0o755)
    return path


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with pip, to be copied: making one takes seconds."""
    folder = tmp_path_factory.mktemp("template") / "environment"
    venv.create(folder, with_pip=True)
    return folder


@pytest.fixture(scope="session")
def quick(template: Path) -> str:
    """An interpreter that makes virtual environments by copying one."""
    path = template.parent / "quick-python"
    path.write_text(WRAPPED.format(real=template / "bin" / "python", make=f"cp -a {template}/. $last"))
    path.chmod(0o755)
    return str(path)
