"""What a proof asks to be shown stays small, for it all lies in a folder at the same time, and what judging
it took is given back."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
from launching import make_plan, workload
from native_twin import NativeTwin
from twins import questions

from timetrial.launch import run_launch
from timetrial.questions.observed import Tensors
from timetrial.questions.sequence import LARGE_BYTES
from timetrial.workloads import prepare

MOST_BYTES = 200_000_000
MOST_KEPT = 50_000_000


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
    questions("train", contact, prepared, 64).proof()
    assert 0 < contact.shown < MOST_BYTES
    weights = sum(values.nbytes for values in contact.dump("parameter").values())
    assert weights <= LARGE_BYTES  # of larger ones fewer steps are shown


def anonymous_bytes() -> int:
    """Of this process."""
    status = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in status if line.startswith("RssAnon:"))


def test_what_judging_took_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left that the C library could return: 1.7 GB of a batch of 256, before. What judges keep for
    the next launch is in use, and grows with the processors."""
    monkeypatch.setenv("TIMETRIAL_CACHE", str(tmp_path / "cache"))
    plan = make_plan(
        tmp_path / "proof", "cblas", purpose="proof", network="lenet5", batch_size=256, dataset="digits28"
    )
    record = run_launch(plan)
    assert record.parity is not None
    assert record.parity.status == "passed", record.reason
    behind = anonymous_bytes()
    ctypes.CDLL(None).malloc_trim(0)
    assert behind - anonymous_bytes() < MOST_KEPT
