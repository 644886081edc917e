"""`fits`: the smallest cap, of contenders of a known size and of scripted ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeEngine
from fakes import network as fake_network
from typer.testing import CliRunner

from timetrial.cli.main import app
from timetrial.errors import InputError
from timetrial.experiment.experiment import load_words
from timetrial.fitting import Fits
from timetrial.fitting.fitting import _has_run, fit_experiment
from timetrial.records.model import Ending, LaunchRecord, Setting

MB = 1 << 20
NULL = ("network=mlp", "dataset=synthetic", "batch_size=16", "backend=null", "threads=1")


def real(folder: Path, *words: str) -> Fits:
    return fit_experiment(load_words([*NULL, *words]), folder, quiet=True)


def test_a_contender_of_a_known_size(tmp_path: Path) -> None:
    """It holds 16 MiB, and what its program needs: less than the least that can be asked."""
    found = real(tmp_path, "null.fail=none,grow", "null.fail_at=build")
    plain, grown = found.fits
    again = real(tmp_path, "null.fail=grow", "null.fail_at=build").fits[0]
    assert found.is_whole
    assert (plain.smallest_bytes, plain.short_bytes) == (MB, None)
    for one in (grown, again):
        assert one.smallest_bytes is not None
        assert one.short_bytes is not None
        assert 16 * MB < one.smallest_bytes <= 1.02 * one.short_bytes + 4096
        assert one.short_bytes < 17 * MB
        assert (one.outcome, one.kept_by, one.below, one.cause) == ("ok", "data", "capped", "refused")
        assert one.boundary == "import"
    assert abs((again.smallest_bytes or 0) / (grown.smallest_bytes or 1) - 1) < 0.03
    assert "null.fail=grow" in repr(found)
    assert "runs in the least that can be asked" in repr(found)
    assert len(list(found.folder.rglob("record.json"))) == plain.launches + grown.launches
    assert json.loads((found.folder / "fits.json").read_text()) == json.loads(json.dumps(found.to_json()))


# Scripted contenders: the search, its words, its bad input ---------------------------------------------


class Scripted:
    """An engine whose contenders need so much: {"fast": 100 MB}; "crashes" never runs."""

    def __init__(self, fake: FakeEngine, needs: dict[str, int], *, in_force: bool = True):
        self.fake, self.needs, self.in_force = fake, needs, in_force

    def launch(self, plan: Any) -> LaunchRecord:
        cap = plan.case.settings["memory.cap"]
        record = self.fake.launch(plan)
        if cap == "none":
            return record
        status: Any = "applied" if self.in_force else "ignored"
        settings = [Setting(name="memory.cap", asked=cap, effective=cap, how_read="scripted", status=status)]
        settings.append(
            Setting(name="memory.cap_by", asked=None, effective="data", how_read="", status="applied")
        )
        update: dict[str, Any] = {"settings": settings}
        if not self.in_force:
            update["outcome"] = "mismatch"
        elif int(cap) < self.needs[plan.case.backend]:
            ending = Ending(cause="refused", boundary="step 3")
            update |= {"outcome": "capped", "reason": "no more", "ending": ending, "stop_reason": None}
        return record.model_copy(update=update)


@pytest.fixture
def scripted(fake: FakeEngine, tmp_path: Path) -> Callable[..., Fits]:
    def run(*words: str, needs: dict[str, int], in_force: bool = True, **more: Any) -> Fits:
        launch = Scripted(fake, needs, in_force=in_force).launch
        engine = replace(fake.engine(), launch=launch, validate_settings=lambda *_: None)
        experiment = load_words(["network=mlp", *words], load_network=fake_network)
        return fit_experiment(experiment, tmp_path, quiet=True, engine=engine, **more)

    return run


def test_each_case_has_its_own(scripted: Callable[..., Fits], fake: FakeEngine) -> None:
    found = scripted("backend=fast,slow,absent,crashes", needs={"fast": 100 * MB, "slow": 300 * MB})
    fast, slow, absent, crashes = found.fits
    for one, size in ((fast, 100 * MB), (slow, 300 * MB)):
        assert one.smallest_bytes is not None
        assert one.short_bytes is not None
        assert one.short_bytes < size <= one.smallest_bytes <= 1.02 * one.short_bytes + 4096
        assert (one.below, one.cause, one.boundary) == ("capped", "refused", "step 3")
        assert one.held_bytes == 50 * MB
    assert (absent.outcome, absent.smallest_bytes, absent.launches) == ("unavailable", None, 0)
    assert (crashes.outcome, crashes.smallest_bytes, crashes.launches) == ("crash", None, 1)
    assert not found.is_whole
    words = repr(found)
    assert "capped (refused) behind step 3" in words
    assert "crash: " in words
    assert fake.locked == 0


def test_who_is_interrupted_keeps_what_was_found(
    fake: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted = Scripted(fake, {"fast": 100 * MB})

    def launch(plan: Any) -> LaunchRecord:
        if plan.case.backend == "slow" and plan.case.settings["memory.cap"] != "none":
            raise KeyboardInterrupt
        return scripted.launch(plan)

    engine = replace(fake.engine(), launch=launch, validate_settings=lambda *_: None)
    experiment = load_words(["network=mlp", "backend=fast,slow,other"], load_network=fake_network)
    with pytest.raises(KeyboardInterrupt, match=r"interrupted\. 1 of 3 searches had ended; '.*fits-"):
        fit_experiment(experiment, tmp_path, quiet=True, engine=engine)
    [kept] = tmp_path.rglob("fits.json")
    [one] = json.loads(kept.read_text())["fits"]
    assert one["axes"] == {"backend": "fast"}
    assert one["smallest_bytes"] >= 100 * MB

    def interrupted(*_: Any, **__: Any) -> Fits:
        raise KeyboardInterrupt("interrupted. 1 of 3")

    monkeypatch.setattr("timetrial.fitting.fitting.fit_experiment", interrupted)
    done = CliRunner().invoke(app, ["fits", *NULL])
    assert (done.exit_code, done.stderr) == (130, "timetrial: interrupted. 1 of 3\n")


def test_what_fails_behind_its_steps_has_run() -> None:
    def record(outcome: Any, stop: str | None) -> LaunchRecord:
        return LaunchRecord(
            id="0", case="a", purpose="speed", seed=1, block=0, position=0, outcome=outcome, stop_reason=stop,
            started_at="", duration_s=1.0,
        )  # fmt: skip

    assert _has_run(record("ok", "budget"))
    assert _has_run(record("capped", "budget"))  # as its tensors were written
    assert not _has_run(record("capped", None))
    assert not _has_run(record("wrong", "budget"))
    assert not _has_run(record("nan", None))


def test_who_needs_more_than_is_free_has_none(scripted: Callable[..., Fits]) -> None:
    (one,) = scripted("backend=fast", needs={"fast": 10**12}).fits
    assert (one.outcome, one.smallest_bytes) == ("capped", None)
    assert "it runs without a cap, and with none up to what is free" in (one.reason or "")


def test_a_cap_that_is_not_in_force_is_no_answer(scripted: Callable[..., Fits]) -> None:
    with pytest.raises(InputError, match="is not in force here: scripted"):
        scripted("backend=fast", needs={"fast": MB}, in_force=False)


@pytest.mark.parametrize(
    ("words", "more", "message"),
    [
        (["memory.cap=1GB"], {}, "fits looks for the smallest memory.cap itself: leave memory.cap out"),
        (["memory.cap_by=watchdog"], {}, "leave memory.cap_by out. Say who keeps it by --by watchdog"),
        ([], {"precision": 0.0}, "precision is 0.0; expected a fraction from 0.001 to 1"),
        ([], {"precision": float("nan")}, "precision is nan; expected"),
    ],
)
def test_bad_input(
    scripted: Callable[..., Fits], words: list[str], more: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as failure:
        scripted("backend=fast", *words, needs={}, **more)
    assert message in str(failure.value)


def test_the_command_says_what_it_cannot_do(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["fits", "backend=eigen", "memory.cap=1GB", "--results", str(tmp_path)])
    assert result.exit_code == 2
    assert not list(tmp_path.iterdir())
