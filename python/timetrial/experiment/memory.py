"""Whether contenders fit in memory together, by what their proofs held at most."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from timetrial.errors import InputError, MeasurementError
from timetrial.optimizers import kept_states
from timetrial.proc import read_proc
from timetrial.proof.parts import part_of
from timetrial.records.store import read_launch

if TYPE_CHECKING:
    from timetrial.core.network import LeastBytes
    from timetrial.experiment.validate import ReadyCase

MARGIN = 1.25  # a heat holds more than the proofs that told us how much
UNKNOWN_BYTES = 4 * 2**30  # left to each proof at least: nobody knows yet what it needs
# What judging holds at its peak, over the judge's values and weights (all layers, in double precision):
# ResNet-50 on four images 5.9 GB over 1.4. A judge of whole batches is asked for losses only: it holds values
# and gradients, and what its products need.
JUDGED, JUDGED_WHOLE = 5, 3
OVER_PAPER = 3  # of what it needs on paper, that a proof may take: libraries pack and transpose


def available_bytes(proc: Path = Path("/proc"), cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """What could be taken without swapping, by the kernel, and no more than the container's limit leaves: of
    what it uses, the kernel gives back the files that nobody has read lately."""
    lines = dict(line.split(":", 1) for line in read_proc("meminfo", proc).splitlines() if ":" in line)
    free = int(lines["MemAvailable"].split()[0]) * 1024
    for limit, used, details, files in (
        ("memory.max", "memory.current", "memory.stat", "inactive_file"),
        (
            "memory/memory.limit_in_bytes",
            "memory/memory.usage_in_bytes",
            "memory/memory.stat",
            "total_inactive_file",
        ),
    ):
        if (cgroup / limit).is_file() and (cgroup / used).is_file():
            most = (cgroup / limit).read_text().strip()
            if most.isdigit():
                idle = _value_of(files, cgroup / details)
                free = min(free, int(most) - int((cgroup / used).read_text()) + idle)
    return free


def _value_of(name: str, file: Path) -> int:
    lines = file.read_text().splitlines() if file.is_file() else []
    return next((int(line.split()[1]) for line in lines if line.split()[0] == name), 0)


def on_paper(one: ReadyCase) -> LeastBytes | None:
    """What the case needs at least; None: nobody can say. A step of the user's own computes what it likes,
    and a backend that reads no data nothing."""
    network = one.checked.network if one.checked else None
    if network is None or one.contender is None:
        return None
    if one.contender.kind == "callable" or "reads_no_data" in one.contender.flags:
        return None
    case = one.case
    states = len(kept_states(case.workload.optimizer)) if case.task == "train" else 0
    return network.least_bytes(case.task, states)


def least_bytes(one: ReadyCase) -> int:
    """The same as a number; 0: nobody can say."""
    least = on_paper(one)
    return least.total if least is not None else 0


def too_large(one: ReadyCase, free: int) -> str | None:
    """Why a contender cannot have the memory that it needs on paper; None: it may have."""
    case, needed = one.case, on_paper(one)
    if needed is None or needed.total <= free:
        return None
    what = {"forward": "weights", "gradient": "weights and gradients"}.get(
        case.task, "weights, gradients and the optimizer's states"
    )
    return (
        f"too large for memory: on paper {case.workload.network} needs at least {_gb(needed.total)} "
        f"({_gb(needed.parameters)} of {what}, {_gb(needed.activations)} of a batch of "
        f"{case.workload.batch_size}), and {_gb(free)} are free. Take a smaller batch_size or network"
    )


def _gb(size: int) -> str:
    return f"{size / 2**30:.2f} GB"


def judged_bytes(one: ReadyCase) -> int:
    """What judging the case's proof takes in this process; 0: there is nothing to judge."""
    network = one.checked.network if one.checked else None
    if network is None:
        return 0
    part = part_of(network)
    held = JUDGED * (network.activation_bytes * part // network.batch_size + network.parameter_bytes)
    if network.couples_batch and part < network.batch_size:
        held += JUDGED_WHOLE * network.activation_bytes
    return 2 * held


def proofs_at_once(cases: Sequence[ReadyCase]) -> int:
    """How many of their proofs may run side by side, while another one is judged."""
    largest, judged = (max(map(size, cases), default=0) for size in (least_bytes, judged_bytes))
    return side_by_side_at_most(len(cases), largest, judged)


def side_by_side_at_most(launches: int, largest: int = 0, judged: int = 0) -> int:
    """How many of them may run, with nothing timed: one for each processor, where memory is plenty.
    `largest`: what one of them needs at least, on paper; `judged`: what this process needs besides."""
    room = (available_bytes() - judged) // max(UNKNOWN_BYTES, OVER_PAPER * largest)
    return max(1, min(launches, len(os.sched_getaffinity(0)), room))


def needed_bytes(folder: Path, one: ReadyCase) -> int:
    """By a contender of the experiment in this folder, with a margin; 0: nobody looked."""
    return int(MARGIN * _held_bytes(folder, one))


def _held_bytes(folder: Path, one: ReadyCase) -> int:
    try:
        return read_launch(folder / "proof" / one.case.content_id).memory.lifetime_peak or 0
    except InputError as error:
        raise MeasurementError(f"{error} What is resumed (--resume) proves it once more.") from None


def fit_twice(folder: Path, sides: Sequence[ReadyCase]) -> bool:
    """Whether the sides may start while as many are still there that end."""
    return int(2 * MARGIN * sum(_held_bytes(folder, one) for one in sides)) <= available_bytes()


def room_for_all(folder: Path, sides: Mapping[str, ReadyCase]) -> str | None:
    """Why they cannot be alive together; None: there is room. `sides`: by name, whose proof tells of it."""
    held = {name: _held_bytes(folder, one) for name, one in sides.items()}
    needed, free = int(MARGIN * sum(held.values())), available_bytes()
    if needed <= free:
        return None
    each = ", ".join(f"{name} {size / 2**20:.0f} MB" for name, size in held.items())
    return (
        f"together the sides need about {needed / 2**20:.0f} MB ({each}), and {free / 2**20:.0f} MB are free"
    )
