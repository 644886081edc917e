"""Where built plug-ins are kept: <cache>/v1/native/backends/<recipe>-<key>.so, with a manifest beside each.

The manifest is written last, by a rename, and holds the size and hash of the plug-in: a file that was cut
short, by a crash or a full disk, is never used.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from timetrial.building.plan import Plan
from timetrial.hashing import file_hash
from timetrial.workloads.cache import VERSION, cache_folder, cannot_write, making

Say = Callable[[str], None]


def folder() -> Path:
    """The end of this path is how a record knows that a mapped file is a backend."""
    return cache_folder() / VERSION / "native" / "backends"


def path_of(plan: Plan, suffix: str) -> Path:
    """A file of a plan's entry."""
    return folder() / f"{plan.recipe.name}-{plan.key}{suffix}"


def lookup(plan: Plan) -> Path | None:
    """The plug-in of a plan; None if there is none, or none that is whole."""
    plugin = path_of(plan, ".so")
    try:
        manifest = json.loads(path_of(plan, ".json").read_text(encoding="utf-8"))
        whole = plugin.stat().st_size == manifest["bytes"] and file_hash(plugin) == manifest["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return plugin if whole else None


def install(plan: Plan, made: Path) -> Path:
    """Puts a finished plug-in into place."""
    plugin = path_of(plan, ".so")
    manifest = {
        "recipe": plan.recipe.name,
        **plan.identity(),
        "bytes": made.stat().st_size,
        "sha256": file_hash(made),
    }
    described = made.with_suffix(".json")
    described.write_text(json.dumps(manifest, indent=1, sort_keys=True), encoding="utf-8")
    os.replace(made, plugin)
    os.replace(described, path_of(plan, ".json"))
    path_of(plan, ".log").unlink(missing_ok=True)  # of an earlier attempt that failed
    return plugin


def others(recipe: str) -> list[str]:
    """What this recipe was built against by plug-ins in the cache: 'torch 2.12.0'."""
    names = set()
    for manifest in folder().glob(f"{recipe}-*.json"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            names.add(str(json.loads(manifest.read_text(encoding="utf-8"))["target"]["name"]))
    return sorted(names)


@contextlib.contextmanager
def locked(plan: Plan, say: Say) -> Iterator[None]:
    """One builder per plug-in; others wait, with a word. The kernel frees the lock of a process that dies."""
    path = path_of(plan, ".lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise cannot_write(error) from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting: another process is building {plan.recipe.name} for {plan.target.name}")
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """A temporary folder on the same disk, gone afterwards."""
    with contextlib.ExitStack() as stack:
        try:
            made = stack.enter_context(making(folder()))
        except OSError as error:
            raise cannot_write(error) from error
        yield made
