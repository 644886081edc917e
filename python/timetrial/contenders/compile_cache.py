"""The folder in which a framework, or a step of one's own, keeps what it compiles: empty as a proof begins,
then warm.

    <cache>/v1/compile/<key>/    lock, files/ (what the framework wrote), entry.json (it is whole; of what)

The framework sees the same path in every launch, because some keep it inside what they compile. An entry
without entry.json is never used: the proof that made it failed, or died.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from timetrial.cases.case import Case
from timetrial.cases.settings import CACHE_STATES
from timetrial.contenders.registry import Contender
from timetrial.proc import read_proc
from timetrial.processes.left import files_below, remove
from timetrial.records.model import CompileCache, Setting
from timetrial.workloads.cache import VERSION, cache_folder, cannot_write, recipe_key

SETTING = "cache"
WARM, COLD = CACHE_STATES
LIMIT_BYTES = 4_000_000_000  # of all entries; the ones not used for longest go first
_MARKER = "entry.json"


@dataclass
class Compiled:
    """What a launch gets. `folder`: for "{cache}" in its variables; None: the framework keeps nothing."""

    record: CompileCache
    folder: Path | None
    keep: bool = False  # set it when the proof has succeeded


@contextlib.contextmanager
def compiled(
    case: Case, job: Mapping[str, Any], contender: Contender, scratch: Path, *, makes: bool
) -> Iterator[Compiled]:
    """The folder of one launch of this work; `scratch` is one that goes with the launch. `makes`: it begins
    with an empty one, which it leaves to others. InputError: the cache cannot be written."""
    if SETTING not in contender.settings:
        yield Compiled(CompileCache(state="none"), None)
        return
    if case.settings.get(SETTING, WARM) == COLD:
        yield _scratch(scratch)
        return
    entry = cache_folder() / VERSION / "compile" / recipe_key("compile", _recipe(case, contender, job))
    try:
        entry.mkdir(parents=True, exist_ok=True)
        lock = os.open(entry / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise cannot_write(error) from error
    try:
        if not _locked(lock, shared=not makes):
            yield _scratch(scratch)  # another process makes the entry, or uses it while this one would
            return
        if not makes:
            yield _kept(entry, scratch, may_be_empty=contender.kind == "framework")
            return
        given = _empty(entry)
        try:
            yield given
        finally:
            if given.keep:
                _finish(entry, _recipe(case, contender, job))
            else:
                remove(entry / "files")
    finally:
        os.close(lock)


def judge_cache(asked: str, record: CompileCache, purpose: str) -> Setting:
    """Warm where it was asked, unless no proof has left anything."""
    is_asked = record.state == asked or purpose == "proof"
    how = "the folder that was given" + (", empty for a proof" if purpose == "proof" else "")
    return Setting(
        name=SETTING,
        asked=asked,
        effective=record.state,
        how_read=how,
        status="applied" if is_asked else "adjusted",
    )


def prune(folder: Path, *, keep: Path, limit_bytes: int = LIMIT_BYTES) -> None:
    """Removes the entries that were used least recently until the rest is within the limit."""
    entries = sorted(
        (one for one in folder.iterdir() if one.is_dir() and one != keep), key=_last_use, reverse=True
    )
    total = folder_bytes(keep)
    for entry in entries:
        total += folder_bytes(entry)
        if total > limit_bytes:
            _remove(entry)


def folder_bytes(folder: Path) -> int:
    """Of all files below a folder."""
    return sum(size for _, size in files_below(folder))


def _recipe(case: Case, contender: Contender, job: Mapping[str, Any]) -> dict[str, Any]:
    """All that may decide what is compiled; not the values of weights and data."""
    network = job["network"] or {"nodes": (), "output": None, "loss": None}  # a step of one's own
    nodes = [
        {
            **{key: node[key] for key in ("name", "kind", "inputs", "attributes", "shape")},
            "parameters": [[one["name"], one["shape"]] for one in node["parameters"]],
        }
        for node in network["nodes"]
    ]
    return {
        "contender": contender.fingerprint,
        "settings": job["settings"],
        "affinity": case.settings.get("affinity"),
        "task": job["task"],
        "batch_size": job["batch_size"],
        "optimizer": job["optimizer"],
        "nodes": nodes,
        "output": network["output"],
        "loss": network["loss"],
        "cpu": _cpu(),
    }


def _cpu() -> str:
    """Model and flags: code compiled for one CPU may not run on another."""
    lines = read_proc("cpuinfo").splitlines()
    wanted = ("model name", "flags")
    found = {line.partition(":")[0].strip(): line.partition(":")[2].strip() for line in reversed(lines)}
    return "\n".join(found.get(name, "") for name in wanted)


def _scratch(scratch: Path) -> Compiled:
    scratch.mkdir(parents=True, exist_ok=True)
    return Compiled(CompileCache(state="cold", path=str(scratch)), scratch)


def _empty(entry: Path) -> Compiled:
    (entry / _MARKER).unlink(missing_ok=True)
    files = entry / "files"
    remove(files)
    files.mkdir()
    return Compiled(CompileCache(state="cold", path=str(files)), files)


def _finish(entry: Path, recipe: Mapping[str, Any]) -> None:
    (entry / _MARKER).write_text(json.dumps(recipe, indent=1, sort_keys=True), encoding="utf-8")
    prune(entry.parent, keep=entry)


def _kept(entry: Path, scratch: Path, *, may_be_empty: bool) -> Compiled:
    """Most steps of users' own compile nothing that is kept: theirs is called warm if something was."""
    marker, files = entry / _MARKER, entry / "files"
    if not marker.is_file() or not files.is_dir():
        return _scratch(scratch)
    os.utime(marker)
    if not may_be_empty and folder_bytes(files) == 0:
        return Compiled(CompileCache(state="none"), files)
    return Compiled(CompileCache(state="warm", path=str(files)), files)


def _locked(lock: int, *, shared: bool = False) -> bool:
    try:
        fcntl.flock(lock, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _last_use(entry: Path) -> float:
    try:
        return (entry / _MARKER).stat().st_mtime
    except OSError:
        return 0.0


def _remove(entry: Path) -> None:
    """Unless somebody uses it now."""
    with contextlib.suppress(OSError):
        lock = os.open(entry / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if _locked(lock):
                (entry / _MARKER).unlink(missing_ok=True)
                remove(entry)
        finally:
            os.close(lock)
