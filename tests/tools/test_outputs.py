"""tools/notebooks.py: what is wrong with the outputs of a notebook, and what is kept of them."""

from __future__ import annotations

import base64
import copy
import importlib.util
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "notebooks.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notebooks_tool", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def code(source: str, count: int, *outputs: dict[str, Any]) -> dict[str, Any]:
    cell = {"cell_type": "code", "source": source, "execution_count": count}
    return {**cell, "metadata": {}, "outputs": [*outputs]}


def output(**data: str) -> dict[str, Any]:
    return {
        "output_type": "display_data",
        "data": {key.replace("_", "/"): said for key, said in data.items()},
    }


@pytest.fixture
def good(tool: ModuleType) -> dict[str, Any]:
    """A notebook as it should be in git."""
    figure = output(image_png="iVBOR", text_plain="<Figure>")
    words = {"cell_type": "markdown", "source": ["# Why?"], "metadata": {}}
    notebook = {
        "cells": [words, code("x = 1", 1), code("plot()", 2, figure), code("", 0)],
        "metadata": {"kernelspec": {}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    notebook["metadata"] = {"timetrial": {"code": tool.code_hash(notebook)}}
    return notebook


def test_one_that_is_well(tool: ModuleType, good: dict[str, Any]) -> None:
    assert tool.faults(good) == []


def change(name: str) -> Callable[[dict[str, Any]], object]:
    """A fault to plant: what it is called -> how it is made."""
    return {
        "not executed": lambda one: one["cells"][1].update(execution_count=None),
        "in another order": lambda one: one["cells"][1].update(execution_count=5),
        "other code": lambda one: one["cells"][1].update(source="x = 2"),
        "no hash": lambda one: one["metadata"].clear(),
        "quick": lambda one: one["metadata"]["timetrial"].update(quick=True),
        "no figure": lambda one: one["cells"][2]["outputs"].clear(),
        "an error": lambda one: one["cells"][1]["outputs"].append(
            {"output_type": "error", "ename": "InputError", "evalue": "no such", "traceback": []}
        ),
        "progress": lambda one: one["cells"][1]["outputs"].append(
            {"output_type": "stream", "name": "stderr", "text": "0 of 4"}
        ),
        "a path": lambda one: one["cells"][1]["outputs"].append(output(text_plain="in /home/someone/x")),
        "a path in a frame": lambda one: one["cells"][1]["outputs"].append(
            output(text_html="<td>/usr/local/lib/x.so</td>")
        ),
        "times of cells": lambda one: one["cells"][1]["metadata"].update(execution={"iopub": 1}),
    }[name]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("not executed", "its cells were not executed once each, from the first to the last"),
        ("in another order", "its cells were not executed once each, from the first to the last"),
        ("other code", "its outputs are of other code"),
        ("no hash", "its outputs are of other code"),
        ("quick", "its outputs are of a quick run, which measures nothing worth reading"),
        ("no figure", "it has no figure"),
        ("an error", "an error: InputError: no such"),
        ("progress", "a line of progress or a warning"),
        ("a path", "a path of a machine: /home/someone"),
        ("a path in a frame", "a path of a machine: /usr/local/lib"),
        ("times of cells", "metadata of a cell: execution"),
    ],
)
def test_a_fault_is_found(tool: ModuleType, good: dict[str, Any], name: str, said: str) -> None:
    change(name)(good)
    assert tool.faults(good) == [said]


def test_a_large_one_is_refused(tool: ModuleType, good: dict[str, Any]) -> None:
    assert tool.faults(good, 300_000) == []
    assert tool.faults(good, 300_001) == ["300 kB; a code host shows up to 300 kB"]


def test_what_is_kept(tool: ModuleType, good: dict[str, Any], tmp_path: Path) -> None:
    """Cleaning mends what differs from run to run, and leaves figures and code as they are."""
    ran = copy.deepcopy(good)
    change("progress")(ran)
    change("times of cells")(ran)
    ran["cells"][1]["outputs"].append(output(text_plain="", text_html=""))  # a line of progress that is gone
    ran["cells"][1]["outputs"].append(
        output(text_plain=f"records: {tmp_path}/results/7f3a", image_png=str(tmp_path))
    )
    kept = tool.cleaned(ran, root=tmp_path, quick=False)
    assert tool.faults(kept) == []
    [said] = kept["cells"][1]["outputs"]
    assert said["data"] == {"text/plain": "records: ../results/7f3a", "image/png": str(tmp_path)}
    assert kept["cells"][2] == good["cells"][2]
    assert tool.cleaned(copy.deepcopy(kept), root=tmp_path, quick=False) == kept
    assert tool.cleaned(ran, root=tmp_path, quick=True)["metadata"]["timetrial"]["quick"] is True


def test_a_figure_becomes_smaller_and_looks_the_same(tool: ModuleType) -> None:
    np = pytest.importorskip("numpy")
    image = pytest.importorskip("PIL.Image")
    drawn = pytest.importorskip("matplotlib.figure").Figure(figsize=(5, 3))
    axes = drawn.subplots()
    for number in range(5):
        axes.plot(np.sin(np.linspace(0, 6 + number, 100)), linewidth=1 + number)
    data = io.BytesIO()
    drawn.savefig(data, format="png")
    colors = np.asarray(image.open(data).convert("RGB")).astype(int)
    figure = base64.b64encode(data.getvalue()).decode()
    small = tool.smaller(figure)
    assert len(small) < 0.7 * len(figure)
    seen = np.asarray(image.open(io.BytesIO(base64.b64decode(small))).convert("RGB")).astype(int)
    assert abs(seen - colors).mean() < 0.5
    assert abs(seen - colors).max() < 32  # of 255, at edges of lines
    assert seen[0, 0].tolist() == [255, 255, 255]


def test_the_command(good: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "one.ipynb"
    command = [sys.executable, str(TOOL), "check", str(path)]
    path.write_text(json.dumps(good))
    assert subprocess.run(command, check=False).returncode == 0
    change("other code")(good)
    path.write_text(json.dumps(good))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "one.ipynb: its outputs are of other code" in done.stderr
    assert "make notebooks-outputs" in done.stderr


@pytest.mark.full
def test_a_notebook_is_executed(good: dict[str, Any], tool: ModuleType, tmp_path: Path) -> None:
    """In a real kernel, in its own folder."""
    pytest.importorskip("nbclient")
    good["cells"][1]["source"] = "import os, sys\nprint(os.getcwd()); print('soon', file=sys.stderr)"
    good["cells"][2]["source"] = "%matplotlib inline\nimport matplotlib.pyplot as p\np.plot([1, 2]);"
    for number, cell in enumerate(good["cells"]):
        cell["id"] = str(number)
    path = tmp_path / "notebooks" / "one.ipynb"
    path.parent.mkdir()
    path.write_text(json.dumps(good))
    tool.execute(path, path, tmp_path)
    ran = json.loads(path.read_text())
    assert tool.faults(ran, path.stat().st_size) == []
    assert ran["cells"][1]["outputs"][0]["text"] == ["../notebooks\n"]
