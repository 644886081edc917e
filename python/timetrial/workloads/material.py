"""What a contender reads: data, initial weights, order, proof batches. All through the cache."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetrial import npy
from timetrial.core import Input, random
from timetrial.datasets import dataset_source, load_dataset
from timetrial.datasets.facts import facts_of
from timetrial.workloads.cache import Content, Entry, cached

PROOF_BATCHES = 5
SHORTER = (2, 4)  # of these: batches whose longest sequence is shorter than there is room for, by
SHORTER_SHARE = 5 / 8
MASK_ROWS, MASK_BYTES = 997, 64_000_000  # of one mask: how many different rows there are at most
# Streams of the proof, and the orders in which they have the same batches.
PROOF_ORDERS = {"proof": "order", "proof2": "other_order", "proof3": "same_order"}
SPLIT_SEED = (
    0  # every launch of every experiment sees the same split; weights and order follow the launch's seed
)


def data_entry(name: str, folder: str | None) -> Entry:
    """For each input NAME of the data the arrays train_NAME and test_NAME; the table `dataset`, with what was
    found in the samples under `checks`, and of the inputs the table `inputs`, in their order. Of inputs that
    are numbers of words the table `vocabularies`: the words by their numbers.

    A dataset of files is keyed by what is in them, so other files under the same name are another entry.
    """
    source = dataset_source(name)
    files = source.contents(folder)

    def make() -> Content:
        data = load_dataset(name, folder, SPLIT_SEED)
        return {
            **{f"train_{name}": array for name, array in data.train.items()},
            **{f"test_{name}": array for name, array in data.test.items()},
            "inputs": {"inputs": [asdict(one) for one in data.inputs]},
            "dataset": {
                "classes": data.classes,
                **data.description,
                **({"goes_on": True} if data.goes_on else {}),
                "checks": facts_of(data),
            },
            **({"vocabularies": dict(data.vocabularies)} if data.vocabularies else {}),
        }

    return cached(
        "data-3", {"dataset": name, "version": source.version, "seed": SPLIT_SEED, "files": files}, make
    )


def inputs_of(data: Entry) -> list[Input]:
    """What every batch of a data entry brings."""
    return [Input(**{**one, "shape": tuple(one["shape"])}) for one in data.table("inputs")["inputs"]]


def channels_last(file: Path) -> Path:
    """The images (n, C, H, W) of a file in the cache as (n, H, W, C): arranged once, before any contender
    starts."""

    def make() -> Content:
        images = npy.mapped(file)
        return {file.stem: images.transpose(0, 2, 3, 1)}

    # A file of the cache never changes.
    return cached("channels-last", {"file": str(file)}, make).file(file.name)


def weights_entry(parameters: Sequence[Mapping[str, Any]], seed: int) -> Entry:
    """One array per parameter, under its name: what its initializer draws."""

    def make() -> Content:
        return {one["name"]: random.initial_values(seed, one) for one in parameters}

    return cached("weights-2", {"parameters": [dict(one) for one in parameters], "seed": seed}, make)


def masks_entry(masks: Sequence[Input], rates: Mapping[str, float], batch_size: int, seed: int) -> Entry:
    """For each mask so many rows that two steps hardly ever have the same, by its name: a prime number of
    them, so that a sample meets other rows in every epoch."""

    def make() -> Content:
        return {
            one.name: _mask(
                seed, f"masks/{one.name}", (_mask_rows(one, batch_size), *one.shape), rates[one.name]
            )
            for one in masks
        }

    recipe = {
        "masks": [asdict(one) for one in masks],
        "rates": {one.name: rates[one.name] for one in masks},
        "batch_size": batch_size,
        "seed": seed,
    }
    return cached("masks", recipe, make)


def _mask_rows(mask: Input, batch_size: int) -> int:
    """At least a batch; otherwise at most MASK_ROWS, and MASK_BYTES."""
    fitting = MASK_BYTES // (4 * int(np.prod(mask.shape)))
    rows = max(batch_size, min(MASK_ROWS, fitting), 2)
    while any(rows % divisor == 0 for divisor in range(2, math.isqrt(rows) + 1)):
        rows += 1
    return rows


def _mask(seed: int, name: str, shape: tuple[int, ...], rate: float) -> NDArray[np.float32]:
    """0 for a share `rate` of the values, 1 / (1 - rate) for the others."""
    stays = random.uniform(seed, name, shape, 0.0, 1.0) >= rate
    return (stays * (1 / (1 - rate))).astype(np.float32)


def _unbalance(labels: NDArray[np.int64], classes: int) -> None:
    """Where a batch has as many samples of each class, one gets another: before anything is learned the
    gradient of the last bias would be nothing but what rounding leaves of a sum."""
    counts = np.bincount(labels, minlength=classes)
    if counts.min() == counts.max():
        labels[0] = (labels[0] + 1) % classes


def proof_entry(
    inputs: Sequence[Input],
    batch_size: int,
    limits: Mapping[str, int],
    masks: Mapping[str, float],
    skipping: Collection[str],
    seed: int,
) -> Entry:
    """An array for each input, and `order`, of PROOF_BATCHES random batches; `other_order` begins with the
    last one; the samples of `same_order` all have one target, that of most, and some come more than once.

    limits: whole numbers of an input lie in 0 to this - 1; lengths begin at 1, and in every batch the first
    sample is as long as can be, of SHORTER ones as may be, and the second has one step. masks: of an
    input that is one, the share of its values that are 0; here each sample has its own. skipping: labels of
    steps, of which a quarter is -1, but never that of the first step. Pixels are uniform in [0, 1) and all
    different within an image: where two are equal, two correct frameworks may send a maximum's gradient to
    different places.
    """
    samples = PROOF_BATCHES * batch_size

    def numbers(one: Input) -> np.ndarray[Any, Any]:
        size = int(np.prod(one.shape))
        # One draw from each of `size` equal intervals, in random order; the outer quarters stay free.
        rank = np.argsort(
            random.uniform(seed, f"proof/{one.name}/rank", (samples, size), 0.0, 1.0), axis=1, kind="stable"
        )
        within = random.uniform(seed, f"proof/{one.name}/within", (samples, size), 0.25, 0.75).astype(
            np.float64
        )
        return ((rank + within.astype(np.float64)) / size).astype(np.float32).reshape(samples, *one.shape)

    def whole_numbers(one: Input) -> np.ndarray[Any, Any]:
        below = limits[one.name]
        drawn = random.uniform(seed, f"proof/{one.name}", (samples, *one.shape), 0.0, float(below))
        found = np.minimum(drawn.astype(np.int64), below - 1)
        if one.name in skipping:
            is_left_out = random.uniform(seed, f"proof/{one.name}/left out", found.shape, 0.0, 1.0) < 0.25
            is_left_out[:, 0] = False
            found[is_left_out] = -1
        if one.role == "target" and not one.shape:
            for labels in found.reshape(PROOF_BATCHES, batch_size):
                _unbalance(labels, below)
        return found

    def lengths(one: Input) -> np.ndarray[Any, Any]:
        longest = limits[one.name] - 1
        drawn = random.uniform(seed, f"proof/{one.name}", (samples,), 1.0, float(longest + 1))
        found = np.minimum(drawn.astype(np.int64), longest)
        batches = found.reshape(PROOF_BATCHES, batch_size)
        most = np.full((PROOF_BATCHES, 1), longest)
        most[list(SHORTER)] = max(1, int(longest * SHORTER_SHARE))
        np.minimum(batches, most, out=batches)
        batches[:, 1:2], batches[:, :1] = 1, most
        return found

    def drawn(one: Input) -> np.ndarray[Any, Any]:
        if one.role == "lengths":
            return lengths(one)
        if one.name in masks:
            return _mask(seed, f"proof/{one.name}", (samples, *one.shape), masks[one.name])
        return whole_numbers(one) if one.dtype == "i64" else numbers(one)

    def make() -> Content:
        arrays = {one.name: drawn(one) for one in inputs}
        order = np.arange(samples, dtype=np.int64).reshape(PROOF_BATCHES, batch_size)
        targets = [
            arrays[one.name].reshape(samples, -1)
            for one in inputs
            if one.role == "target" and one.dtype == "i64"
        ]
        _, kind, counts = np.unique(
            np.concatenate([np.zeros((samples, 1), np.int64), *targets], axis=1),
            axis=0, return_inverse=True, return_counts=True,
        )  # fmt: skip
        alike = np.ravel(kind) == np.argmax(counts)
        return {
            **arrays,
            "order": order,
            "other_order": np.ascontiguousarray(order[::-1]),
            "same_order": np.resize(np.flatnonzero(alike), (1, batch_size)),
        }

    recipe = {
        "inputs": [asdict(one) for one in inputs],
        "batch_size": batch_size,
        "limits": dict(limits),
        "masks": dict(masks),
        "skipping": sorted(skipping),
        "seed": seed,
    }
    return cached("proof-9", recipe, make)


def fingerprint(content: object) -> str:
    """Sixteen hex digits of anything that JSON can hold."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def rates_file(values: NDArray[np.float64]) -> Path:
    """Rates as a file of the cache: f64, one for each step since reset()."""
    recipe = {"rates": [float(rate) for rate in values]}
    return cached("rates", recipe, lambda: {"rates": np.asarray(values, np.float64)}).file("rates.npy")
