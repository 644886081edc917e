"""What an experiment's record says before anything is measured: cases, workloads, machine, peak."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from timetrial.cases.case import NO_NETWORK
from timetrial.cases.cases import DEFAULT_NETWORK, names_no_network
from timetrial.cases.spec import Spec
from timetrial.cautions import Caution
from timetrial.contenders.functions import short_names
from timetrial.experiment.effort import planned
from timetrial.experiment.engine import Engine
from timetrial.experiment.experiment import Experiment
from timetrial.experiment.memory import on_paper
from timetrial.experiment.validate import ReadyCase
from timetrial.proving.sharing import proof_group
from timetrial.records.model import CaseRecord, ExperimentRecord, LayerWork

if TYPE_CHECKING:
    from timetrial.core.network import Network
    from timetrial.launch import Limits
    from timetrial.workloads import Prepared

MORE = 1.2  # that more threads do of what fewer do, at least, unless others disturb or they share a core


def prepare_files(engine: Engine, one: ReadyCase, spec: Spec, seed: int) -> Prepared:
    """The files of a launch; none where the contender looks at no data."""
    reads_data = one.contender is None or "reads_no_data" not in one.contender.flags
    return engine.prepare(one.case.workload, seed, spec.train.epochs if spec.train else 1, reads_data)


def limits_of(spec: Spec) -> Limits:
    """When a launch of this experiment loses patience."""
    from timetrial.launch import Limits

    limits, asked = Limits(), spec.measure
    if asked.start_timeout_s is not None:
        limits = replace(limits, start_timeout_s=float(asked.start_timeout_s))
    if asked.progress_timeout_s is not None:
        limits = replace(limits, progress_timeout_s=float(asked.progress_timeout_s))
    return limits


def experiment_record(
    experiment: Experiment,
    ready: Sequence[ReadyCase],
    engine: Engine,
    *,
    peaks: bool = True,
    bandwidths: bool = False,
) -> ExperimentRecord:
    """What experiment.json says. `peaks` measures the machine's peak for each number of threads, a second
    each; `bandwidths` that of memory and caches, as long."""
    import timetrial

    spec, machine, sizes = experiment.spec, engine.machine(), experiment.sizes
    able = sum(one.unavailable is None for one in ready)
    speed = planned(sizes, able, isolated=spec.measure.isolated)
    # A callable that was given no network has no share of a peak, and no data that could be described.
    live = [one for one in ready if one.unavailable is None and one.case.workload.network != NO_NETWORK]
    everything = str(machine.get("usable_cpus", 1))
    counts = {int(one.case.settings.get("threads", everything)) for one in live}
    if any("threads" not in one.case.settings for one in live):
        counts.add(1)  # some backends use one thread unless asked
    workloads = {}
    for one in live:
        workloads[repr(one.case.workload)] = prepare_files(engine, one, spec, spec.seed).description
    called = short_names(one.case.backend for one in ready)
    return ExperimentRecord(
        id="",
        name=spec.name,
        question=spec.question,
        seed=spec.seed,
        created_at=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        timetrial_version=timetrial.__version__,
        again=experiment.again_with("run"),
        spec=spec.model_dump(mode="json", exclude_none=True),
        cases=[_case_record(one, called, shared=spec.measure.learning == "once") for one in ready],
        reference=spec.measure.reference,
        launches=speed.fewest,
        half_width=speed.half_width,
        learning_seeds=experiment.sizes.learning_seeds if spec.train else 0,
        resource_launches=spec.measure.resource_launches,
        workloads=list(workloads.values()),
        machine=machine,
        warnings=[
            *([Caution.NO_NETWORK.words(network=DEFAULT_NETWORK)] if names_no_network(spec) else []),
            *experiment.remarks,
        ],
        peak_flops=measured_peaks(counts, engine.peak_flops) if peaks else {},
        memory_bandwidth=measured_peaks(counts, engine.memory_bandwidth, gain=1) if bandwidths else {},
        cache_bandwidth=measured_peaks(counts, engine.cache_bandwidth) if bandwidths else {},
        harness=engine.harness(),
    )


def measured_peaks(
    counts: Collection[int], measure: Callable[[int], float], *, gain: float = MORE
) -> dict[str, float]:
    """By number of threads. Others only take away: where more threads do not beat fewer by this factor, all
    are measured again, up to three times, and the best counts."""
    found = {count: measure(count) for count in sorted(counts)}
    for _ in range(2):
        best = list(found.values())
        if all(more >= gain * fewer for fewer, more in itertools.pairwise(best)):
            break
        found = {count: max(flops, measure(count)) for count, flops in found.items()}
    return {str(count): flops for count, flops in found.items()}


def _case_record(one: ReadyCase, called: Mapping[str, str], *, shared: bool) -> CaseRecord:
    case, network = one.case, one.checked.network if one.checked else None
    needed = on_paper(one)
    return CaseRecord(
        id=case.id,
        axes=dict(case.axes),
        backend=case.backend,
        network=case.workload.network,
        dataset=case.workload.dataset,
        batch_size=case.workload.batch_size,
        optimizer=dict(case.workload.optimizer),
        task=case.task,
        settings=dict(case.settings),
        buckets=case.workload.buckets,
        training=case.training_id if shared else None,
        proof=proof_group(one),
        multiply_accumulates=network.multiply_accumulates(case.task) if network else None,
        parameters=network.parameter_count if network else None,
        least_bytes=asdict(needed) if needed else None,
        layers=_layer_work(network) if network else [],
        unavailable=one.unavailable,
        called=called.get(case.backend),
    )


def _layer_work(network: Network) -> list[LayerWork]:
    return [
        LayerWork(
            name=node["name"],
            kind=node["kind"],
            parameters=sum(
                math.prod(one["shape"]) for one in node["parameters"] if one["role"] == "parameter"
            ),
            **network.work(node["name"]),
        )
        for node in network.nodes
    ]
