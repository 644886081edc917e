"""What adapters import of ours is there in every launch, and where an environment is checked."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from timetrial.environments import shipped_frameworks

RUNTIME = Path(__file__).parents[2] / "python" / "timetrial" / "runtime"
OURS = {file.stem for file in RUNTIME.glob("*.py")}
FILES = sorted(file for one in shipped_frameworks().values() for file in one.folder.glob("*.py"))


def _imported(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found & OURS


def _shared() -> set[str]:
    for node in ast.parse((RUNTIME / "check.py").read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SHARED":
            return set(ast.literal_eval(node.value))
    return set()


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_an_adapter_imports_nothing_else_of_ours(file: Path) -> None:
    assert _imported(file) <= _shared()


def test_the_contender_keeps_what_adapters_share() -> None:
    assert _shared() <= _imported(RUNTIME / "main.py")


def test_an_import_of_another_module_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "adapter.py"
    file.write_text("import job\nfrom timetrial_adapter import pair\n", encoding="utf-8")
    assert _imported(file) == {"job", "timetrial_adapter"}
