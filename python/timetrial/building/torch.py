"""The torch in the running interpreter's environment, found without importing it: that takes seconds."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

from timetrial.building.target import Target
from timetrial.environments.catalog import FRAMEWORKS_FOLDER, framework_in
from timetrial.errors import Unavailable

# Before 2.7 the wheels from PyPI have strings of the old ABI, which today's compilers don't make.
OLDEST = (2, 7)
_HEADER = Path("include/ATen/core/Tensor.h")
_LIBRARIES = ("libtorch_cpu.so", "libc10.so")


def find_torch() -> Target:
    """Unavailable, with the cure: no torch, one without headers or libraries, or one that is too old."""
    # The pin that the adapter for PyTorch has, so that one torch serves both.
    pin = framework_in(FRAMEWORKS_FOLDER / "pytorch").versions[0].pins[0]
    cure = f"{sys.executable} -m pip install {pin}"
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise Unavailable(f"libtorch needs torch in {sys.executable}: {cure}")
    folder = Path(spec.origin).resolve().parent
    version = _version(folder)
    if version is None:
        raise Unavailable(f"the torch in {folder} does not say its version (no version.py): {cure}")
    if _release(version) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise Unavailable(f"libtorch needs torch {oldest} or newer, {folder} has {version}: {cure}")
    missing = [
        name for name in (_HEADER, *(Path("lib") / one for one in _LIBRARIES)) if not (folder / name).exists()
    ]
    if missing:
        what = "C++ headers" if missing[0] == _HEADER else "C++ libraries"
        raise Unavailable(
            f"torch {version} in {folder} comes without its {what} ({missing[0]} is missing), which PyPI's "
            f"wheel has: {cure} --force-reinstall"
        )
    libraries = folder / "lib"
    return Target(
        name=f"torch {version}",
        version=version,
        library=libraries / _LIBRARIES[0],
        includes=(folder / "include", folder / "include/torch/csrc/api/include"),
        # The run path comes first, before LD_LIBRARY_PATH: the plug-in fits this torch and no other.
        link=(f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-Wl,--disable-new-dtags", "-ltorch_cpu", "-lc10"),
    )


def _version(folder: Path) -> str | None:
    try:
        text = (folder / "version.py").read_text(encoding="utf-8")
    except OSError:
        return None
    found = re.search(r"^__version__\s*=\s*['\"]([^'\"]+)['\"]", text, re.MULTILINE)
    return found.group(1) if found else None


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])
