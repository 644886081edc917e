"""What a race found, computed from its records: nothing here measures, and nothing is stored twice."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timetrial.analysis.growth import Growth, growth_of
from timetrial.analysis.outlook import Outlook, outlook
from timetrial.analysis.pairs import GATE, OTHERS, judge
from timetrial.analysis.raced import RACED, Ride
from timetrial.analysis.summary import with_levels
from timetrial.cautions import Caution
from timetrial.errors import InputError
from timetrial.records import race as records
from timetrial.records import store
from timetrial.records.metric import METRICS, Metric
from timetrial.records.model import CaseRecord, LaunchRecord, Parity
from timetrial.records.proven import content_of, proof_of
from timetrial.records.race import PairRecord, Stage
from timetrial.results.names import side_names
from timetrial.results.results import LaunchFiles, analyzed
from timetrial.statistics.dispersion import coarse_tick_ns
from timetrial.statistics.intervals import Estimate, positive_location
from timetrial.statistics.trimmed import FEWEST, trimmed_mean
from timetrial.statistics.verdict import Decision, Effect, Rule, Verdict, decide, older_errors

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from timetrial.report.race import RaceTable

# The worst first: what a race with several challengers says as a whole.
_WORST: tuple[Verdict | None, ...] = ("worse", None, "inconclusive", "same", "better")
EXIT_CODES: dict[Verdict | None, int] = {"same": 0, "better": 0, "worse": 1, "inconclusive": 3, None: 4}


@dataclass(frozen=True)
class Duel:
    """One challenger against the base. `effect` is challenger over base minus 1."""

    base: str  # name of the side that is compared with
    challenger: str  # name of the side that is compared
    case: str  # id of the challenger's
    verdict: Verdict | None  # None: it could not be judged, and `reason` says why
    reason: str | None  # why there is no verdict, or why it is unsure
    effect: Effect | None  # of the metric; None: not judged
    pairs: int  # that the verdict stands on
    void: int  # pairs in which a side failed
    p_value: float | None  # two-sided, that there is no effect
    minimal_detectable_effect: float | None  # a fraction: what so many pairs find in 9 of 10 races
    confirmed: bool | None  # of a difference: by an independent second race; None: not asked for or needed
    log_ratios: list[float]  # ln(challenger / base) of each pair it stands on
    other_statistics: dict[str, float]  # what median and lower quartile of turns say, as effects
    settings: list[str]  # effective settings that differ, in words

    def to_json(self) -> dict[str, Any]:
        """The JSON of `timetrial race --json`, without what concerns the whole race."""
        effect = None if self.effect is None else vars(self.effect).copy()
        keys = ("verdict", "reason", "base", "challenger", "pairs", "void", "p_value")
        return {
            **{key: getattr(self, key) for key in keys},
            "effect": effect,
            "minimal_detectable_effect": self.minimal_detectable_effect,
            "confirmed": self.confirmed,
            "log_ratios": self.log_ratios,
            "other_statistics": self.other_statistics,
            "settings": self.settings,
        }


class Race:
    """A race, read from its folder. With two sides its own words are those of the one duel."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.record = records.read_race(folder)
        self.end, self._damaged_end = _end_of(folder)
        self.pairs: list[PairRecord]
        self.pairs, self.damaged_pairs = records.read_pairs(folder)
        self.cases: list[CaseRecord] = self.record.experiment.cases
        self.names = side_names(self.cases)

    @property
    def metric(self) -> Metric:
        """Of RACED in records/metric.py."""
        return self.record.metric

    @property
    def rule(self) -> Rule:
        """By which the verdicts were reached."""
        asked = self.record.rule
        errors = asked.errors or older_errors(asked.confidence, len(asked.looks))
        return Rule(asked.min_effect, asked.equivalence, tuple(asked.looks), tuple(errors), asked.trim)

    @property
    def again(self) -> str:
        """The command that races once more."""
        return self.record.experiment.again

    @property
    def seconds(self) -> float | None:
        """From the first proof to the verdict."""
        return self.end.seconds if self.end else None

    @cached_property
    def duels(self) -> list[Duel]:
        """Each challenger against the base, in the order given."""
        return [self._duel(case) for case in self.cases[1:]]

    @property
    def worst(self) -> Duel:
        """The duel that speaks for the race."""
        return min(self.duels, key=lambda duel: _WORST.index(duel.verdict))

    @property
    def verdict(self) -> Verdict | None:
        """Of the worst duel."""
        return self.worst.verdict

    @property
    def effect(self) -> Effect | None:
        """Of the worst duel."""
        return self.worst.effect

    @property
    def confirmed(self) -> bool | None:
        """Of the worst duel."""
        return self.worst.confirmed

    @property
    def minimal_detectable_effect(self) -> float | None:
        """Of the worst duel."""
        return self.worst.minimal_detectable_effect

    @property
    def exit_code(self) -> int:
        """Of `timetrial race`: 0 same or better, 1 worse, 3 inconclusive, 4 could not be judged."""
        return EXIT_CODES[self.verdict]

    @cached_property
    def launches(self) -> dict[str, list[LaunchFiles]]:
        """Case id -> its launches in pairs that count, as far as they can be read."""
        return self._read[0]

    @property
    def damaged(self) -> list[str]:
        """What is to be said of pairs and launches whose records or samples are not as they were written.
        Verdicts stand on what pairs found when they ended; without all of these there is none."""
        said = [*self._damaged_end, *self.damaged_pairs]
        return [*(Caution.DAMAGED.words(error=one) for one in said), *self._read[1]]

    @cached_property
    def _read(self) -> tuple[dict[str, list[LaunchFiles]], list[str]]:
        found: dict[str, list[LaunchFiles]] = {case.id: [] for case in self.cases}
        damaged = []
        for pair in self.pairs:
            for side in pair.sides if pair.void is None else ():
                folder = records.pair_folder(self.folder, pair.number) / side
                try:
                    record = store.read_launch(folder)
                except InputError as error:
                    damaged.append(Caution.DAMAGED.words(error=error))
                    continue
                if record.outcome == "damaged":
                    damaged.append(Caution.DAMAGED.words(error=record.reason))
                else:
                    found[side].append(LaunchFiles(record, folder))
        return found, damaged

    def level(self, case: str) -> Estimate | None:
        """The metric of one side with its interval over launches, in the metric's unit: ns, 1/s, bytes. Of a
        judged challenger it is the base's times the ratio that the verdict stands on: both are of the same
        rounds, while each side's own typical value may be of other moments of the machine."""
        own = positive_location(self.values(case))
        duel = next((one for one in self.duels if one.case == case), None)
        base = positive_location(self.values(self.cases[0].id))
        if own is None or base is None or duel is None or duel.effect is None:
            return own
        factor = base.estimate * (1 + duel.effect.estimate) / own.estimate
        return own.scaled(factor)

    def values(self, case: str) -> list[float]:
        """The metric of each launch of a side, in its unit."""
        return self._values[case]

    @cached_property
    def _values(self) -> dict[str, list[float]]:
        return {
            case: [value for one in launches if (value := self._value(case, one)) is not None]
            for case, launches in self.launches.items()
        }

    @cached_property
    def growth(self) -> dict[str, Growth]:
        """Case id -> what grows from step to step in its launches of pairs that count."""
        launches = [analyzed(one) for own in self.launches.values() for one in own]
        launches = launches if self.record.isolated else with_levels(launches)
        return {
            case.id: growth_of([one for one in launches if one.record.case == case.id]) for case in self.cases
        }

    def coarse_tick_ns(self) -> int | None:
        """The tick of the clock, where it is too coarse for the steps of a side; None: it is fine."""
        firsts = [launches[0] for launches in self.launches.values() if launches]
        ticks = [coarse_tick_ns(one.steps().duration_ns) for one in firsts]
        return max((tick for tick in ticks if tick is not None), default=None)

    def _value(self, case: str, files: LaunchFiles) -> float | None:
        batch_size = next(one.batch_size for one in self.cases if one.id == case)
        return RACED[self.metric].value(Ride(files.record, files.steps, batch_size))

    def log_ratios(
        self, challenger: str, stage: Stage = "judge", statistic: str | None = None
    ) -> list[float]:
        """ln(challenger / base) of each pair of a stage that counts, in order. `challenger`: a case's id.
        `statistic`: one of a pair's; None: the one that verdicts stand on."""
        statistic = statistic or self.record.rule.gate
        ratios = [one.log_ratios.get(challenger, {}) for one in self.pairs if one.stage == stage]
        return [one[statistic] for one in ratios if statistic in one]

    def to_pandas(self) -> pd.DataFrame:
        """One line per pair and challenger."""
        from timetrial.results.race_frames import pairs_frame

        return pairs_frame(self)

    def rounds(self) -> pd.DataFrame:
        """One line per turn: pair, round, side, its time per step."""
        from timetrial.results.race_frames import rounds_frame

        return rounds_frame(self)

    def export(self, format: str, path: str | Path | None = None, *, force: bool = False) -> Path | str:
        """In the format of another tool: "csv" and "parquet" into the folder `path`; "google-benchmark",
        "bencher" and "github-action" into the file `path`, or as text without one; "history" behind what the
        file `path` has; "mlflow" and "tensorboard" into a folder of that tool. Tables: pairs and rounds.
        `force`: over files that exist. InputError: no such format, or a path that cannot be taken.
        Unavailable: what the format needs (pandas, pyarrow, MLflow, TensorBoard) is not installed."""
        from timetrial.exports import export

        return export(self, format, path, force=force)

    def plot(self) -> Figure:
        """Every pair as a point, the interval, the bands of `same` and of the smallest effect; beside them
        the estimate as pairs came in. InputError: no pair has ended."""
        from timetrial.figures.plots_race import race_figure

        return race_figure(self)

    def proof(self, case: str) -> LaunchRecord | None:
        """The side's proof launch, or that of a side which differs in nothing that changes what is computed;
        None: there was none."""
        folders = {file.parent.name: file.parent for file in self.folder.glob(f"proof/*/{store.RECORD_FILE}")}
        if content_of(case) in folders:
            return store.read_launch(folders[content_of(case)])
        proofs = {name: store.read_launch(folder) for name, folder in folders.items()}
        outcomes = {name: str(record.outcome) for name, record in proofs.items()}
        side = next((one for one in self.cases if one.id == case), None)
        giver = proof_of(side, self.cases, outcomes) if side else None
        return proofs[giver] if giver else None

    def parity(self, case: str) -> Parity | None:
        """What the side's proof said; None: it was not proven."""
        proof = self.proof(case)
        return proof.parity if proof else None

    @property
    def origins(self) -> dict[str, str]:
        """Of a race against a revision, by name of a side: the file that its step was imported from, as its
        proof launch said, and the commit and changes of the checkout."""
        proofs = {case: self.proof(case) for case in self.record.trees}
        files = {case: one.facts.get("callable.file", "-") if one else "-" for case, one in proofs.items()}
        return {self.names[case]: f"{files[case]}, {tree}" for case, tree in self.record.trees.items()}

    def to_json(self) -> dict[str, Any]:
        """The JSON of `timetrial race --json`: plain dicts, lists, numbers, words and None."""
        whole = {
            "schema_version": self.record.schema_version,
            "metric": self.metric,
            "seconds": self.seconds,
            "isolated": self.record.isolated,
            **({"origins": self.origins} if self.origins else {}),
            "levels": {self.names[case.id]: _interval(self.level(case.id)) for case in self.cases},
            "records": str(self.folder),
            "again": self.again,
        }
        if len(self.duels) == 1:
            return {**whole, **self.duels[0].to_json()}
        return {**whole, "races": [duel.to_json() for duel in self.duels]}

    def table(self) -> RaceTable:
        """The sides and the verdicts, for rich."""
        from timetrial.report.race import RaceTable

        return RaceTable(self)

    def explain(self) -> str:
        """The worst duel in several lines of plain text: what a failed test prints."""
        from timetrial.report.race import explain

        return explain(self, self.worst)

    def __repr__(self) -> str:
        from timetrial.report.rendering import to_text

        return to_text(self)

    def _repr_html_(self) -> str:
        from timetrial.report.rendering import to_html

        return to_html(self)

    # --------------------------------------------------------------------------------------------------

    def _duel(self, case: CaseRecord) -> Duel:
        values = self.log_ratios(case.id, "judge")
        first = self._judge(case.id, "judge")
        last: Decision | None = first
        confirmed, reason = None, None
        in_time = not self._out_of_time or len(self.log_ratios(case.id, "confirm")) >= FEWEST
        asked = self.record.confirms if self.record.confirm and in_time else ()
        if first is not None and first.verdict in asked:
            last, confirmed, reason = self._confirmed(case, first)
        if first is None:
            reason = self._why_not_judged(case)
        return Duel(
            base=self.names[self.cases[0].id],
            challenger=self.names[case.id],
            case=case.id,
            verdict=last.verdict if last else None,
            reason=reason,
            effect=last.effect if last else None,
            pairs=last.pairs if last else len(values),
            void=sum(one.void is not None and case.id in one.sides for one in self.pairs),
            p_value=last.p_value if last else None,
            minimal_detectable_effect=last.minimal_detectable_effect if last else None,
            confirmed=confirmed,
            log_ratios=values[: last.pairs] if last else values,
            other_statistics=self._other_statistics(case.id),
            settings=self._differing_settings(case.id),
        )

    def outlook(self, case: str, stage: Stage = "judge") -> Outlook | None:
        """What a challenger's pairs of a stage say so far, and what would decide it; None: it has none."""
        pairs = [one for one in self.pairs if one.stage == stage and case in one.log_ratios]
        return outlook(pairs, case, self.rule, self.record.rule.gate)

    def rule_of(self, case: str, stage: Stage = "judge") -> Rule:
        """The rule with those looks at a challenger that the clock has brought."""
        return self.rule.looking_at(records.clock_looks(self.pairs, case, stage))

    def _judge(self, case: str, stage: Stage) -> Decision | None:
        if self.damaged_pairs:  # looks at other sets of pairs than were planned
            return None
        values, good = self.log_ratios(case, stage), METRICS[self.metric].good
        rule = self.rule_of(case, stage)
        found = judge(values, rule, good)
        if found is not None or not self._out_of_time or len(values) < FEWEST:
            return found
        # The time was over, whatever the pairs said: this look stands for the next planned one.
        return decide(values, rule, good, last=True)

    @property
    def _out_of_time(self) -> bool:
        return self.end is not None and self.end.stop_reason == "budget"

    def _confirmed(self, case: CaseRecord, first: Decision) -> tuple[Decision | None, bool, str | None]:
        """A difference stands only if a second race, with pairs of its own, says the same. None: that race
        ended before it could say anything."""
        second = self._judge(case.id, "confirm")
        found = f"{100 * first.effect.estimate:+.1f}"
        if second is None:
            then = f"was not judged: {self._why_not_judged(case)}"
            return None, False, Caution.NOT_REPEATED.words(first=found, second=then)
        if second.verdict == first.verdict:
            return first, True, None
        then = f"found {100 * second.effect.estimate:+.1f} %"
        reason = Caution.NOT_REPEATED.words(first=found, second=then)
        unsure = Decision(
            "inconclusive", first.effect, first.pairs, first.p_value, first.minimal_detectable_effect
        )
        return unsure, False, reason

    def _why_not_judged(self, case: CaseRecord) -> str:
        if case.unavailable is not None:
            return f"unavailable: {case.unavailable}"
        if self.damaged_pairs:
            return f"the records of {len(self.damaged_pairs)} of its pairs are damaged"
        if self.end is None:
            return f"the race was ended from outside{self._so_far(case)}"
        if self.end.stop_reason == "interrupted":
            return f"interrupted{self._so_far(case)}"
        return self.end.reason or f"ended after {len(self.pairs)} pairs"

    def _so_far(self, case: CaseRecord) -> str:
        found = self.outlook(case.id)
        if found is None:
            return ""
        from timetrial.report.numbers import percent_interval

        pairs = f"{found.pairs} pair{'s' if found.pairs > 1 else ''}"
        seen = percent_interval(found.estimate, found.low, found.high)
        return f" after {pairs}; so far {seen}, which is no verdict"

    def _other_statistics(self, case: str) -> dict[str, float]:
        found = {}
        for name in (GATE, *OTHERS):
            values = self.log_ratios(case, "judge", name)
            if name != self.record.rule.gate and len(values) >= FEWEST:
                found[name] = math.expm1(trimmed_mean(values, self.rule.trim).location)
        return found

    def _differing_settings(self, case: str) -> list[str]:
        both = [self.launches[self.cases[0].id], self.launches[case]]
        if not all(both):
            return []
        base, other = (_effective(launches[-1].record) for launches in both)
        return [
            f"{name}: {base.get(name, '-')} -> {other.get(name, '-')}"
            for name in dict.fromkeys([*base, *other])
            if base.get(name) != other.get(name)
        ]


def _end_of(folder: Path) -> tuple[records.RaceEnd | None, list[str]]:
    """How it ended, and what is to be said if that cannot be read: pairs still say what they found."""
    try:
        return records.read_end(folder), []
    except InputError as error:
        return None, [str(error)]


def _interval(level: Estimate | None) -> dict[str, float | None] | None:
    return None if level is None else {key: getattr(level, key) for key in ("estimate", "low", "high")}


def _effective(record: LaunchRecord) -> dict[str, str]:
    return {one.name: str(one.effective) for one in record.settings if one.effective is not None}
