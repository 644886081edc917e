"""What holds in the user's own process and not in a contender, which starts afresh: with what carries it."""

from __future__ import annotations

import os
from collections.abc import Iterator

from timetrial.cases.case import Case
from timetrial.cases.keys import is_callable_word
from timetrial.cautions import Caution
from timetrial.control.cpus import allowed_cpus
from timetrial.control.threads import VARIABLES
from timetrial.core import Libraries
from timetrial.in_process.contradictions import named
from timetrial.records.model import LaunchRecord
from timetrial.runtime.loaded import state_of


def not_carried(case: Case, record: LaunchRecord) -> list[str]:
    """Sentences, by a launch of a step of the user's own, of threads and of what libraries keep."""
    if not is_callable_word(case.backend):
        return []
    threads = [] if "threads" in case.settings else list(_variables(record)) or list(_threads(record))
    return [Caution.NOT_CARRIED.words(what=what, cure=cure) for what, cure in (*threads, *_state(record))]


def _variables(record: LaunchRecord) -> Iterator[tuple[str, str]]:
    usual = (None, "", str(len(allowed_cpus())))
    for name in VARIABLES:
        if os.environ.get(name) not in (*usual, record.environment.get(name)):
            yield f"{name}={os.environ[name]} is set", f"environment.{name}={os.environ[name]}"


def _threads(record: LaunchRecord) -> Iterator[tuple[str, str]]:
    """Of libraries with another number than there are processors: a step may have set its own."""
    there = {one.path: one.threads for one in record.libraries if one.threads is not None}
    usual, found = (None, len(allowed_cpus())), dict[int | None, list[str]]()
    for one in (library.facts() for library in Libraries().loaded()):
        if one.path in there and one.threads not in (*usual, there[one.path]):
            found.setdefault(one.threads, []).append(named(one))
    for number, names in found.items():
        yield f"threads of {' and '.join(names)} are {number}", f"threads={number}"


def _state(record: LaunchRecord) -> Iterator[tuple[str, str]]:
    packages = {one.split()[0] for one in record.facts.get("callable.packages", "").split(", ") if one}
    for where, call in state_of().items():  # type: ignore[no-untyped-call]
        if where.partition(".")[0] in packages and record.facts.get(where) != call:
            yield f"{call} holds", "setup=, which names a function that calls it,"
