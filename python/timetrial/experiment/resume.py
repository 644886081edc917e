"""What an earlier session of the same experiment has left to do: only what has no record is launched."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from timetrial.cautions import Caution
from timetrial.errors import InputError
from timetrial.experiment.experiment import Experiment
from timetrial.experiment.validate import ReadyCase
from timetrial.records import sessions, store
from timetrial.records.files import near
from timetrial.records.model import ExperimentRecord, LaunchRecord, Purpose
from timetrial.stopping import stopped_like_ctrl_c

# Another one of these is another machine; a run compares on one.
SAME_MACHINE = ("cpu", "cpu_model", "cpus", "usable_cpus", "cpu_quota", "python")
# These differ between any two moments.
MOMENTARY = ("load_1min", "memory_bytes")


@dataclass
class Recorded:
    """Launches that have a record; none in a first session."""

    alone: dict[tuple[Purpose, str, int], LaunchRecord] = field(default_factory=dict)  # purpose, case, block
    heats: dict[int, list[LaunchRecord]] = field(default_factory=dict)  # by block: of heats that are whole
    next_launch: int = 0  # number of its folder
    last_heat: int = 0

    def find(self, purpose: Purpose, case: str, block: int) -> LaunchRecord | None:
        """Of a launch in which the case was alone."""
        return self.alone.get((purpose, case, block))


def recorded_in(folder: Path) -> Recorded:
    """InputError: a record cannot be read."""
    found = Recorded()
    by_heat: defaultdict[int, list[LaunchRecord]] = defaultdict(list)
    for launch in store.launch_folders(folder):
        record = _read(launch)
        if record.heat is None:
            found.alone[record.purpose, record.case, record.block] = record
        else:
            by_heat[record.heat].append(record)
    for records in by_heat.values():
        # Of a heat that lacks a launch the others count, and all its cases ride once more.
        if records[0].heat_size in (None, len(records)):
            found.heats.setdefault(records[0].block, []).extend(records)
    numbers = [int(one.name) for one in folder.glob("launches/*") if one.name.isdigit()]
    found.next_launch = max(numbers, default=-1) + 1
    found.last_heat = max(by_heat, default=0)
    return found


def _read(launch: Path) -> LaunchRecord:
    try:
        return store.read_launch(launch)
    except InputError as error:
        raise InputError(f"{error} Remove '{launch}' to have this launch made again.") from None


def check_resumable(folder: Path, verb: str) -> None:
    """InputError: nothing is missing."""
    if sessions.state(folder) == "whole":
        raise InputError(
            f"'{folder}' is whole: nothing is missing. `timetrial show {folder}` shows it; without --resume, "
            f"`timetrial {verb}` measures anew."
        )


def experiment_of(record: ExperimentRecord) -> Experiment:
    """What was asked. InputError: it is no longer the same here."""
    import timetrial

    if record.timetrial_version != timetrial.__version__:
        raise InputError(
            f"'{record.id}' was begun by timetrial {record.timetrial_version}, this is "
            f"{timetrial.__version__}: its launches could not be compared. Measure anew: {record.again}"
        )
    experiment = Experiment.from_dict(record.spec)
    before, now = [one.id for one in record.cases], [one.case.id for one in experiment.cases]
    if before != now:
        raise InputError(
            f"'{record.id}' has {len(before)} cases; the same words now say {len(now)}, "
            f"{len(set(before) & set(now))} of them the same: something was installed, removed or renamed "
            f"since. Measure anew: {record.again}"
        )
    return experiment


def as_begun(record: ExperimentRecord, ready: Sequence[ReadyCase]) -> list[ReadyCase]:
    """Cases that could not be had then stay so: their rows say it already. InputError: one that could be had
    cannot be had any more."""
    found = []
    for before, one in zip(record.cases, ready, strict=True):
        if before.unavailable is None and one.unavailable is not None:
            raise InputError(
                f"'{record.id}' was begun with {one.case.backend}, which is unavailable now: "
                f"{one.unavailable}. Mend that, or measure anew: {record.again}"
            )
        found.append(replace(one, unavailable=before.unavailable))
    return found


def changes(record: ExperimentRecord, machine: Mapping[str, Any]) -> list[str]:
    """Facts of the machine that differ, in words. InputError: it is another machine."""
    before = record.machine
    keys = [key for key in {**before, **machine} if before.get(key) != machine.get(key)]
    other = [key for key in keys if key in SAME_MACHINE]
    if other:
        raise InputError(
            f"'{record.id}' was begun on another machine: {_words(other, before, machine)}. "
            f"Resume it there, or measure anew: {record.again}"
        )
    return [_words([key], before, machine) for key in keys if key not in MOMENTARY]


def _words(keys: Iterable[str], before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} was {before.get(key)}, is {now.get(key)}" for key in keys)


@contextmanager
def session(folder: Path) -> Iterator[None]:
    """While something is measured into `folder`. Whatever ends it early, launches without a record go: a
    signal may come between any two lines of one, or of whoever began it. InputError: another process measures
    into it."""
    from timetrial.launch import end_heats, remove_unfinished

    with stopped_like_ctrl_c(), sessions.session(folder):
        try:
            yield
        except BaseException:
            end_heats()
            remove_unfinished(folder)
            raise


def begin_again(folder: Path, record: ExperimentRecord, machine: Mapping[str, Any]) -> None:
    """Takes away what launches without a record have left, and notes the session."""
    from timetrial.launch import remove_unfinished

    changed = changes(record, machine)
    remove_unfinished(folder)
    sessions.write_resumed(
        folder, launches=len(store.launch_folders(folder)), machine=dict(machine), changed=changed
    )


def look_at_unfinished(
    results: Path,
    experiment: Experiment,
    verb: Literal["run", "race"],
    read: Callable[[Path], ExperimentRecord],
) -> list[str]:
    """Before something new is measured: what runs that were killed have left goes, all but their records;
    says where the same was begun and not finished. `read`: the record of such a folder, or InputError."""
    from timetrial.launch import remove_unfinished

    asked = experiment.spec.model_dump(mode="json", exclude_none=True)
    words = []
    for folder in sessions.unfinished(results):
        remove_unfinished(folder)
        try:
            record = read(folder)
        except InputError:
            continue
        if record.spec == asked and not record.profiles:
            place = near(folder.absolute())
            words.append(Caution.BEGUN.words(place=place, cure=sessions.resuming(folder, verb)))
    return words
