"""How things stand with every data set on this machine."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from timetrial.dataset_files.known import KnownDataset, known_dataset
from timetrial.dataset_files.places import place_of

Word = Literal["ready", "missing", "yours"]


@dataclass(frozen=True)
class State:
    """One data set."""

    name: str
    words: str
    state: Word  # ready; missing: `cure` brings it; yours: read from a folder that the user names
    detail: str  # where its files lie, or what a folder of the user's has to hold
    cure: str  # "": nothing is wrong
    bytes: int  # of its files, unpacked; 0 where it has none of its own
    shape: tuple[int, ...]  # of one image; () where the files decide
    classes: int
    samples: tuple[int, ...]  # to train on, to test on
    licence: str

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def state_of(dataset: KnownDataset) -> State:
    """Quick: no file is read and nothing is imported. Whether files are sound, `check` says."""
    word, detail, cure = _word(dataset)
    return State(
        name=dataset.name,
        words=dataset.words,
        state=word,
        detail=detail,
        cure=cure,
        bytes=dataset.bytes,
        shape=dataset.shape,
        classes=dataset.classes,
        samples=dataset.samples,
        licence=dataset.licence,
    )


def _word(dataset: KnownDataset) -> tuple[Word, str, str]:
    if dataset.module:
        if dataset.lacks_module:
            return "missing", f"needs the module {dataset.module}", dataset.cure
        return "ready", dataset.module, ""
    if not dataset.yours:
        return "ready", "made when it is needed", ""
    there = place_of(dataset)
    if there is not None:
        return "ready", str(there[0]), ""
    return ("missing" if dataset.sources else "yours"), dataset.yours, dataset.cure


def is_ready(name: str) -> bool:
    """Whether it can be read without a folder of the user's. InputError: there is none of this name."""
    return state_of(known_dataset(name)).state == "ready"
