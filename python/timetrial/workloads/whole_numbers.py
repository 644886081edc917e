"""Whether the whole numbers in the data are those that the network takes: tokens below its vocabulary,
lengths from 1 to as many steps as there are, a label for at least one step of each sample. A contender would
read outside its memory, leave some out, or divide by nothing."""

from __future__ import annotations

from timetrial.core import Input, Network
from timetrial.errors import InputError
from timetrial.workloads.cache import Entry


def check_whole_numbers(dataset: str, network: Network, data: Entry) -> None:
    """InputError names the first number that does not fit. Classes are checked where they are read."""
    for one in network.inputs:
        for part in ("train", "test"):
            if one.dtype == "i64" and one.role != "target":
                _check(dataset, network, one, data, part)
            elif one.dtype == "i64" and len(one.shape) > 0:
                _check_labels(dataset, one, data, part)


def _check_labels(dataset: str, one: Input, data: Entry, part: str) -> None:
    labels = data.array(f"{part}_{one.name}")
    nothing = (labels.reshape(len(labels), -1) < 0).all(axis=1)
    if nothing.any():
        raise InputError(
            f"The dataset '{dataset}' has no label in sample {int(nothing.argmax())} of its {one.name} "
            f"({part}): every step is -1. Expected a class for at least one of them; leave the sample out."
        )


def _check(dataset: str, network: Network, one: Input, data: Entry, part: str) -> None:
    array = data.array(f"{part}_{one.name}")
    least, most = 1 if one.role == "lengths" else 0, network.values_below(one.name) - 1
    low, high = int(array.min()), int(array.max())
    if least <= low and high <= most:
        return
    number = low if low < least else high
    sample = int((array.reshape(len(array), -1) == number).any(axis=1).argmax())
    reader = next(node["name"] for node in network.nodes if one.name in node["inputs"])
    what = "steps of a sample" if one.role == "lengths" else "tokens"
    cure = "" if one.role == "lengths" else f" Give '{reader}' a vocabulary of at least {number + 1}."
    raise InputError(
        f"The dataset '{dataset}' has {number} among its {one.name} ({part}, sample {sample}), but the layer "
        f"'{reader}' takes {what} from {least} to {most}.{cure if number > most else ''}"
    )
