"""What a proof asks to be shown stays small: it all lies in a folder at the same time."""

from __future__ import annotations

from pathlib import Path

import pytest
from launching import workload
from native_twin import NativeTwin

from timetrial.proof.observed import Tensors
from timetrial.proof.sequence import LARGE_BYTES, run_proof
from timetrial.workloads import prepare

MOST_BYTES = 200_000_000


class Weighed(NativeTwin):
    """Counts what it shows."""

    shown = 0

    def dump(self, role: str) -> Tensors:
        found = super().dump(role)
        self.shown += sum(values.nbytes for values in found.values())
        return found


@pytest.mark.parametrize("network", ["mlp", "lenet5"])
def test_dumps_of_a_proof_stay_below_200_mb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, network: str
) -> None:
    """Of LeNet-5 as it is compared, with its batches of 64."""
    monkeypatch.setenv("TIMETRIAL_CACHE", str(tmp_path))
    prepared = prepare(workload(network, "synthetic", batch_size=64), seed=1, epochs=1)
    contact = Weighed(prepared, "train", "eigen")
    run_proof("train", contact)
    assert 0 < contact.shown < MOST_BYTES
    weights = sum(values.nbytes for values in contact.dump("parameter").values())
    assert weights <= LARGE_BYTES  # of larger ones fewer steps are shown
