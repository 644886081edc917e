"""The order of the data: batches of sequences of like length, the same for every contender; who cannot have
them hears why."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sequence_networks import CARRIED, FULL

from timetrial.cases.case import Case, Workload
from timetrial.errors import InputError
from timetrial.workloads import check, load_network, prepare
from timetrial.workloads.orders import order_entry

pytestmark = pytest.mark.usefixtures("cache")

LENGTHS = np.arange(1, 103, dtype=np.int64) % 29 + 1


def order(seed: int = 1, **how: int) -> NDArray[np.int64]:
    """Two epochs of 102 samples in batches of four."""
    entry = order_entry(102, 4, 2, seed, LENGTHS, **how)
    return np.load(entry.file("order.npy"))


def ranges(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """From the shortest to the longest of each batch."""
    return np.ptp(LENGTHS[rows], axis=1)


@pytest.mark.parametrize("buckets", [1, 2, 5, 25])
def test_an_epoch_has_every_sample_but_those_that_fill_no_batch(buckets: int) -> None:
    for epoch in np.split(order(buckets=buckets), 2):
        assert epoch.shape == (25, 4)
        assert len(np.unique(epoch)) == 100


def test_a_batch_is_of_one_group_of_like_length_and_groups_come_in_any_order() -> None:
    plain, some, most = (order(buckets=buckets) for buckets in (1, 5, 25))
    assert ranges(plain).mean() > 2 * ranges(some).mean() > 2 * ranges(most).mean()
    first = some[:25]
    longest = LENGTHS[first].max(axis=1)
    assert sorted(longest) != list(longest)
    groups = np.split(first[np.argsort(LENGTHS[first].mean(axis=1), kind="stable")], 5)
    for shorter, longer in itertools.pairwise(groups):
        assert LENGTHS[shorter].max() <= LENGTHS[longer].min()


def test_seed_and_epoch_change_it_and_nothing_else() -> None:
    assert np.array_equal(order(buckets=5), order(buckets=5))
    assert not np.array_equal(order(buckets=5), order(seed=2, buckets=5))
    first, second = np.split(order(buckets=5), 2)
    assert not np.array_equal(first, second)
    assert not np.array_equal(order(buckets=1), order(buckets=5))


def test_lengths_alone_leave_the_order_as_it_was() -> None:
    without = np.load(order_entry(102, 4, 2, 1).file("order.npy"))
    assert np.array_equal(without, order(buckets=1))


def vowels(**how: object) -> Workload:
    """A network that reads lengths."""
    known = load_network("lstm-vowels")
    return dataclasses.replace(
        Workload(known.name, known.dataset, known.batch_size, dict(known.optimizer)), **how
    )


def test_it_is_another_workload_and_another_case() -> None:
    plain, sorted_by_length = vowels(), vowels(buckets=4)
    ids = [Case("eigen", workload).id for workload in (plain, sorted_by_length)]
    assert ids[0] != ids[1]
    prepared = [prepare(workload, seed=1, epochs=1) for workload in (plain, sorted_by_length)]
    assert prepared[0].fingerprint != prepared[1].fingerprint
    files = [one.job["streams"]["train"]["order"] for one in prepared]
    assert files[0] != files[1]


def test_how_long_the_sequences_of_a_batch_are_is_known() -> None:
    prepared = prepare(vowels(buckets=4), seed=1, epochs=1)
    assert prepared.durations is not None
    train = prepared.job["streams"]["train"]
    lengths, rows = np.load(train["tensors"]["lengths"]), np.load(train["order"])
    assert np.array_equal(prepared.durations.of_batches(3), lengths[rows[:3]])
    assert len(prepared.durations.of_batches(10**9)) == len(rows)
    assert prepared.durations.longest == np.load(train["tensors"]["series"], mmap_mode="r").shape[1]
    language = load_network("lstm-lm")
    own = Workload("lstm-lm", language.dataset, 20, dict(language.optimizer))
    assert prepare(own, seed=1, epochs=1).durations is None


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("network", "buckets", "words"),
    [
        ("lenet5", 4, "buckets is 4, but the network 'lenet5' reads no lengths"),
        ("lstm-lm", 2, "reads no lengths: there is nothing to sort its samples by"),
        ("lstm-vowels", 1000, r"buckets is 1000, but an epoch of 'synthetic-series' has \d+ batches of 16"),
    ],
)
def test_groups_that_cannot_be(network: str, buckets: int, words: str) -> None:
    known = load_network(network)
    own = Workload(network, known.dataset, known.batch_size, dict(known.optimizer), buckets=buckets)
    with pytest.raises(InputError, match=words):
        check(own)


def test_where_a_network_goes_on_each_place_of_the_batch_reads_on_through_the_text() -> None:
    rows = np.load(order_entry(102, 4, 5, 1, goes_on=True).file("order.npy"))
    assert rows.shape == (5 * 25, 4)
    for epoch in np.split(rows, 5):
        assert np.array_equal(np.sort(epoch, axis=None), np.arange(100))
    # Only behind the end of the text a place begins at its beginning.
    steps = np.diff(rows, axis=0)
    assert set(np.unique(steps)) == {1, -99}
    assert np.count_nonzero(steps == -99) == 4
    assert np.array_equal(rows, np.load(order_entry(102, 4, 5, 2, goes_on=True).file("order.npy")))


def test_a_network_that_goes_on_wants_samples_that_do(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    for text, data, words in (
        (CARRIED, "synthetic-language@6", None),
        (FULL.replace('"lstm",', '"stateful_lstm",'), "synthetic-series", "do not follow on each other"),
    ):
        own.write_text(text, encoding="utf-8")
        workload = Workload(str(own), data, 6, dict(load_network(str(own)).optimizer))
        if words is None:
            assert check(workload).samples > 6
            continue
        with pytest.raises(InputError, match=rf"\(stateful_lstm\) .* {words}"):
            check(workload)
