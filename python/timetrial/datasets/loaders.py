"""Datasets by name: one loader each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from timetrial.dataset_files.dataset import Dataset
from timetrial.dataset_files.files import file_hashes
from timetrial.dataset_files.known import sized_name, split_name
from timetrial.datasets.cifar import CIFAR10, CIFAR100, CIFAR100_COARSE, cifar_files, load_cifar
from timetrial.datasets.codes import WIDTHS, load_codes
from timetrial.datasets.digits import load_digits8, load_digits28
from timetrial.datasets.folders import imagenet_key, images_key, load_imagenet, load_images
from timetrial.datasets.mnist import load_mnist, mnist_files
from timetrial.datasets.photographs import load_photographs, photographs_key
from timetrial.datasets.regression import load_synthetic_regression
from timetrial.datasets.svhn import load_svhn, svhn_files
from timetrial.datasets.synthetic import load_synthetic, load_synthetic_cifar, load_synthetic_imagenet
from timetrial.texts.austen import austen_files, load_austen
from timetrial.texts.folders import imdb_key, load_imdb, load_texts, texts_key
from timetrial.texts.pair_files import load_messages, load_pairs, messages_files, pairs_key
from timetrial.texts.ptb import load_ptb, ptb_files
from timetrial.texts.series import load_series, load_vowels, series_key, vowels_files
from timetrial.texts.spam import load_spam, spam_files
from timetrial.texts.synthetic import load_language, load_sentences
from timetrial.texts.synthetic_pairs import load_translations
from timetrial.texts.waves import load_waves


@dataclass(frozen=True)
class Source:
    """Where a dataset comes from. `version` is raised when a loader's result changes: caches key on it."""

    load: Callable[[str | None, int], Dataset]
    files: Callable[[str | None], list[Path]] | None = None  # that it reads, of the folder or where installed
    key: Callable[[str | None], dict[str, str]] | None = None  # in their place, where they are many
    version: int = 1

    @property
    def copied(self) -> bool:
        """Whether `timetrial datasets install NAME --from FOLDER` copies its files."""
        return self.files is not None

    def contents(self, folder: str | None) -> dict[str, str]:
        """What lies on disk and decides what is loaded."""
        if self.key is not None:
            return self.key(folder)
        return file_hashes(self.files(folder)) if self.files else {}


def _images(size: int | None) -> Source:
    name = sized_name("images", size)
    return Source(partial(load_images, name, size), key=partial(images_key, name))


def _imagenet(size: int | None) -> Source:
    name = sized_name("imagenet", size)
    return Source(partial(load_imagenet, name, size or LARGE), key=partial(imagenet_key, name))


def _photographs(size: int | None) -> Source:
    name = sized_name("photographs", size)
    return Source(partial(load_photographs, name, size or LARGE), key=photographs_key)


def _synthetic_imagenet(size: int | None) -> Source:
    name = sized_name("synthetic-imagenet", size)
    return Source(partial(load_synthetic_imagenet, name, size or LARGE))


def _sequences(
    name: str,
    load: Callable[[str, int | None, str | None, int], Dataset],
    files: Callable[[str | None], list[Path]] | None = None,
    key: Callable[[str | None], dict[str, str]] | None = None,
    version: int = 1,
) -> Callable[[int | None], Source]:
    return lambda steps: Source(partial(load, sized_name(name, steps), steps), files, key, version)


LARGE = 224  # pixels on a side, as networks for ImageNet take them
# Of sequences: the size in the name is the most steps that a sample has.
SEQUENCES: dict[str, Callable[[int | None], Source]] = {
    "japanese-vowels": _sequences("japanese-vowels", load_vowels, vowels_files, version=2),
    "series": _sequences("series", load_series, key=series_key),
    "spam-assassin": _sequences("spam-assassin", load_spam, spam_files),
    "texts": _sequences("texts", load_texts, key=texts_key),
    "imdb": _sequences("imdb", load_imdb, key=imdb_key),
    "austen": _sequences("austen", load_austen, austen_files, version=2),
    "ptb": _sequences("ptb", load_ptb, ptb_files, version=2),
    "gcc-messages": _sequences("gcc-messages", load_messages, messages_files),
    "pairs": _sequences("pairs", load_pairs, key=pairs_key),
    "synthetic-sentences": _sequences("synthetic-sentences", load_sentences),
    "synthetic-pairs": _sequences("synthetic-pairs", load_translations),
    "synthetic-language": _sequences("synthetic-language", load_language, version=2),
}
# Those whose name takes a size, "images@64".
SIZED: dict[str, Callable[[int | None], Source]] = {
    "images": _images,
    "imagenet": _imagenet,
    "photographs": _photographs,
    "synthetic-imagenet": _synthetic_imagenet,
    **SEQUENCES,
}


DATASETS: dict[str, Source] = {
    "digits8": Source(load_digits8),
    "digits28": Source(load_digits28),
    "mnist": Source(partial(load_mnist, "mnist"), partial(mnist_files, "mnist")),
    "fashion-mnist": Source(partial(load_mnist, "fashion-mnist"), partial(mnist_files, "fashion-mnist")),
    "cifar10": Source(partial(load_cifar, CIFAR10), partial(cifar_files, CIFAR10)),
    "cifar100": Source(partial(load_cifar, CIFAR100), partial(cifar_files, CIFAR100)),
    "cifar100-coarse": Source(partial(load_cifar, CIFAR100_COARSE), partial(cifar_files, CIFAR100_COARSE)),
    "svhn": Source(load_svhn, svhn_files),
    **{name: SIZED[name](None) for name in ("images", "imagenet", "photographs", *SEQUENCES)},
    "synthetic": Source(load_synthetic),
    "synthetic-cifar": Source(load_synthetic_cifar),
    "synthetic-imagenet": _synthetic_imagenet(None),
    "synthetic-regression": Source(load_synthetic_regression),
    "synthetic-series": Source(load_waves),
    **{f"synthetic-codes-{width}": Source(partial(load_codes, width)) for width in WIDTHS},
}


def dataset_source(name: str) -> Source:
    """The source of a known name, with a size or without."""
    known, size = split_name(name)
    return DATASETS[known] if size is None else SIZED[known](size)


def load_dataset(name: str, folder: str | None = None, seed: int = 0) -> Dataset:
    """Loads from the source, without the cache. `seed` splits or generates; published splits ignore it."""
    return dataset_source(name).load(folder, seed)
