"""Steps of a known length that are real training: so many updates of LeNet-5, or 5 % more of them.

One update of a small batch takes about a millisecond, so a step takes 10 ms and more. All of it is what a
native backend does in any launch: convolutions, products, memory. That 21 updates are 5 % more work is exact;
it would not be of a batch that is 5 % larger, nor of idling put behind a step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

BATCH = 4
CLASSES = 10
UPDATES = 20


def updates_20() -> Callable[[], None]:
    """A step of 20 updates."""
    return _updates(UPDATES)


def updates_21() -> Callable[[], None]:
    """A step of 21: 5 % more."""
    return _updates(UPDATES + UPDATES // 20)


def _updates(count: int) -> Callable[[], None]:
    from timetrial.core import Backend, Network, cpu_flags, images_and_labels, native, random
    from timetrial.networks import load_network

    variants = [one for one in native.backend_manifests() if one.backend == "eigen" and one.library]
    fitting = [one for one in variants if cpu_flags().issuperset(one.requires)]
    library = max(fitting, key=lambda one: one.rank).library
    assert library is not None
    network = Network(load_network("lenet5").nodes_for(CLASSES), BATCH, images_and_labels((1, 28, 28)))
    weights = {one["name"]: random.initial_values(1, one) for one in network.parameters}
    backend = Backend(library)
    backend.configure("threads", "1")
    # So slow a rate that weights stay what they are: the thousandth step has the numbers of the first.
    backend.build(network, weights, {"name": "sgd", "learning_rate": 1e-6, "momentum": 0.0})
    images = random.uniform(1, "images", (BATCH, 1, 28, 28))
    backend.step("train", {"images": images, "labels": np.arange(BATCH) % CLASSES})

    def step() -> None:
        for _ in range(count):
            backend.step("train")

    return step
