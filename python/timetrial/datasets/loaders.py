"""Datasets by name: one loader each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from timetrial.datasets.cifar import CIFAR10, CIFAR100, CIFAR100_COARSE, cifar_files, load_cifar
from timetrial.datasets.codes import WIDTHS, load_codes
from timetrial.datasets.dataset import Dataset
from timetrial.datasets.digits import load_digits8, load_digits28
from timetrial.datasets.mnist import load_mnist, mnist_files
from timetrial.datasets.regression import load_synthetic_regression
from timetrial.datasets.synthetic import load_synthetic, load_synthetic_cifar
from timetrial.errors import InputError, nearest


@dataclass(frozen=True)
class Source:
    """Where a dataset comes from. `version` is raised when a loader's result changes: caches key on it."""

    load: Callable[[str | None, int], Dataset]
    files: Callable[[str | None], list[Path]] | None = None  # that it reads, of the folder or where installed
    version: int = 1
    copied: bool = True  # `timetrial datasets install NAME --from FOLDER` copies its files


DATASETS: dict[str, Source] = {
    "digits8": Source(load_digits8),
    "digits28": Source(load_digits28),
    "mnist": Source(partial(load_mnist, "mnist"), partial(mnist_files, "mnist")),
    "fashion-mnist": Source(partial(load_mnist, "fashion-mnist"), partial(mnist_files, "fashion-mnist")),
    "cifar10": Source(partial(load_cifar, CIFAR10), partial(cifar_files, CIFAR10)),
    "cifar100": Source(partial(load_cifar, CIFAR100), partial(cifar_files, CIFAR100)),
    "cifar100-coarse": Source(partial(load_cifar, CIFAR100_COARSE), partial(cifar_files, CIFAR100_COARSE)),
    "synthetic": Source(load_synthetic),
    "synthetic-cifar": Source(load_synthetic_cifar),
    "synthetic-regression": Source(load_synthetic_regression),
    **{f"synthetic-codes-{width}": Source(partial(load_codes, width)) for width in WIDTHS},
}


def dataset_source(name: str) -> Source:
    """The source of a known name."""
    if name not in DATASETS:
        raise InputError(f"There is no dataset '{name}'.{nearest(name, DATASETS)}")
    return DATASETS[name]


def load_dataset(name: str, folder: str | None = None, seed: int = 0) -> Dataset:
    """Loads from the source, without the cache. `seed` splits or generates; published splits ignore it."""
    return dataset_source(name).load(folder, seed)
