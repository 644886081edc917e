"""From an experiment to its cases: lists inside a contender span a product, tables add up, axes span all."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from timetrial.cases.case import NO_NETWORK, RESERVED_AXES, TASKS, Case, Workload
from timetrial.cases.grammar import nested
from timetrial.cases.keys import (
    CASE_KEYS,
    OPTIMIZER_PREFIX,
    SIZE_KEYS,
    backend_name,
    callable_word,
    is_callable_word,
    is_setting,
    is_workload,
    setting_word,
)
from timetrial.cases.spec import Spec
from timetrial.errors import OWN_STEP, InputError, nearest
from timetrial.toml import as_values

if TYPE_CHECKING:
    from timetrial.networks.definition import NetworkDefinition

DEFAULT_NETWORK = "lenet5"  # of a backend for which none is named
Point = dict[str, Any]  # flat key -> one value


@dataclass(frozen=True)
class PlannedCase:
    """A case, or why it cannot be launched on this machine."""

    case: Case  # what will be measured
    unavailable: str | None = None  # why it cannot be, in words; None: it can


def names_no_network(spec: Spec) -> bool:
    """Whether a backend of the experiment has no network, so that it gets DEFAULT_NETWORK."""
    everywhere = "network" in spec.workload or "network" in spec.axes
    return not everywhere and any(
        "network" not in table and "callable" not in {*table, *spec.axes} for table in spec.contender or [{}]
    )


def usable_cpus() -> int:
    """CPUs that this process may use: its mask, not the machine's count."""
    return len(os.sched_getaffinity(0))


def expand(
    spec: Spec, load_network: Callable[[str], NetworkDefinition], *, cpus: int | None = None
) -> list[PlannedCase]:
    """All cases in the order of the file. `cpus`: the CPUs of this process unless a test says otherwise."""
    points = _points(spec)
    varying = _varying(points)
    planned: list[PlannedCase] = []
    seen: dict[str, int] = {}
    for point in points:
        case, unavailable = _case(point, varying, load_network)
        unavailable = unavailable or _thread_problem(point, varying, cpus or usable_cpus())
        count = seen[case.id] = seen.get(case.id, 0) + 1
        if count > 1:  # an A/A case: the same content, measured once more on its own
            case = replace(case, repeat=count)
        planned.append(PlannedCase(case, unavailable))
    if any(one.case.repeat > 1 for one in planned):
        planned = [replace(one, case=_with_axis(one.case, "repeat", one.case.repeat)) for one in planned]
    return planned


def _points(spec: Spec) -> list[Point]:
    tables = spec.contender or [{}]
    _check_number(spec, tables)
    points = [
        {**spec.workload, **contender, **axes}
        for table in tables
        for contender in _product(table)
        for axes in _product(spec.axes)
    ]
    return [_with_backend(point, spec.name) for point in points]


def _check_number(spec: Spec, tables: Sequence[Mapping[str, Any]]) -> None:
    """InputError for more cases than anybody means to have."""
    spans = [{key: len(as_values(value)) for key, value in {**one, **spec.axes}.items()} for one in tables]
    number = sum(math.prod(lengths.values()) for lengths in spans)
    if number > spec.measure.most_cases:
        most: dict[str, int] = {}
        for lengths in spans:
            most.update({key: max(length, most.get(key, 0)) for key, length in lengths.items()})
        product = " x ".join(f"{key} ({length})" for key, length in most.items() if length > 1)
        contenders = f", {len(tables)} contenders" if len(tables) > 1 else ""
        raise InputError(
            f"The experiment '{spec.name}' has {number:,} cases: {product}{contenders}. Expected at most "
            f"{spec.measure.most_cases:,}: take values out, or ask for them with most_cases={number}."
        )


def _with_backend(point: Point, experiment: str) -> Point:
    """Who computes stands under `backend`: a callable's word too, which may do without a network."""
    if "callable" in point:
        if "backend" in point:
            raise InputError(
                f"The experiment '{experiment}' has a contender with both callable = {point['callable']!r} "
                f"and backend = {point['backend']!r}. Write two contenders."
            )
        return {"backend": callable_word(point["callable"])} | {
            key: value for key, value in point.items() if key != "callable"
        }
    if "backend" not in point:
        raise InputError(
            f"The experiment '{experiment}' has a contender without a backend. "
            "Name one: backend=eigen. `timetrial list` shows all. A step of your own: "
            "callable=package.module:function."
        )
    if is_callable_word(str(point["backend"])):
        raise InputError(
            f"The backend {point['backend']!r} is a function of yours: write callable={point['backend']}."
        )
    return {"network": DEFAULT_NETWORK} | point | {"backend": backend_name(point["backend"])}


def _product(table: Mapping[str, Any]) -> list[Point]:
    keys = list(table)
    return [
        dict(zip(keys, values, strict=True))
        for values in itertools.product(*(as_values(table[key]) for key in keys))
    ]


def _varying(points: list[Point]) -> list[str]:
    """Keys with more than one value, or that some contenders lack, in order of appearance."""
    keys = list(dict.fromkeys(key for point in points for key in point))
    return [key for key in keys if len({repr(point.get(key)) for point in points}) > 1]


def _case(
    point: Point, varying: list[str], load_network: Callable[[str], NetworkDefinition]
) -> tuple[Case, str | None]:
    workload = _workload(point, load_network)
    words = {key: _word(point, key) for key in CASE_KEYS if key in point}
    task = words.get("task", "train")
    if task not in TASKS:
        raise InputError(f"There is no task '{task}'.{nearest(task, TASKS)}")
    settings = {key: setting_word(value) for key, value in point.items() if is_setting(key)}
    case = Case(
        backend=words["backend"],
        workload=workload,
        task=task,
        device=words.get("device", "cpu"),
        dtype=words.get("dtype", "f32"),
        semantics=words.get("semantics", "equal"),
        settings=settings,
    )
    shown: dict[str, Any] = {
        "backend": case.backend,
        "network": workload.network,
        "threads": point.get("threads"),
        "task": case.task,
        "device": case.device,
        "dtype": case.dtype,
        "semantics": case.semantics,
    }
    shown.update({key: point.get(key) for key in varying if key not in RESERVED_AXES})
    return replace(case, axes=shown), _reserved_problem(case)


def _reserved_problem(case: Case) -> str | None:
    """Values that the grammar has and this version does not."""
    for key, value, only in (
        ("device", case.device, "cpu"),
        ("dtype", case.dtype, "f32"),
        ("semantics", case.semantics, "equal"),
    ):
        if value != only:
            return f"{key} '{value}' is not supported yet (only '{only}').{OWN_STEP}"
    return None


def _workload(point: Point, load_network: Callable[[str], NetworkDefinition]) -> Workload:
    if point.get("network", NO_NETWORK) == NO_NETWORK and is_callable_word(point["backend"]):
        return _no_workload(point)
    network = _word(point, "network")
    sizes = {key: _count(key, point[key]) for key in SIZE_KEYS if key in point}
    if sizes:
        network = f"{network}@{sizes.get('width', '')}x{sizes.get('depth', '')}"
    definition = load_network(network)
    batch_size = _count("batch_size", point.get("batch_size", definition.batch_size))
    given = nested(
        {
            key.removeprefix(OPTIMIZER_PREFIX): value
            for key, value in point.items()
            if key.startswith(OPTIMIZER_PREFIX)
        }
    )
    # A named optimizer starts from its own defaults; single keys change the network's.
    optimizer = given if "name" in given else {**definition.optimizer, **given}
    folder = point.get("dataset_folder")
    return Workload(
        network=definition.name if sizes else network,
        dataset=_word(point, "dataset") if "dataset" in point else definition.dataset,
        batch_size=batch_size,
        optimizer=optimizer,
        dataset_folder=None if folder is None else str(folder),
        buckets=_count("buckets", point.get("buckets", 1)),
    )


def _no_workload(point: Point) -> Workload:
    """Of a callable that brings its own: all that may be said of it is how many samples a step has."""
    for key in point:
        if is_workload(key) and key not in ("network", "batch_size"):
            raise InputError(
                f"{key} is {point[key]!r}, but the callable '{point['backend']}' has no network of ours to "
                f"go with it. Leave {key} out, or name the network that it trains: network=lenet5."
            )
    size = point.get("batch_size")
    return Workload(NO_NETWORK, NO_NETWORK, None if size is None else _count("batch_size", size), {})


# What a number counts.
_COUNTED = {"batch_size": "samples", "width": "units", "depth": "layers", "buckets": "groups"}


def _count(key: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InputError(f"{key} is {value!r}; expected a whole number of {_COUNTED[key]}, at least 1.")
    return value


def _word(point: Point, key: str) -> str:
    value = point[key]
    if not isinstance(value, str) or not value:
        raise InputError(f"{key} is {value!r}; expected a name.")
    return value


def _thread_problem(point: Point, varying: Collection[str], cpus: int) -> str | None:
    """More threads than CPUs: bad input for one value asked, an unavailable row in an axis."""
    if "threads" not in point:
        return None
    threads = point["threads"]
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        raise InputError(
            f"threads is {threads!r}; expected a whole number from 1 to {cpus} (CPUs this process may use)."
        )
    if threads <= cpus:
        return None
    reason = f"threads {threads}: this process may use {cpus} CPU{'s' if cpus > 1 else ''}"
    if "threads" not in varying:
        raise InputError(
            f"{reason}. Ask for {cpus} or fewer, or give timetrial more CPUs (taskset, container limits)."
        )
    return reason


def _with_axis(case: Case, name: str, value: Any) -> Case:
    return replace(case, axes={**case.axes, name: value})
