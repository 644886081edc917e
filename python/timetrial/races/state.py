"""The state of a race while it runs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from timetrial.analysis.pairs import GATE, judge
from timetrial.cases.budget import Budget
from timetrial.experiment.engine import Engine
from timetrial.experiment.experiment import Experiment
from timetrial.experiment.validate import ReadyCase
from timetrial.progress import QuietProgress
from timetrial.proving.sharing import Proofs
from timetrial.races.pair import StartedPair
from timetrial.records.metric import METRICS, Metric
from timetrial.records.model import Parity
from timetrial.records.race import PairRecord, Stage, clock_looks
from timetrial.statistics.trimmed import FEWEST as LEAST_PAIRS
from timetrial.statistics.verdict import Decision, Rule, Verdict


@dataclass
class RaceState:
    """What was asked, what has been measured, and the pair that is under way."""

    experiment: Experiment
    engine: Engine
    folder: Path
    rule: Rule
    metric: Metric
    sides: list[ReadyCase]  # that can take part, the base first
    names: dict[str, str]  # by case id
    progress: QuietProgress
    isolated: bool
    budget: Budget
    confirms: Collection[Verdict]  # which verdicts are raced once more
    extends: bool = False  # the budget doubles, once, where only the confirmation is missing
    extended: bool = False
    goes_on: bool = False  # beside a side that is stopped: all ride apart
    cut_off: bool = False  # the budget was over within a pair, which was ended
    overlaps: bool = False  # launches of a pair end while those of the next one start
    next_pair: int = 0  # number of its folder
    proofs: dict[str, Parity | None] = field(default_factory=dict)  # by content id
    made: Proofs = field(default_factory=lambda: Proofs([]))  # the proof launches
    not_carried: list[str] = field(default_factory=list)  # what holds here and not in contenders
    pairs: list[PairRecord] = field(default_factory=list)  # that have ended
    under_way: StartedPair | None = None  # its rounds are over, its launches end

    def counting(self, stage: Stage) -> list[PairRecord]:
        """Those of a stage, in order."""
        return [one for one in self.counted if one.stage == stage]

    def log_ratios(self, challenger: str, stage: Stage) -> list[float]:
        """Of the pairs that count, in order."""
        pairs = self.counting(stage)
        return [one.log_ratios[challenger][GATE] for one in pairs if challenger in one.log_ratios]

    def decision(self, challenger: str, stage: Stage) -> Decision | None:
        """Of the looks so far; None: more pairs are needed."""
        looks, ratios = clock_looks(self.pairs, challenger, stage), self.log_ratios(challenger, stage)
        if self.cut_off and len(ratios) >= LEAST_PAIRS:  # the clock asks once more, behind what there is
            looks = [*looks, len(ratios)]
        return judge(ratios, self.rule.looking_at(looks), METRICS[self.metric].good)

    @property
    def span(self) -> int | None:
        """Over how many steps the time of a step repeats, by the pairs so far, one that is about to end
        included; None: there is none."""
        spans = [one.span for one in self.counted]
        spans += [self.under_way.span] if self.under_way else []
        return max(spans, default=None)

    @property
    def counted(self) -> list[PairRecord]:
        """Pairs of either stage in which no side failed."""
        return [one for one in self.pairs if one.void is None]

    @property
    def void(self) -> list[PairRecord]:
        """Pairs in which a side failed."""
        return [one for one in self.pairs if one.void is not None]
