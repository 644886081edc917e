"""Which way a library went through a recurrent layer: what its contender has read, and whether the library
has a faster one. Facts of the record: `<layer> forward` and, where there is one, `<layer> faster`."""

from __future__ import annotations

from collections.abc import Mapping

from timetrial.cautions import Caution

_FASTER, _FORWARD = " faster", " forward"


def slower_paths(facts: Mapping[str, str]) -> list[str]:
    """A warning for each way that is not the fastest its library has, with the layers that go it."""
    layers: dict[tuple[str, str], list[str]] = {}
    for name, cure in facts.items():
        layer = name.removesuffix(_FASTER)
        path = facts.get(layer + _FORWARD)
        if layer != name and path is not None:
            layers.setdefault((path, cure), []).append(f"'{layer}'")
    return [
        Caution.SLOWER_PATH.words(layers=", ".join(names), path=path, cure=cure)
        for (path, cure), names in layers.items()
    ]
