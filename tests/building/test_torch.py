"""The torch to build against is found without importing it; one that will not do is named, with the cure."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from timetrial.building.torch import find_torch
from timetrial.errors import Unavailable

MakeTorch = Callable[..., Path]
FILES = ("include/ATen/core/Tensor.h", "lib/libtorch_cpu.so", "lib/libc10.so")


@pytest.fixture
def fake_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeTorch:
    """Puts a folder `torch` before the real one; it fails when it is imported."""
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.syspath_prepend(tmp_path)

    def make(version: str | None = "2.13.0", files: tuple[str, ...] = FILES) -> Path:
        folder = tmp_path / "torch"
        folder.mkdir()
        (folder / "__init__.py").write_text("raise AssertionError('nobody may import it')\n")
        if version is not None:
            (folder / "version.py").write_text(f"from typing import Optional\n__version__ = '{version}'\n")
        for name in files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).touch()
        return folder

    return make


def test_the_torch_of_this_interpreter_is_found_without_importing_it(fake_torch: MakeTorch) -> None:
    folder = fake_torch("2.14.1+cu130")
    target = find_torch()
    assert (target.name, target.version) == ("torch 2.14.1+cu130", "2.14.1+cu130")
    assert target.library == folder / "lib/libtorch_cpu.so"
    assert target.includes[0] == folder / "include"
    assert f"-Wl,-rpath,{folder}/lib" in target.link
    assert "torch" not in sys.modules


def test_another_file_is_another_identity(fake_torch: MakeTorch) -> None:
    folder = fake_torch()
    first = find_torch().identity()
    assert find_torch().identity() == first
    (folder / "lib/libtorch_cpu.so").write_text("installed anew")
    assert find_torch().identity() != first


@pytest.mark.parametrize(
    ("version", "files", "said"),
    [
        (None, FILES, "does not say its version"),
        ("2.6.0", FILES, "needs torch 2.7 or newer"),
        ("1.13.1", FILES, "has 1.13.1"),
        ("2.13.0", FILES[1:], "without its C++ headers (include/ATen/core/Tensor.h is missing)"),
        ("2.13.0", FILES[:2], "without its C++ libraries (lib/libc10.so is missing)"),
    ],
)
def test_a_torch_that_will_not_do(
    fake_torch: MakeTorch, version: str | None, files: tuple[str, ...], said: str
) -> None:
    folder = fake_torch(version, files)
    with pytest.raises(Unavailable) as raised:
        find_torch()
    assert said in str(raised.value)
    assert str(folder) in str(raised.value)
    assert f"{sys.executable} -m pip install torch==" in str(raised.value)


def test_no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timetrial.building.torch.importlib.util.find_spec", lambda name: None)
    with pytest.raises(Unavailable, match=r"needs torch in .*: .*-m pip install torch=="):
        find_torch()
