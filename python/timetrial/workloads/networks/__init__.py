"""Networks by name, from a .toml file, or from a function of the user's own."""

from __future__ import annotations

from collections.abc import Callable

from timetrial.errors import OWN_STEP, InputError, nearest
from timetrial.workloads.definition import NetworkDefinition
from timetrial.workloads.networks.cifar_small import cifar_small
from timetrial.workloads.networks.dlbench_cifar import dlbench_cifar
from timetrial.workloads.networks.lenet5 import lenet5
from timetrial.workloads.networks.mlp import mlp
from timetrial.workloads.networks.own import network_from_function, network_from_toml

NETWORKS: dict[str, Callable[[], NetworkDefinition]] = {
    "mlp": mlp,
    "lenet5": lenet5,
    "cifar-small": cifar_small,
    "dlbench-cifar": dlbench_cifar,
}


def load_network(source: str) -> NetworkDefinition:
    """The network of a known name, of a path to a .toml file, or of "package.module:function".

    Layer kinds, attributes and shapes are checked later, by core.Network, when the dataset is known.
    """
    if source in NETWORKS:
        return NETWORKS[source]()
    if source.endswith(".toml"):
        return network_from_toml(source)
    if ":" in source:
        return network_from_function(source)
    raise InputError(
        f"There is no network '{source}'.{nearest(source, NETWORKS)} "
        'Your own: a path to a .toml file, or "package.module:function".' + OWN_STEP
    )
