"""The command line: verbs, their options, exit codes. From the functions that are its commands."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo

from code_tables.entry import Entry, Table
from code_tables.entry import text as cell
from timetrial.cli.main import app

_EXIT = re.compile(r"\s*Exit codes?:? (.*?)\.?\s*\Z", re.DOTALL)
_VALUES = {int: "N", float: "NUMBER", Path: "PATH", str: "WORD"}


@dataclass(frozen=True)
class Parameter:
    """An argument or an option: its default, its type, and what typer was told of it."""

    name: str
    kind: Any
    told: ArgumentInfo | OptionInfo
    default: Any

    @property
    def is_argument(self) -> bool:
        """Not an option."""
        return isinstance(self.told, ArgumentInfo)

    @property
    def value(self) -> str:
        """What follows its name: 'PATH', 'a|b'; nothing follows a switch."""
        kinds = [one for one in get_args(self.kind) if one is not NoneType] or [self.kind]
        if get_origin(self.kind) is Literal or get_origin(kinds[0]) is Literal:
            return "|".join(get_args(kinds[0]) or get_args(self.kind))
        if kinds[0] is bool:
            return ""
        return self.told.metavar or _VALUES.get(kinds[0], "WORD")

    @property
    def entry(self) -> Entry:
        """In the table of its command."""
        words = self.told.help or ""
        if self.is_argument:
            return Entry(self.argument.removesuffix("..."), words)
        # Inside Annotated the first name stands where a default would.
        first = [self.told.default] if isinstance(self.told.default, str) else []
        names = ", ".join([*first, *(self.told.param_decls or ())] or [f"--{self.name.replace('_', '-')}"])
        if words and self.default not in (None, "", False, inspect.Parameter.empty):
            words += f" Unless told otherwise: `{self.default}`."
        return Entry(f"{names} {self.value}".strip(), words)

    @property
    def argument(self) -> str:
        """In the usage line."""
        name = self.told.metavar or self.name.upper()
        return f"[{name}]" if self.default is None and not name.startswith("[") else name


@dataclass(frozen=True)
class Verb:
    """A command: 'timetrial frameworks install', and the function behind it."""

    name: str
    function: Callable[..., None]

    @property
    def words(self) -> str:
        """What it does, without the exit codes."""
        return _EXIT.sub("", inspect.getdoc(self.function) or "")

    @property
    def exit_codes(self) -> str:
        """'0 ..., 1 ...'; empty: nobody says."""
        found = _EXIT.search(inspect.getdoc(self.function) or "")
        return " ".join(found[1].split()) if found else ""

    @property
    def parameters(self) -> list[Parameter]:
        """Arguments, then options."""
        hints = get_type_hints(self.function, include_extras=True)
        found = []
        for one in inspect.signature(self.function).parameters.values():
            hint = hints[one.name]
            if get_origin(hint) is Annotated:
                kind, told, *_ = get_args(hint)
                found.append(Parameter(one.name, kind, told, one.default))
        return sorted(found, key=lambda one: not one.is_argument)

    @property
    def options(self) -> Table:
        """A table of all of them."""
        return Table(("option", "what it is"), [one.entry for one in self.parameters])

    @property
    def usage(self) -> str:
        """'timetrial show RECORD [OPTIONS]'."""
        arguments = [one.argument for one in self.parameters if one.is_argument]
        options = [] if all(one.is_argument for one in self.parameters) else ["[OPTIONS]"]
        return " ".join([self.name, *arguments, *options])


def verbs() -> list[Verb]:
    """Every command, in the order of the help page."""
    return list(_below("timetrial", app))


def _below(name: str, group: typer.Typer) -> Iterator[Verb]:
    for one in group.registered_commands:
        assert one.callback is not None
        yield Verb(f"{name} {one.name}", inspect.unwrap(one.callback))
    for inner in group.registered_groups:
        assert inner.typer_instance is not None
        yield from _below(f"{name} {inner.name}", inner.typer_instance)


def exit_codes() -> Table:
    """Of every command."""
    by_name = {verb.name: verb.exit_codes for verb in verbs()}
    entries = []
    for name, words in by_name.items():
        same = re.fullmatch(r"as in `(\w+)`", words)
        entries.append(Entry(name, by_name[f"timetrial {same[1]}"] if same else words))
    return Table(("command", "exit code"), entries)


def text() -> str:
    """A section for each command."""
    return "\n\n".join(_section(verb) for verb in verbs())


def _section(verb: Verb) -> str:
    parts = [f"## `{verb.name}`", f"```\n{verb.usage}\n```", verb.words.replace("*", "\\*")]
    if verb.exit_codes:
        parts.append(f"**Exit code:** {cell(verb.exit_codes)}.")
    if verb.options.entries:
        parts.append(verb.options.markdown(verb.name.replace(" ", "-")))
    return "\n\n".join(parts)
