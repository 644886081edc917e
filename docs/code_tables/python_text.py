"""The Python interface as directives of Sphinx's Python domain, with docstrings as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

from code_tables.python_names import Name, handed_out, public

FENCE = 8  # backticks of the outermost; code in docstrings has three


def text() -> str:
    """Both, as directives of Sphinx's Python domain."""
    head = "Classes that these hand out; you need not import them."
    return "\n\n".join([_directives(public()), f"## What they hand out\n\n{head}", _directives(handed_out())])


def _directives(names: list[Name]) -> str:
    """Each class with its members inside."""
    owners = {one.path for one in names if one.kind in ("class", "exception")}
    inside: dict[str, list[Name]] = {}
    for one in names:
        inside.setdefault(one.path.rpartition(".")[0], []).append(one)
    outer = [one for one in names if one.path.rpartition(".")[0] not in owners]
    return "\n\n".join(_directive(one, inside.get(one.path, [])) for one in outer)


def _directive(one: Name, members: Sequence[Name] = (), depth: int = 0) -> str:
    name = one.path.rpartition(".")[2] if depth else one.path
    if one.kind in ("property", "attribute"):
        head = f"{name}\n" + (f":type: {one.signature}\n" if one.signature else "")
    else:
        head = f"{name}{one.signature}\n"
    inner = [body(one.words), *(_directive(member, depth=depth + 1) for member in members)]
    fence = "`" * (FENCE - depth)
    return f"{fence}{{py:{one.kind}}} {head}\n" + "\n\n".join(inner) + f"\n{fence}"


def body(words: str) -> str:
    """A docstring as Markdown: what is indented is code, what a terminal needs no escape for gets one."""
    lines, code = [], False
    for line in words.splitlines():
        indented = line.startswith("    ")
        if indented != code and line.strip():
            lines.append("```" if code else "\n```python")
            code = indented
        lines.append(line[4:] if code and indented else line if code else _escaped(line))
    return "\n".join([*lines, *(["```"] if code else [])])


def _escaped(line: str) -> str:
    parts = line.split("`")
    if len(parts) % 2 == 0:
        return line.replace("*", "\\*").replace("<", "\\<")
    return "`".join(
        part if place % 2 else re.sub(r"([*<_\[\]])", r"\\\1", part) for place, part in enumerate(parts)
    )
