"""No adapter lists its kinds of layers by hand: those that it says it has are the keys of the tables that
make them: none can be claimed without a maker, and none be forgotten."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from timetrial import core
from timetrial.environments import shipped_frameworks

KINDS = frozenset(kind.name for kind in core.layer_kinds())
FOLDERS = [framework.folder for framework in shipped_frameworks().values()]
FILES = sorted(file for folder in FOLDERS for file in folder.glob("*.py"))
ADAPTERS = [file for file in FILES if file.name.startswith("adapter")]
IN_LUA = sorted(file for folder in FOLDERS for file in folder.glob("adapter*.lua"))
IN_LUA += [Path(__file__).parents[1] / "runtime" / "lua" / "adapter.lua"]


def _name(file: Path) -> str:
    return f"{file.parent.name}/{file.name}"


def _complaints(source: str) -> list[str]:
    """Lists of kinds that somebody wrote, in a file in Python."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            lines = [ast.unparse(line) for line in node.body if isinstance(line, ast.Assign)]
            has = [line for line in lines if line.startswith("layers = ")]
            found += [line for line in has if line != "layers = (*LAYERS, *LOSSES)"]
        elif isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            words = [one.value for one in node.elts if isinstance(one, ast.Constant) and one.value in KINDS]
            if len(words) > 1:
                found.append(", ".join(map(str, words)))
    return found


def _complaints_of_lua(source: str) -> list[str]:
    found = re.findall(r"\blayers = .*", source)
    return [line for line in found if not line.endswith("= BaseAdapter.kinds(LAYERS, LOSSES)")]


@pytest.mark.parametrize("file", FILES, ids=_name)
def test_nobody_wrote_a_list(file: Path) -> None:
    assert _complaints(file.read_text()) == []


@pytest.mark.parametrize("file", IN_LUA, ids=_name)
def test_nobody_wrote_a_list_in_lua(file: Path) -> None:
    source = file.read_text()
    assert _complaints_of_lua(source) == []
    assert "BaseAdapter.kinds(LAYERS, LOSSES)" in source


def test_a_written_list_is_found() -> None:
    by_hand = 'class Adapter:\n    layers = ("dense", "relu")\n'
    assert _complaints(by_hand) == ["layers = ('dense', 'relu')", "dense, relu"]
    more = 'LAYERS = {}\nclass Adapter:\n    layers = (*LAYERS, "softmax_cross_entropy")\n'
    assert _complaints(more) == ["layers = (*LAYERS, 'softmax_cross_entropy')"]
    assert _complaints('if node.kind in ("relu", "tanh"):\n    pass\n') == ["relu, tanh"]
    assert _complaints_of_lua('Adapter.layers = { "dense" }\n') == ['layers = { "dense" }']


@pytest.mark.parametrize("file", ADAPTERS, ids=_name)
def test_an_adapter_has_what_its_tables_make(
    runtime: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, file: Path
) -> None:
    runtime("timetrial_adapter")
    monkeypatch.syspath_prepend(str(file.parent))
    before = set(sys.modules)
    spec = importlib.util.spec_from_file_location("loaded_adapter", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        # One that is made of another's has that one's tables.
        tables = sys.modules.get(module.Adapter.__mro__[1].__module__, module)
        tables = module if hasattr(module, "LAYERS") else tables
        assert module.Adapter.layers == (*tables.LAYERS, *tables.LOSSES)
        for table in (tables.LAYERS, tables.LOSSES):
            assert isinstance(table, dict)
            assert set(table) <= KINDS
            assert all(callable(make) for make in table.values())
    finally:
        for name in set(sys.modules) - before:
            del sys.modules[name]
