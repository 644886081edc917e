"""A race to look at: its tables, its figure, and numbers that do not argue with the verdict."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from fakes import FakeEngine

from timetrial.errors import InputError
from timetrial.races import Race, RaceInterrupted

Raced = Callable[..., Race]


def contradicting(plan: Any) -> float:
    """10 % slower in each of its pairs, while the machine becomes three times faster: when the second race
    confirms, its typical launch is quicker than the base's was in the first one."""
    pace = 1.0 if plan.block < 6 else 1 / 3
    return pace * (1.10 if plan.case.repeat == 2 else 1.0)


def test_levels_say_what_the_verdict_says(raced: Raced, fake: FakeEngine) -> None:
    fake.factor = contradicting
    found = raced("backend=fast,fast")
    assert found.effect is not None
    assert found.verdict == "worse"
    base, challenger = (found.level(case.id) for case in found.cases)
    assert base is not None
    assert challenger is not None
    assert challenger.estimate / base.estimate == pytest.approx(1 + found.effect.estimate, rel=1e-9)
    levels = found.to_json()["levels"]
    assert [levels[found.names[case.id]]["estimate"] for case in found.cases] == [
        base.estimate, challenger.estimate,
    ]  # fmt: skip


def test_other_statistics_are_compared_as_ratios(raced: Raced, fake: FakeEngine) -> None:
    """Of a step three times as long, 6 points of the ratio are 2 % of it: nothing to warn of."""
    found = raced("backend=fast,slow")
    duel = found.duels[0]
    assert duel.effect is not None
    near = {"median": 1.02 * (1 + duel.effect.estimate) - 1, "p25": duel.effect.estimate}
    far = {"median": 1.05 * (1 + duel.effect.estimate) - 1, "p25": duel.effect.estimate}
    for said, expected in ((near, False), (far, True)):
        duel.other_statistics.clear()
        duel.other_statistics.update(said)
        assert ("by the time per step, by the median step" in " ".join(repr(found).split())) is expected


def test_its_pairs_as_a_table(raced: Raced) -> None:
    pytest.importorskip("pandas")
    found = raced("backend=fast,slow,other")
    table = found.to_pandas()
    assert list(table.columns[:5]) == ["pair", "stage", "base", "challenger", "ratio"]
    judged = table[(table.challenger == "slow") & (table.stage == "judge")]
    assert [math.log(ratio) for ratio in judged.ratio] == pytest.approx(found.log_ratios(found.duels[0].case))
    assert set(table.stage) == {"judge", "confirm"}
    void = raced("backend=fast,crashes").to_pandas()
    assert void.ratio.isna().all()
    assert void.void.str.contains("crash").all()


def test_its_turns_as_a_table(raced: Raced) -> None:
    pytest.importorskip("pandas")
    found = raced("backend=fast,slow")
    turns = found.rounds()
    assert set(turns.side) == {"fast", "slow"}
    assert len(turns) == 2 * len(found.pairs) * found.record.rounds
    medians = turns.groupby("side").step_time_ns.median()
    assert medians["slow"] / medians["fast"] == pytest.approx(2.0, rel=0.1)
    assert turns.pair.is_monotonic_increasing


def test_its_figure_draws_what_was_found(raced: Raced) -> None:
    pytest.importorskip("matplotlib")
    found = raced("backend=fast,slow,other")
    figure = found.plot()
    assert len(figure.axes) == 2 * len(found.duels)
    for duel, panel in zip(found.duels, figure.axes[::2], strict=True):
        assert duel.effect is not None
        drawn = [value for line in panel.lines if line.get_marker() == "o" for value in line.get_ydata()]
        assert drawn == pytest.approx([100 * math.expm1(value) for value in duel.log_ratios])
        assert any(line.get_ydata()[0] == pytest.approx(100 * duel.effect.estimate) for line in panel.lines)
        low, high = panel.get_ylim()
        assert low < min(drawn)
        assert high > max(drawn)
        assert duel.challenger in panel.get_title(loc="left")
    words = {text.get_text() for text in figure.legends[0].get_texts()}
    assert "the same: within 5 %" in words
    assert "smallest effect: 3 %" in words
    figure.canvas.draw()


def test_a_race_without_pairs_has_no_figure(raced: Raced, fake: FakeEngine) -> None:
    pytest.importorskip("matplotlib")

    def interrupt(plan: Any) -> None:
        if plan.purpose == "race":
            raise KeyboardInterrupt

    fake.before = interrupt
    with pytest.raises(RaceInterrupted) as stopped:
        raced("backend=fast,slow")
    with pytest.raises(InputError, match="no pair has ended"):
        stopped.value.race.plot()
    assert stopped.value.race.to_pandas().empty
    assert stopped.value.race.rounds().empty
