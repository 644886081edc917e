"""The table of a race says all of its verdict, however narrow the terminal is."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from fakes import FakeEngine

from timetrial.cautions import Caution
from timetrial.report.race import RaceTable, _laid_out, notes
from timetrial.report.rendering import to_text
from timetrial.results.race import Race

BASE = [("base", "dim"), ("pytorch mode=compiled threads=1", ""), ("9.31 ms ±1.6 %", "bold")]
WORDS = "inconclusive: differences under 7.7 % cannot be seen here [-3.1, +12.8] unproven"
CHALLENGER = [
    ("challenger", "dim"), ("onednn", ""), ("9.11 ms ±1.9 %", "bold"), (WORDS, "yellow"), ("24 pairs", "dim"),
]  # fmt: skip


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 120, 140, 200])
def test_nothing_is_cropped(width: int) -> None:
    lines = [line.plain for line in _laid_out([BASE, CHALLENGER], width)]
    assert all(len(line) <= width for line in lines)
    said = " ".join(" ".join(lines).split())
    if width >= 40:
        for cells in (BASE, CHALLENGER):
            assert " ".join(text for text, _ in cells) in said
    assert "…" not in said


def test_where_there_is_room_everything_stands_in_columns() -> None:
    wide = [line.plain for line in _laid_out([BASE, CHALLENGER], 200)]
    assert len(wide) == 2
    assert wide[0].index("9.31 ms") == wide[1].index("9.11 ms")
    narrow = [line.plain for line in _laid_out([BASE, CHALLENGER], 120)]
    assert narrow[0].index("9.31 ms") == narrow[1].index("9.11 ms")
    assert narrow[2] == f"            {WORDS}  24 pairs"


def test_words_keep_their_color() -> None:
    *_, last = _laid_out([BASE, CHALLENGER], 120)
    assert {str(span.style) for span in last.spans} == {"yellow", "dim"}


@pytest.mark.parametrize("width", [40, 80, 120])
def test_an_inconclusive_race(width: int, raced: Callable[..., Race], fake: FakeEngine) -> None:
    def wild(plan: Any) -> float:
        return 1.0 + 0.25 * math.sin(7 * plan.block + (3 if "-" in plan.case.id else 0))

    fake.factor = wild
    race = raced("backend=fast,fast")
    text = to_text(race, width=width)
    assert isinstance(race.table(), RaceTable)
    table = text[: text.index("\n! ")]
    assert "…" not in table
    assert "cannot be seen here [" in " ".join(table.split())
    assert all(len(line) <= width for line in table.splitlines())


def test_what_launches_warn_of_names_its_sides(raced: Callable[..., Race]) -> None:
    race = raced("backend=fast,slow")
    for place, case in enumerate(race.cases):
        for launch in race.launches[case.id]:
            file = launch.folder / "record.json"
            record = json.loads(file.read_text("utf-8"))
            record["warnings"] = [Caution.ASLEEP.words()]
            if place == 1:
                record["warnings"].append(Caution.TURNS_UNSTEADY.words())
            file.write_text(json.dumps(record), encoding="utf-8")
    said = notes(Race(race.folder))
    pairs = len(race.pairs)
    both = [one for one in said if one.startswith("both sides: asleep for a fifth")]
    (one_side,) = [one for one in said if "before its steps were steady" in one]
    assert len(both) == 1
    assert f"({2 * pairs} launches). Look for a sleep" in both[0]
    assert one_side.startswith(
        f"slow: took its turns before its steps were steady ({pairs} launches). Ratios"
    )


def test_a_side_whose_memory_grows_is_named(raced: Callable[..., Race]) -> None:
    race = raced("backend=fast,slow")
    for launch in race.launches[race.cases[1].id]:
        file = launch.folder / "record.json"
        record = json.loads(file.read_text("utf-8"))
        for place, segment in enumerate(record["segments"]):
            segment |= {"rss_bytes": (90 + 24 * place) << 20, "mapped_bytes": 60 << 20}
        file.write_text(json.dumps(record), encoding="utf-8")
    (said,) = [one for one in notes(Race(race.folder)) if "grows" in one]
    assert said.startswith("slow: memory grows by 2 MB a step (246 MB at step 100). Look for what is kept")
