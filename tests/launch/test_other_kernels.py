"""First losses of a timed launch that are not its proof's: honest where the same steps, looked into, give
them again, as with kernels that were chosen anew or are those of other threads."""

from __future__ import annotations

from pathlib import Path

import pytest
from launching import make_plan, small_network, words

from timetrial.launch import gate, run_launch
from timetrial.launch.gate import Gate
from timetrial.questions.sequence import LOSSES, STEPS_OF_LARGE
from timetrial.records.model import LaunchRecord

PLANTED = str(Path(__file__).parents[1] / "frameworks" / "planted")


def proven_then_timed(tmp_path: Path, losses_off_from: int, defect: str = "none") -> LaunchRecord:
    """With the losses of the proof, from that step on, one percent off."""
    network = small_network(tmp_path)
    proof = run_launch(make_plan(tmp_path / "proof", "reference", network=network, purpose="proof"))
    assert proof.outcome == "ok", words(proof)
    assert proof.parity is not None
    proven = enumerate(proof.parity.losses, 1)
    losses = [one * (1.01 if step >= losses_off_from else 1) for step, one in proven]
    off = proof.parity.model_copy(update={"losses": losses})
    settings = {"planted.defect": defect}
    return run_launch(make_plan(tmp_path / "timed", PLANTED, network=network, settings=settings, proof=off))


def again(record: LaunchRecord) -> dict[int, set[str]]:
    """What was judged of each of the first steps: of those that a busy machine left time for."""
    assert record.end is not None
    found: dict[int, set[str]] = {}
    for one in record.end.comparisons:
        step, _, what = one.tensor.partition(": ")
        if step.startswith("again, step "):
            found.setdefault(int(step.split()[-1]), set()).add(what)
    assert list(found) == list(range(1, len(found) + 1))
    assert 2 <= len(found) <= LOSSES
    return found


def test_other_losses_are_the_steps_own_if_these_are_looked_into(tmp_path: Path) -> None:
    record = proven_then_timed(tmp_path, losses_off_from=2)
    assert record.outcome == "ok", words(record)
    assert all(len(what) > 1 for what in again(record).values())


def test_another_first_loss_is_wrong(tmp_path: Path) -> None:
    record = proven_then_timed(tmp_path, losses_off_from=1)
    assert record.outcome == "wrong"
    assert "the loss of step 1 is" in (record.reason or "")


def look_into(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    monkeypatch.setattr(Gate, "_steps_looked_into", property(lambda gate: steps))


@pytest.mark.parametrize("looked", [0, STEPS_OF_LARGE])
def test_of_steps_that_nobody_looks_into_losses_are_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looked: int
) -> None:
    look_into(monkeypatch, looked)
    record = proven_then_timed(tmp_path, losses_off_from=2)
    assert record.outcome == "ok", words(record)
    for step, what in again(record).items():
        assert (what == {"loss"}) == (step > looked)


@pytest.mark.parametrize("looked", [0, STEPS_OF_LARGE, LOSSES])
@pytest.mark.parametrize("defect", ["stale_unseen", "bf16_unseen"])
def test_steps_that_are_others_where_nobody_looks_are_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, defect: str, looked: int
) -> None:
    """They are honest when they are looked into, and then their losses are not those that were timed."""
    look_into(monkeypatch, looked)
    record = proven_then_timed(tmp_path, losses_off_from=LOSSES + 1, defect=defect)
    assert record.outcome == "wrong"
    assert ", in the proof it was" in (record.reason or "")


def test_how_many_are_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = make_plan(tmp_path, "null", network=small_network(tmp_path))
    assert Gate(small)._steps_looked_into == LOSSES
    large = make_plan(tmp_path, "null", network="mobilenet-v2", batch_size=64)
    assert Gate(large)._steps_looked_into == STEPS_OF_LARGE
    monkeypatch.setattr(gate, "MOST_SHOWN_BYTES", 1)
    assert Gate(large)._steps_looked_into == 0, "more than may be shown"
