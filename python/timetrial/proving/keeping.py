"""Proofs on disk: an entry of the cache for each, with all files of its launch.

    <cache>/v1/proofs/<key>/     record.json and what lies beside it, kept.json, entry.json

Only what passed is kept. An entry that is damaged, or whose library files are others now, is taken away.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timetrial.contenders.compile_cache import compiled_nothing, finds_compiled, prune
from timetrial.errors import InputError
from timetrial.hashing import file_hash
from timetrial.launch.job import make_job
from timetrial.proving.keeper import Found, Keeper, KeepsNone
from timetrial.proving.key import may_be_kept, recipe_of
from timetrial.records import store
from timetrial.records.files import read_regular
from timetrial.records.model import KeptFrom, LaunchRecord
from timetrial.workloads.cache import MANIFEST, Entry, cached, discard, find_entry

if TYPE_CHECKING:
    from timetrial.launch import LaunchPlan

KIND = "proofs"
FACTS = "kept"  # the name of an entry's table
SWITCH = "TIMETRIAL_KEEP_PROOFS"
LIMIT_BYTES = 500_000_000  # of all entries; the ones not used for longest go first
DAMAGED = "what was kept is damaged"


def real_keeper() -> Keeper:
    """The one that keeps, unless $TIMETRIAL_KEEP_PROOFS is "no". InputError: it is another word."""
    word = os.environ.get(SWITCH, "yes")
    if word not in ("yes", "no"):
        raise InputError(f"{SWITCH} is {word!r}; expected yes (as without it) or no: all is proven anew.")
    return Keeping() if word == "yes" else Sharing()


class Sharing(KeepsNone):
    """Keeps nothing; cases of one run share their proofs."""

    def may_share(self, plan: LaunchPlan, record: LaunchRecord) -> bool:
        """Whether what is compiled is there."""
        return _finds_compiled(plan, compiles_nothing=compiled_nothing(record))


class Keeping(Sharing):
    """In the cache folder. `looks`: whether what is kept is used."""

    def __init__(self, *, looks: bool = True):
        self._looks = looks

    def find(self, plan: LaunchPlan) -> Found:
        """By the key of the plan. Entries that do not hold any more go."""
        contender = plan.contender
        if contender is None or not may_be_kept(plan):
            return Found()
        recipe = recipe_of(plan, contender)
        entry = find_entry(KIND, recipe)
        if entry is None:
            return Found()
        if not self._looks:  # whatever comes of it now, and if nothing does: what was kept holds no more
            _discard(entry)
            return Found()
        try:
            facts, record = entry.table(FACTS), _checked(entry, recipe)
            origin = KeptFrom(run=facts["run"], case=facts["case"])
            why, compiles_nothing = _changed(record), facts["compiles_nothing"]
        except (OSError, ValueError, KeyError, TypeError, InputError):
            why = DAMAGED
        if why is not None:
            _discard(entry)
            return Found(why=why)
        if not _finds_compiled(plan, compiles_nothing=compiles_nothing):
            is_own = origin.case == plan.case.content_id
            return Found(why="what it compiled is not kept any more" if is_own else None)
        with contextlib.suppress(OSError):
            os.utime(entry.file(MANIFEST))  # what is used stays
        try:
            return Found(_copied(entry, record, plan, origin))
        except OSError:  # a folder of results without room: the proof itself will say so
            shutil.rmtree(plan.folder, ignore_errors=True)
            return Found()

    def keep(self, plan: LaunchPlan, record: LaunchRecord, run: str) -> None:
        """Where it passed; where it is wrong, what was kept goes. Of two who keep the same at the same time,
        what the first one kept stays."""
        contender, parity = plan.contender, record.parity
        if contender is None or parity is None or not may_be_kept(plan):
            return
        if record.kept_from is not None:
            return
        if record.outcome in ("wrong", "nan") or parity.status == "failed":
            if (old := find_entry(KIND, recipe_of(plan, contender))) is not None:
                _discard(old)
            return
        if record.outcome != "ok" or parity.status != "passed":
            return
        facts = {
            "run": run,
            "case": plan.case.content_id,
            "compiles_nothing": compiled_nothing(record),
        }
        recipe = recipe_of(plan, contender)
        # A cache without room costs a proof the next time, and not this run.
        with contextlib.suppress(OSError, InputError):
            files = {file.name: file.read_bytes() for file in plan.folder.iterdir() if file.is_file()}
            entry = cached(KIND, recipe, lambda: {**files, FACTS: facts})
            prune(entry.folder.parent, keep=entry.folder, limit_bytes=LIMIT_BYTES)

    def anew(self) -> Keeper:
        """One that looks at nothing."""
        return Keeping(looks=False)

    def none(self) -> Keeper:
        """One that leaves the folder alone."""
        return Sharing()


def _discard(entry: Entry) -> None:
    with contextlib.suppress(OSError):
        discard(entry)


def _checked(entry: Entry, recipe: Mapping[str, Any]) -> LaunchRecord:
    """The kept record. ValueError: it is of another recipe, its files are not those that were kept, or it did
    not pass."""
    if entry.recipe() != json.loads(json.dumps(recipe)):
        raise ValueError("recipe")
    for name, sha256 in entry.hashes().items():
        if file_hash(entry.file(name)) != sha256:
            raise ValueError(name)
    record = store.read_launch(entry.folder)
    if record.outcome != "ok" or record.parity is None or record.parity.status != "passed":
        raise ValueError(record.outcome)
    return record


def _changed(record: LaunchRecord) -> str | None:
    """Which of the library files that the proof had mapped is another one now, or gone."""
    for one in record.libraries:
        try:
            if file_hash(Path(one.path)) != one.sha256:
                return f"{one.path} changed"
        except OSError:
            return f"{one.path} is gone"
    return None


def _copied(entry: Entry, record: LaunchRecord, plan: LaunchPlan, origin: KeptFrom) -> LaunchRecord:
    """In the plan's folder; the record is the last of its files."""
    record = record.model_copy(update={"id": plan.id, "case": plan.case.id, "kept_from": origin})
    plan.folder.mkdir(parents=True)
    for name in entry.hashes():
        if name not in (store.RECORD_FILE, f"{FACTS}.json"):
            data = read_regular(entry.file(name), store.MOST_SAMPLE_BYTES)
            (plan.folder / name).write_bytes(data)
    store.write_launch(plan.folder, record)
    return record


def _finds_compiled(plan: LaunchPlan, *, compiles_nothing: bool) -> bool:
    if plan.contender is None:
        return False
    job = make_job(plan, plan.contender)
    return finds_compiled(plan.case, job, plan.contender, compiles_nothing=compiles_nothing)
