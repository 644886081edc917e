"""What only the source says: comments behind the fields of a class, classes that annotations name."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import textwrap
import types
from collections.abc import Iterator
from importlib import import_module


@functools.cache
def comments_of(cls: type) -> dict[str, str]:
    """Field -> the comment behind it, or on the lines before it."""
    found: dict[str, str] = {}
    for one in reversed(cls.__mro__):
        if one.__module__.startswith("timetrial"):
            found |= _comments(one)
    return found


def _comments(cls: type) -> dict[str, str]:
    try:
        source = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):
        return {}
    lines = source.splitlines()
    [definition] = ast.parse(source).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for node in definition.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            last = lines[(node.end_lineno or node.lineno) - 1]
            behind = last.encode()[node.end_col_offset or 0 :].decode()
            found[node.target.id] = _comment(behind) or _before(lines, node.lineno - 1)
    return {name: words for name, words in found.items() if words}


def _comment(line: str) -> str:
    match = re.match(r"\s*(?:\))?\s*#\s*(.*)", line)
    return match[1].strip() if match else ""


def _before(lines: list[str], number: int) -> str:
    words: list[str] = []
    while number and lines[number - 1].lstrip().startswith("#"):
        number -= 1
        words.insert(0, _comment(lines[number]))
    return " ".join(words)


def names_in(annotation: str, module: types.ModuleType) -> Iterator[type]:
    """Classes of ours that an annotation names, as its module imports them."""
    known = _imports(module)
    for word in dict.fromkeys(re.findall(r"[A-Za-z_]\w*", annotation)):
        value = getattr(module, word, None)
        if value is None and word in known:
            value = getattr(import_module(known[word]), word, None)
        if inspect.isclass(value) and value.__module__.startswith("timetrial"):
            yield value


@functools.cache
def _imports(module: types.ModuleType) -> dict[str, str]:
    """Name -> module, also of what is imported for annotations only."""
    tree = ast.parse(inspect.getsource(module))
    return {
        alias.asname or alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
