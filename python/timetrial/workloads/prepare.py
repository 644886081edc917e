"""A workload made ready: the checked network and the files a contender reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from timetrial.cases.case import NO_NETWORK, Workload
from timetrial.core import Input, Network
from timetrial.errors import InputError
from timetrial.networks import load_network
from timetrial.optimizers import check_optimizer, options_of, rates
from timetrial.workloads.cache import Entry
from timetrial.workloads.gradient_check import check_gradients
from timetrial.workloads.material import (
    PROOF_ORDERS,
    data_entry,
    fingerprint,
    inputs_of,
    masks_entry,
    proof_entry,
    rates_file,
    weights_entry,
)
from timetrial.workloads.orders import (
    Durations,
    check_buckets,
    check_goes_on,
    lengths_of,
    longest_of,
    order_entry,
)
from timetrial.workloads.whole_numbers import check_whole_numbers


@dataclass(frozen=True)
class Prepared:
    """Everything a launch needs to know about its workload.

    `job` has the keys "batch_size", "network" (parameters with their files), "optimizer" and "streams" of the
    job file. `samples` is the size of the training set; an epoch is its full batches. `fingerprint` is the
    same wherever a contender would be given the same arithmetic; `description` goes into the record.
    Of a callable without a network: None, "null" in the job, and 0 samples.
    """

    network: Network | None
    job: dict[str, Any]
    batch_size: int | None
    steps_per_epoch: int
    samples: int
    test_samples: int
    classes: int
    fingerprint: str
    description: dict[str, Any]
    durations: Durations | None = None  # of the batches of sequences; None: the network reads no lengths


@dataclass(frozen=True)
class Checked:
    """A workload in which nothing is wrong: network, dataset, batch size and optimizer fit each other. Of a
    callable without a network: None and 0 samples."""

    network: Network | None
    data: Entry | None
    optimizer: dict[str, Any]
    samples: int
    test_samples: int
    classes: int
    has_accuracy: bool  # it predicts classes


def check(workload: Workload) -> Checked:
    """Raises the InputError that a wrong workload deserves; makes no weights and no order.

    Unavailable: the dataset needs a package that is not installed.
    """
    if workload.network == NO_NETWORK:
        return Checked(None, None, {}, samples=0, test_samples=0, classes=0, has_accuracy=False)
    definition = load_network(workload.network)
    optimizer = check_optimizer(workload.optimizer)
    size = workload.batch_size
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise InputError(f"batch_size is {size!r}; expected a whole number of at least 1.")
    data = data_entry(workload.dataset, workload.dataset_folder)
    inputs = inputs_of(data)
    samples, test_samples = (len(data.array(f"{part}_{inputs[0].name}")) for part in ("train", "test"))
    if size > samples:
        raise InputError(
            f"batch_size is {size}, but '{workload.dataset}' has {samples} samples for training; "
            f"expected at most {samples}."
        )
    classes = int(data.table("dataset")["classes"])
    nodes = definition.nodes_for(classes)
    network = Network(nodes, size, _read_by(nodes, inputs))
    check_whole_numbers(workload.dataset, network, data)
    check_buckets(workload, network, samples)
    check_goes_on(workload, network, data)
    check_gradients(network)
    predicts_classes = _predicts_classes(network)
    if predicts_classes:
        _check_output(network, workload, classes)
    return Checked(network, data, optimizer, samples, test_samples, classes, predicts_classes)


def prepare(workload: Workload, *, seed: int, epochs: int, reads_data: bool = True) -> Prepared:
    """Makes what is missing in the cache. `seed` draws weights, order and proof; `epochs` sizes the order.

    Without `reads_data` (a backend that looks at no batch) the job names no file at all.
    """
    if epochs < 1:
        raise InputError(f"epochs is {epochs}; expected at least 1.")
    checked = check(workload)
    network, data, size = checked.network, checked.data, workload.batch_size
    if network is None or data is None or size is None:
        return _nothing(workload)
    job: dict[str, Any] = {
        "batch_size": size,
        "network": network.to_job(),
        "optimizer": _job_optimizer(checked, size, epochs, reads_data=reads_data),
        "streams": {},
    }
    content: dict[str, Any] = {
        "network": network.to_job(),
        "optimizer": checked.optimizer,
        "data": data.hashes(),
    }
    lengths, durations = lengths_of(network, data), None
    if workload.buckets > 1:
        content["buckets"] = workload.buckets
    if reads_data:
        order = order_entry(
            checked.samples, size, epochs, seed, lengths, workload.buckets, goes_on=network.carries_state
        )
        if lengths is not None:
            durations = Durations(lengths, order.file("order.npy"), longest_of(network))
        _add_files(job, network, data, order, seed)
    return Prepared(
        network=network,
        job=job,
        batch_size=size,
        steps_per_epoch=checked.samples // size,
        samples=checked.samples,
        test_samples=checked.test_samples,
        classes=checked.classes,
        fingerprint=fingerprint({**content, "seed": seed, "batch_size": size}),
        description={
            "network": workload.network,
            "dataset": workload.dataset,
            **data.table("dataset"),
            "train_samples": checked.samples,
            "test_samples": checked.test_samples,
            "arrays_sha256": data.hashes(),
        },
        durations=durations,
    )


def _job_optimizer(checked: Checked, batch_size: int, epochs: int, *, reads_data: bool) -> dict[str, Any]:
    """As contenders are told: the options in a list, and of a schedule nothing but its rates."""
    found = {key: value for key, value in checked.optimizer.items() if key != "schedule"}
    options = options_of(checked.optimizer)
    if options:
        found["options"] = options
    if "schedule" in checked.optimizer:
        steps = epochs * (checked.samples // batch_size)
        values = rates(checked.optimizer["schedule"], checked.optimizer["learning_rate"], steps)
        if reads_data:
            found["rates"] = str(rates_file(values))
    return found


def _nothing(workload: Workload) -> Prepared:
    """For a callable that brings its own network and data."""
    return Prepared(
        network=None,
        job={"batch_size": workload.batch_size, "network": None, "optimizer": {}, "streams": {}},
        batch_size=workload.batch_size,
        steps_per_epoch=0,
        samples=0,
        test_samples=0,
        classes=0,
        fingerprint=fingerprint({"network": None, "batch_size": workload.batch_size}),
        description={"network": workload.network, "dataset": workload.dataset},
    )


def _add_files(job: dict[str, Any], network: Network, data: Entry, order: Entry, seed: int) -> None:
    batch_size: int = job["batch_size"]
    weights = weights_entry(network.initial_tensors, seed)
    for node in job["network"]["nodes"]:
        for parameter in node["parameters"]:
            parameter["file"] = str(weights.file(f"{parameter['name']}.npy"))
    limits = {one.name: network.values_below(one.name) for one in network.inputs}
    masks = network.masks
    skipping = [one.name for one in network.inputs if network.values_from(one.name) < 0]
    proof = proof_entry(network.inputs, batch_size, limits, masks, skipping, seed)

    def tensors(entry: Entry, prefix: str = "") -> dict[str, str]:
        brought = [one.name for one in network.inputs if entry is proof or one.name not in masks]
        return {name: str(entry.file(f"{prefix}{name}.npy")) for name in brought}

    train: dict[str, Any] = {"tensors": tensors(data, "train_"), "order": str(order.file("order.npy"))}
    if masks:
        drawn = masks_entry([one for one in network.inputs if one.name in masks], masks, batch_size, seed)
        train["drawn"] = {name: str(drawn.file(f"{name}.npy")) for name in masks}
    job["streams"] = {
        "train": train,
        **{
            name: {"tensors": tensors(proof), "order": str(proof.file(f"{file}.npy"))}
            for name, file in PROOF_ORDERS.items()
        },
        "test": {"tensors": tensors(data, "test_")},
    }


def _predicts_classes(network: Network) -> bool:
    """Whether the loss holds the prediction against labels, so that there is an accuracy."""
    loss = next(node for node in network.nodes if node["name"] == network.output_loss)
    return network.values_below(loss["inputs"][1]) > 0


def _read_by(nodes: Sequence[Mapping[str, Any]], inputs: Sequence[Input]) -> list[Input]:
    """Of what the data bring, that which the network names; its first node may leave that out."""
    named = {name for node in nodes for name in node.get("inputs") or []}
    if nodes and not nodes[0].get("inputs"):
        named.add(inputs[0].name)
    return [one for one in inputs if one.name in named] or list(inputs)


def _check_output(network: Network, workload: Workload, classes: int) -> None:
    """The prediction must be (N, classes), or (N, T, classes) of one for each step: a label beyond it would
    be read from outside the output."""
    shapes: Mapping[str, Any] = {node["name"]: node["shape"] for node in network.nodes}
    shape = list(shapes[network.output])
    if shape[-1] != classes:
        raise InputError(
            f"The output '{network.output}' of the network '{workload.network}' has the shape {shape}, but "
            f"the dataset '{workload.dataset}' has {classes} classes; expected {[*shape[:-1], classes]}. "
            'In a network of your own, units = "classes" always fits.'
        )
