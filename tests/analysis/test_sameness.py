from __future__ import annotations

from timetrial.analysis.sameness import unequal_steps
from timetrial.records.model import LaunchRecord, Passes, Setting


def record(steps: int | None = 100, flush: str | None = "off", purpose: str = "speed") -> LaunchRecord:
    setting = Setting(name="flush_to_zero", asked=None, effective=flush, how_read="", status="applied")
    return LaunchRecord.model_validate(
        {"id": "0", "case": "c", "purpose": purpose, "seed": 1, "block": 0, "position": 0, "outcome": "ok",
         "started_at": "", "duration_s": 0, "passes": Passes(steps=steps), "settings": [setting]}
    )  # fmt: skip


def unequal(rows: dict[str, list[LaunchRecord]]) -> list[str]:
    return unequal_steps((name, one) for name, records in rows.items() for one in records)


def test_equal_rows_say_nothing() -> None:
    assert unequal({"eigen": [record()], "onednn": [record()]}) == []
    assert unequal({"mine:make": [record(None)], "mine:other": [record(None)]}) == []
    assert unequal({"eigen": [record()], "null": [record(None)]}) == []
    old = record().model_copy(update={"passes": None, "settings": []})
    assert unequal({"eigen": [record()], "onednn": [old]}) == []


def test_who_goes_on_and_on_is_named() -> None:
    [words] = unequal({"eigen": [record()], "mine:make": [record(None), record(None)]})
    assert words.startswith("not the same steps: mine:make trains on and on")


def test_who_flushes_is_named() -> None:
    [words] = unequal({"eigen": [record()], "jax": [record(flush="on")], "onednn": [record()]})
    assert words == "subnormal numbers are not treated alike (flush_to_zero off: eigen, onednn; on: jax)"
    proof = record(flush="on", purpose="proof")  # there is nothing but the contender's word
    assert unequal({"eigen": [record()], "jax": [record(), proof]}) == []
