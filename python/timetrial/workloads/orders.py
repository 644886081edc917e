"""Which sample is in which step, and how long the sequences of a step are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from timetrial import npy
from timetrial.cases.case import Workload
from timetrial.core import Network, layer_traits, random
from timetrial.errors import InputError
from timetrial.workloads.cache import Content, Entry, cached
from timetrial.workloads.material import fingerprint

Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Durations:
    """How long the sequences of each training step are."""

    lengths: Whole  # (samples): steps that count
    order_file: Path  # i64 (batches, batch size): samples of each training step
    longest: int  # T: how long a sequence can be

    def of_batches(self, first: int) -> Whole:
        """(steps, batch size): lengths in the first so many training steps, or in all that the order has."""
        order = npy.mapped(self.order_file)
        found: Whole = self.lengths[order[:first]]
        return found


def lengths_name(network: Network) -> str | None:
    """The first input of lengths that the network reads; None: it reads none."""
    return next((one.name for one in network.inputs if one.role == "lengths"), None)


def lengths_of(network: Network, data: Entry) -> Whole | None:
    """(samples): of the training set, by the first input of lengths that the network reads; None: it reads
    none."""
    name = lengths_name(network)
    if name is None:
        return None
    lengths: Whole = np.asarray(data.array(f"train_{name}"), np.int64)
    return lengths


def longest_of(network: Network) -> int:
    """How long a sequence can be, of a network that reads lengths."""
    name = lengths_name(network)
    assert name is not None
    return network.values_below(name) - 1


def check_buckets(workload: Workload, network: Network, samples: int) -> None:
    """InputError: batches cannot be made of so many groups of like length."""
    buckets, size = workload.buckets, workload.batch_size
    if buckets == 1 or size is None:
        return
    if lengths_name(network) is None:
        raise InputError(
            f"buckets is {buckets}, but the network '{workload.network}' reads no lengths: there is nothing "
            "to sort its samples by. Leave buckets out, or take a network over sequences of unequal lengths: "
            "lstm-vowels."
        )
    if buckets > samples // size:
        raise InputError(
            f"buckets is {buckets}, but an epoch of '{workload.dataset}' has {samples // size} batches of "
            f"{size}; expected at most as many groups."
        )


def check_goes_on(workload: Workload, network: Network, data: Entry) -> None:
    """InputError: the network goes on from batch to batch, and these samples do not."""
    if not network.carries_state or data.table("dataset").get("goes_on"):
        return
    layer = next(one for one in network.nodes if layer_traits(one["kind"]).carries_state)
    raise InputError(
        f"layer '{layer['name']}' ({layer['kind']}) of the network '{workload.network}' goes on in each "
        f"batch where the one before ended, but the samples of '{workload.dataset}' do not follow on each "
        "other. Take a long text (austen, ptb, synthetic-language), or a layer that begins anew: lstm."
    )


def order_entry(
    samples: int,
    batch_size: int,
    epochs: int,
    seed: int,
    lengths: Whole | None = None,
    buckets: int = 1,
    *,
    goes_on: bool = False,
) -> Entry:
    """`order`, i64 (epochs * batches, batch_size): a permutation per epoch, cut into full batches.

    What does not fill a batch is left out of its epoch; every epoch leaves out other samples. With several
    `buckets` the rest is sorted by length and cut into so many groups of whole batches; each is shuffled and
    makes its batches, and these come in any order. All of it depends on lengths and seed alone.

    Where the network `goes_on`, each place of the batch reads a part of the samples of its own, one behind
    the other, and in the next epoch the part behind that: the same for every seed.
    """
    batches = samples // batch_size
    recipe: dict[str, object] = {"samples": samples, "batch_size": batch_size, "epochs": epochs, "seed": seed}
    if buckets > 1:
        assert lengths is not None
        recipe |= {"buckets": buckets, "lengths": fingerprint(lengths.tolist())}
    if goes_on:
        assert buckets == 1  # data that go on have no lengths to sort by: check_buckets()
        recipe |= {"goes_on": True}

    def epoch_order(epoch: int) -> Whole:
        if goes_on:
            parts = np.arange(batches * batch_size, dtype=np.int64).reshape(batch_size, batches)
            rows: Whole = np.roll(parts, -epoch, axis=0).T
            return rows
        drawn = random.permutation(seed, f"order/{epoch}", samples)[: batches * batch_size]
        if buckets > 1 and lengths is not None:
            drawn = _bucketed(drawn, lengths, batch_size, buckets, seed, epoch)
        return drawn.reshape(batches, batch_size).astype(np.int64, copy=False)

    def make() -> Content:
        return {"order": np.concatenate([epoch_order(epoch) for epoch in range(epochs)])}

    return cached("order", recipe, make)


def _bucketed(drawn: Whole, lengths: Whole, batch_size: int, buckets: int, seed: int, epoch: int) -> Whole:
    """The same samples, those of a batch from one group of like length."""
    drawn = drawn[np.argsort(lengths[drawn], kind="stable")]  # alike ones stay as they were drawn
    batches = []
    for number, places in enumerate(np.array_split(np.arange(len(drawn) // batch_size), buckets)):
        group = drawn[places[0] * batch_size : (places[-1] + 1) * batch_size]
        mixed = random.permutation(seed, f"order/{epoch}/bucket/{number}", len(group))
        batches.append(group[mixed].reshape(len(places), batch_size))
    rows = np.concatenate(batches)
    found: Whole = rows[random.permutation(seed, f"order/{epoch}/batches", len(rows))]
    return found
