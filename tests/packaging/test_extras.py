"""What `pip install timetrial` and its extras bring."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from scikit_build_core._logging import rich_print
from scikit_build_core.settings.skbuild_read_settings import SettingsReader

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
# Their wheels on PyPI for Linux are gigabytes, or the wrong build for a machine without a GPU.
HEAVY = re.compile(r"(torch|tensorflow|jax|jaxlib|paddlepaddle|mxnet|nvidia.*|cupy.*)\b")


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\s<>=!~;\[]", one, maxsplit=1)[0].lower() for one in requirements}


def heavy(requirements: list[str]) -> list[str]:
    return sorted(name for name in names(requirements) if HEAVY.match(name))


@pytest.mark.parametrize("extra", ["", *EXTRAS])
def test_nobody_gets_a_cuda_torch_by_accident(extra: str) -> None:
    assert not heavy(EXTRAS[extra] if extra else PROJECT["dependencies"])


def test_heavy_packages_are_known_when_they_are_asked_for() -> None:
    assert heavy(["torch", "numpy>=1", "TensorFlow==2.21", "nvidia-cublas-cu12>=12", "jax[cuda]>=0.4"]) == [
        "jax", "nvidia-cublas-cu12", "tensorflow", "torch",
    ]  # fmt: skip
    assert heavy(["scikit-learn>=1.3", "torchless"]) == []


def test_advice_names_extras_that_there_are() -> None:
    """Each 'timetrial[...]' that our code or docs tell people to install."""
    files = [*ROOT.glob("python/**/*.py"), *ROOT.glob("docs/**/*.md"), ROOT / "README.md"]
    told = {
        extra.strip()
        for file in files
        for found in re.findall(r"timetrial\[([a-z, ]+)\]", file.read_text("utf-8"))
        for extra in found.split(",")
    }
    assert told
    assert told <= EXTRAS.keys()


def test_a_build_that_fails_says_what_it_needs() -> None:
    """The same compiler as CMake asks for; scikit-build-core takes the messages, and prints them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["scikit-build"]
    cmake = (ROOT / "CMakeLists.txt").read_text("utf-8")
    asked = re.search(r"CMAKE_CXX_COMPILER_VERSION VERSION_LESS (\d+)", cmake)
    assert asked is not None
    for message in settings["messages"].values():
        rich_print(message)  # as it is printed: a field that it does not know ends a build that succeeded
    assert f"g++ {asked.group(1)} or newer" in settings["messages"]["after-failure"]
    assert "timetrial doctor" in settings["messages"]["after-success"]
    reader = SettingsReader.from_file(ROOT / "pyproject.toml", {})
    reader.validate_may_exit()
    assert "g++" in reader.settings.messages.after_failure
