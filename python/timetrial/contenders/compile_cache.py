"""The folder in which a framework, or a step of one's own, keeps what it compiles, and a plug-in which
kernels it chose by trial: empty as a proof begins, then warm.

    <cache>/v1/compile/<key>/    lock, files/ (what the framework wrote), entry.json (it is whole; of what),
                                 proof/ (of a plug-in: what it chose in its proof)

The framework sees the same path in every launch, because some keep it inside what they compile. An entry
without entry.json is never used: the proof that made it failed, or died.

A trial is timed. Proofs run one on each processor, with judges beside them, and what is slow there need not
be slow alone: a choice made there and read by every launch would be an error that they all share, which no
interval shows. So a plug-in's timed launches get a folder that is empty at first, and the first of them that
starts alone keeps its choice for all others. The two launches of a proof share theirs.
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
from timetrial.cases.environment import variables_of
from timetrial.cases.settings import CACHE_STATES
from timetrial.contenders.registry import Contender
from timetrial.proc import read_proc
from timetrial.processes.events import Reading
from timetrial.processes.left import files_below, remove
from timetrial.records.model import CompileCache, LaunchRecord, Purpose, Setting
from timetrial.workloads.cache import VERSION, cache_folder, cannot_write, recipe_key

SETTING = "cache"
WARM, COLD = CACHE_STATES
LIMIT_BYTES = 4_000_000_000  # of all entries; the ones not used for longest go first
PLUGIN_VARIABLE = "TIMETRIAL_KEPT"  # kept_folder.h
_MARKER = "entry.json"


@dataclass
class Compiled:
    """What a launch gets. `folder`: for "{cache}" in its variables, to a plug-in as PLUGIN_VARIABLE; None: it
    keeps nothing."""

    record: CompileCache
    folder: Path | None
    keep: bool = False  # set it when the proof has succeeded


@contextlib.contextmanager
def compiled(
    case: Case,
    job: Mapping[str, Any],
    contender: Contender,
    scratch: Path,
    *,
    makes: bool,
    proves: bool = False,
    alone: bool = False,
) -> Iterator[Compiled]:
    """The folder of one launch of this work; `scratch` is one that goes with the launch. `makes`: it begins
    with an empty one, which it leaves to others. `proves`: it is one of a proof; `alone`: starts_alone().
    InputError: the cache cannot be written."""
    if SETTING not in contender.settings:
        yield Compiled(CompileCache(state="none"), None)
        return
    if case.settings.get(SETTING, WARM) == COLD:
        yield _scratch(scratch)
        return
    entry = cache_folder() / VERSION / "compile" / recipe_key("compile", _recipe(case, contender, job))
    lock = _opened(entry)
    try:
        if not _locked(lock, shared=not makes):
            yield _scratch(scratch)  # another process makes the entry, or uses it while this one would
            return
        if not makes and contender.kind == "native":
            yield _chosen(entry, scratch, proves=proves, alone=alone)
            return
        if not makes:
            yield _kept(entry, scratch, may_be_empty=contender.kind == "framework")
            return
        given = _empty(entry)
        if contender.kind == "native":
            given = _of_proof(entry)
        try:
            yield given
        finally:
            if given.keep:
                _finish(entry, _recipe(case, contender, job))
            else:
                remove(entry / "files")
    finally:
        os.close(lock)


def finds_compiled(
    case: Case, job: Mapping[str, Any], contender: Contender, *, compiles_nothing: bool
) -> bool:
    """Whether launches of this work find what a proof of its own would leave them. `compiles_nothing`: a
    proof of the same computation left no file, so this one would leave none either; that is noted. A
    proof of a plug-in leaves nothing: its timed launches choose."""
    if SETTING not in contender.settings or case.settings.get(SETTING, WARM) == COLD:
        return True
    recipe = _recipe(case, contender, job)
    entry = cache_folder() / VERSION / "compile" / recipe_key("compile", recipe)
    if (entry / _MARKER).is_file() and (entry / "files").is_dir():
        return True
    if not compiles_nothing and contender.kind != "native":
        return False
    lock = _opened(entry)
    try:
        if not _locked(lock):
            return False
        _empty(entry)
        _finish(entry, recipe)
    finally:
        os.close(lock)
    return True


def forget_compiled(case: Case, job: Mapping[str, Any], contender: Contender) -> None:
    """What a proof left counts for nobody, where it was judged and did not pass."""
    entry = cache_folder() / VERSION / "compile" / recipe_key("compile", _recipe(case, contender, job))
    with contextlib.suppress(OSError):
        (entry / _MARKER).unlink()


def compiled_nothing(record: LaunchRecord) -> bool:
    """Whether a proof left nothing in its compile cache, as far as can be seen."""
    cache = record.compile_cache
    if cache is None or cache.state == "none":
        return True
    return cache.path is not None and Path(cache.path).is_dir() and folder_bytes(Path(cache.path)) == 0


def as_said(record: CompileCache, readings: Mapping[str, Reading]) -> CompileCache:
    """With the word of a plug-in, which tells whether it read what is there: that may be damaged."""
    said = readings.get(SETTING)
    if record.state == "none" or said is None or said.effective not in CACHE_STATES:
        return record
    return CompileCache.model_validate({**record.model_dump(), "state": said.effective})


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


def starts_alone(purpose: Purpose, at_once: int) -> bool:
    """Whether a launch starts with nobody beside it, contender or judge: then a trial tells what is fast."""
    return at_once == 1 and purpose not in ("proof", "learning")


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
    # What a trial finds the fastest may depend on what the parent sets: caps, priorities, OpenMP's waiting.
    parents = {"asked": dict(case.settings)} if contender.kind == "native" else {}
    return {
        **parents,
        "contender": contender.fingerprint,
        "settings": job["settings"],
        "affinity": case.settings.get("affinity"),
        "task": job["task"],
        "batch_size": job["batch_size"],
        "optimizer": job["optimizer"],
        "nodes": nodes,
        "output": network["output"],
        "loss": network["loss"],
        "cpu": model_and_flags(),
        "types": [case.dtype, case.device],
        "variables": variables_of(case.settings),
    }


def model_and_flags() -> str:
    """Of the processor: code compiled for one CPU may not run on another."""
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


def _of_proof(entry: Path) -> Compiled:
    folder = entry / "proof"
    remove(folder)
    folder.mkdir()
    return Compiled(CompileCache(state="cold", path=str(folder)), folder)


def _chosen(entry: Path, scratch: Path, *, proves: bool, alone: bool) -> Compiled:
    """Of a plug-in. Who is not alone reads what is there, and keeps nothing where nobody has chosen yet."""
    marker, folder = entry / _MARKER, entry / ("proof" if proves else "files")
    if not marker.is_file() or not folder.is_dir():
        return _scratch(scratch)
    os.utime(marker)
    is_empty = folder_bytes(folder) == 0
    if is_empty and not proves and not alone:
        return _scratch(scratch)
    return Compiled(CompileCache(state="cold" if is_empty else "warm", path=str(folder)), folder)


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


def _opened(entry: Path) -> int:
    """The file of its lock. InputError: the cache cannot be written."""
    try:
        entry.mkdir(parents=True, exist_ok=True)
        return os.open(entry / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise cannot_write(error) from error


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
