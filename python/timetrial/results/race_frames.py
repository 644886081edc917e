"""A race as pandas tables: its pairs, and the turns in them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from timetrial.analysis.pairs import disturbed_turns, turns_of
from timetrial.errors import Unavailable

if TYPE_CHECKING:
    import pandas as pd

    from timetrial.results.race import Race


def pairs_frame(race: Race) -> pd.DataFrame:
    """One line per pair and challenger: number, stage, ratio of the metric, what median and lower quartile
    of steps would say, void (why it does not count), the seconds that it took, and those of its turns."""
    lines, gate = [], race.record.rule.gate
    for pair in race.pairs:
        for case in race.cases[1:]:
            ratios = pair.log_ratios.get(case.id, {})
            lines.append(
                {
                    "pair": pair.number,
                    "stage": pair.stage,
                    "base": race.names[race.cases[0].id],
                    "challenger": race.names[case.id],
                    "ratio": math.exp(ratios[gate]) if gate in ratios else math.nan,
                    **{f"ratio_{name}": math.exp(value) for name, value in ratios.items() if name != gate},
                    "void": pair.void,
                    "seconds": math.nan if pair.seconds is None else pair.seconds,
                    "turns_s": math.nan if pair.turns_s is None else pair.turns_s,
                }
            )
    return _frame(lines)


def rounds_frame(race: Race) -> pd.DataFrame:
    """One line per turn: pair, stage, round, side, steps, the time per step of the turn [ns], and whether
    others disturbed it."""
    stages = {pair.number: pair.stage for pair in race.pairs}
    lines: list[dict[str, Any]] = []
    for case in race.cases:
        for files in race.launches[case.id]:
            number, turns = int(files.folder.parent.name), turns_of(files.steps())
            marks = disturbed_turns(files.record, len(turns))
            lines += [
                {
                    "pair": number,
                    "stage": stages[number],
                    "round": place,
                    "side": race.names[case.id],
                    "steps": len(turn),
                    "step_time_ns": float(np.mean(turn)),
                    "disturbed": disturbed,
                }
                for place, (turn, disturbed) in enumerate(zip(turns, marks, strict=True))
            ]
    lines.sort(key=lambda line: (line["pair"], line["round"]))
    return _frame(lines)


def _frame(lines: list[dict[str, Any]]) -> pd.DataFrame:
    try:
        import pandas as pd
    except ModuleNotFoundError:
        raise Unavailable("tables need pandas: pip install 'timetrial[report]'") from None
    frame: pd.DataFrame = pd.DataFrame(lines)
    return frame
