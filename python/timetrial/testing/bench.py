"""The fixture `bench`: sides, and what a test asserts about them."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import pytest

from timetrial.cases.sizes import bytes_of
from timetrial.errors import InputError, TimetrialError, Unavailable
from timetrial.testing.judgement import Assertion, Judged, Judgement, Status
from timetrial.testing.marker import Wishes, check_metric, check_slowdown
from timetrial.testing.remembered import race_entry, value_entry
from timetrial.testing.suite import LEVEL, Suite, accident
from timetrial.testing.words import (
    advice,
    duel_words,
    evidence,
    failed_words,
    with_pytests_cure,
)

if TYPE_CHECKING:
    from timetrial.races import Duel, Race, Side
    from timetrial.records.metric import Metric
    from timetrial.statistics.verdict import Rule
    from timetrial.testing.engine import Engine, Ran

# `same` needs more room than `worse`: between the two nothing could be decided (3 % and 5 % by default).
EQUIVALENCE = 5 / 3
FULL_SEEDS = 3  # of assert_learns, with --bench=full
FULL_LAUNCHES = 3  # of assert_memory_at_most, with --bench=full

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class Session:
    """What holds for every test of a session."""

    judging: bool  # whether times are judged
    refused: bool  # whether that was asked for, and cannot be
    reason: str  # why times are not judged
    engine: Engine
    suite: Suite
    history: bool = False  # whether each judgement is to have a line of a history


def _plainly(
    method: Callable[Concatenate[Bench, _Arguments], _Answer],
) -> Callable[Concatenate[Bench, _Arguments], _Answer]:
    """timetrial's own errors end at the test's line: its insides would only hide what to mend."""

    @functools.wraps(method)
    def inner(bench: Bench, /, *args: _Arguments.args, **keywords: _Arguments.kwargs) -> _Answer:
        __tracebackhide__ = True
        began = bench.begin()
        try:
            return method(bench, *args, **keywords)
        except Unavailable as lacking:
            if bench.wishes.strict:
                raise AssertionError(f"unavailable: {lacking}") from None
            reason = f"unavailable: {lacking}"
        except TimetrialError as error:
            raise type(error)(with_pytests_cure(str(error))) from None
        finally:
            bench.spend(time.monotonic() - began)
        pytest.skip(reason)

    return inner


class Bench:
    """Asserts about training steps, each in a fresh process, like any contender of timetrial.

    A side is one case: `train()` makes one of a network that timetrial knows, `step()` one of
    your own code. `--bench=once` (the default) launches every side once and judges no time; `--bench=full`
    races them. What does not depend on a clock (accuracy, memory) is judged either way. A side that this
    machine lacks skips the test, or fails it with `--bench-strict`.
    """

    def __init__(
        self,
        test: str,
        wishes: Wishes,
        session: Session,
        note: Callable[[Judgement], None],
        spend: Callable[[float], None] = lambda seconds: None,
    ):
        self.wishes = wishes
        self.spend = spend  # takes the seconds of one call
        self._test = test
        self._session = session
        self._note_judgement = note
        self._began = time.monotonic()

    def begin(self) -> float:
        """A call begins now; `time.monotonic()`."""
        self._began = time.monotonic()
        return self._began

    def train(self, network: str, *, backend: str, **keys: Any) -> Side:
        """A side that trains `network` by `backend`; `keys` as of `timetrial run` (threads=1, dataset=...).

        Keys with a dot: **{"blas.library": "blis"}.
        """
        from timetrial.races import Side

        return Side({"backend": backend, "network": network, **keys})

    def step(self, make_step: str | Callable[[], Any], **keys: Any) -> Side:
        """A side that calls your own step: "package.module:make_step" names the function that makes it, or is
        that function. A fresh process imports it from where this one imports, and from pytest's rootdir.

        `python` names the interpreter, so that two installed versions can be raced:
        `mine.replace(python=".venv-before/bin/python")`.
        """
        from timetrial.races import Side

        if callable(make_step):
            from timetrial.contenders.functions import word_of

            make_step = word_of(make_step)
        return Side({"callable": make_step, **keys})

    @_plainly
    def revision(self, word: str, *, setup: str | None = None) -> Side:
        """The side beside it, in a revision of git's (main, v1.2, a commit) or another checkout (its path).
        `setup`: a command that installs it, for an interpreter of its own: "pip install -e ."."""
        from timetrial.contenders.revisions import base_keys
        from timetrial.environments import find_interpreter
        from timetrial.races import Side

        return Side(base_keys(word, setup, find_interpreter(None)))

    @_plainly
    def race(self, *sides: Side, metric: Metric | None = None, rule: Rule | None = None) -> Race:
        """The race of these sides, the first is the base. You judge it; nothing here fails.

        Unless --bench=full, every side is launched once and the test is skipped here: what comes after
        needs numbers that nobody measured.
        """
        __tracebackhide__ = True
        if not self._session.judging:
            self._launch_each(sides, metric or self.wishes.metric)
            self._not_judged("race")
            pytest.skip(f"every side runs; the race was not judged ({self._session.reason})")
        from timetrial.statistics.verdict import Rule

        race = self._session.engine.race(
            self._checked(sides), metric or self.wishes.metric, rule or Rule(), self.wishes.seed,
            self.wishes.budget,
        )  # fmt: skip
        for duel in race.duels:
            self._note("race", "raced", duel_words(race, duel), race=race, duel=duel)
        return race

    @_plainly
    def assert_not_slower(
        self, mine: Side, *, than: Side, max_slowdown: float | None = None, metric: Metric | None = None
    ) -> None:
        """Races `mine` against `than`, which is run again now, and fails if it is slower.

        Slower: the interval of the effect excludes 0, the effect is at least `max_slowdown` (a fraction, 3 %
        unless the marker says otherwise), a second race confirms it, and it survives the correction over the
        session's timing assertions (suite.py). Not slower: better, same, or an interval that ends below 5/3
        of `max_slowdown`. Otherwise the test is not decided, which pytest counts by itself and --bench-strict
        fails. A race takes at most the budget (two minutes, --bench-budget, the marker's `budget`), and up to
        twice as much to confirm that a side is slower; the summary says what would decide what is not
        decided.
        """
        __tracebackhide__ = True
        where = "assert_not_slower"
        slowdown = self.wishes.max_slowdown if max_slowdown is None else check_slowdown(max_slowdown, where)
        asked = self.wishes.metric if metric is None else check_metric(metric, where)
        if not self._session.judging:
            self._launch_each([than, mine], asked)
            self._not_judged("not slower")
            return
        from timetrial.statistics.verdict import Rule

        rule = Rule(min_effect=slowdown, equivalence=slowdown * EQUIVALENCE)
        race = self._session.engine.race(
            self._checked([than, mine]), asked, rule, self.wishes.seed, self.wishes.budget
        )
        self._judge(race, race.duels[0], rule)

    @_plainly
    def assert_learns(self, side: Side, *, accuracy: float, epochs: int, seeds: int | None = None) -> None:
        """Trains the side for so many epochs and fails unless every seed reaches `accuracy` (0 to 1).

        One seed, with --bench=full three; `seeds` says otherwise.
        """
        __tracebackhide__ = True
        if isinstance(accuracy, bool) or not isinstance(accuracy, int | float) or not 0 < accuracy <= 1:
            raise InputError(
                f"assert_learns: accuracy is {accuracy!r}; expected a fraction above 0, up to 1."
            )
        count = seeds if seeds is not None else FULL_SEEDS if self._session.judging else 1
        (side,) = self._checked([side])
        ran = self._session.engine.learn(side, self.wishes.seed, epochs, count)
        self._must_be_ok(ran)
        if not ran.accuracies:
            raise InputError(f"{ran.name} reports no accuracy, so whether it learns cannot be judged.")
        reached = ", ".join(f"{100 * one:.1f} %" for one in ran.accuracies)
        words = f"{ran.name}: accuracy {reached} after {epochs} epochs, asked {100 * accuracy:.1f} %"
        self._assert("learns", min(ran.accuracies) >= accuracy, words, ran, min(ran.accuracies))

    @_plainly
    def assert_memory_at_most(self, side: Side, limit: str | int) -> None:
        """Fails if the side's resident memory, while steady, exceeds `limit` ("200 MB", or bytes).

        From the kernel, of the whole process. One launch; the most of three with --bench=full.
        """
        __tracebackhide__ = True
        most = bytes_of(limit, "limit")
        (side,) = self._checked([side])
        ran = self._session.engine.occupy(
            side, self.wishes.seed, FULL_LAUNCHES if self._session.judging else 1
        )
        self._must_be_ok(ran)
        if ran.peak_bytes is None:
            raise InputError(f"{ran.name} ended before it was steady, so its memory cannot be judged.")
        words = f"{ran.name}: peak memory {ran.peak_bytes / 2**20:.1f} MB, allowed {most / 2**20:.1f} MB"
        self._assert("memory", ran.peak_bytes <= most, words, ran, ran.peak_bytes)

    @_plainly
    def assert_no_growth(self, side: Side) -> None:
        """Fails if the side's memory grows from step to step, or if its steps become slower.

        Memory: its own, by at least a page a step and 1 MB in all, to the end of each launch; judged always,
        by one launch or with --bench=full three. Time: by 5 % or more over the steps of each launch, with
        --bench=full. Not decided where launches have too few steps to tell.
        """
        __tracebackhide__ = True
        (side,), judging = self._checked([side]), self._session.judging
        ran = self._session.engine.occupy(side, self.wishes.seed, FULL_LAUNCHES if judging else 1)
        self._must_be_ok(ran)
        grown = ran.growth and replace(ran.growth, change=None)  # which is no growth
        if grown is not None and grown.words:
            words = f"{ran.name}: {'; '.join(grown.words)}"
            self._fail("growth", words, f"{words}\n{evidence(ran)}", ran=ran, value=ran.peak_bytes)
        if grown is None or grown.memory is None or (judging and grown.time is None):
            words = f"{ran.name}: its launches have too few steps to tell whether it grows"
            self._undecided("growth", words, f"{words}\n{evidence(ran)}", ran=ran)
        elif judging:
            self._note("growth", "passed", f"{ran.name}: neither memory nor step time grows", ran=ran)
        else:
            self._not_judged("growth")

    def _judge(self, race: Race, duel: Duel, rule: Rule) -> None:
        __tracebackhide__ = True
        from timetrial.report.deciding import is_out_of_time

        words = duel_words(race, duel)
        if duel.verdict is None and is_out_of_time(race):
            words, chance = f"{words}. {advice(race, duel, 1.0, rule)}", 1.0
            self._undecided("not slower", words, race.explain(), chance, race=race, duel=duel)
            return
        if duel.verdict is None:
            self._fail("not slower", words, race.explain(), race=race, duel=duel)
        chance = accident(duel, rule)
        adjusted = self._session.suite.adjusted(chance)
        if duel.verdict in ("better", "same") or _surely_below(duel, race.metric, rule.equivalence):
            self._note("not slower", "passed", words, chance, race=race, duel=duel)
        elif duel.verdict == "worse" and adjusted <= LEVEL:
            accidental = (
                f"  accident    chance at most {adjusted:.1g} if both were alike, by the model of Yuen's t: "
                "pairs independent of one another, alike in scatter. Corrected for this session's timing "
                f"assertions; up to {LEVEL:g} fails"
            )
            self._fail("not slower", words, f"{race.explain()}\n{accidental}", chance, race=race, duel=duel)
        else:
            words = f"{words}. {advice(race, duel, adjusted, rule)}"
            self._undecided("not slower", words, race.explain(), chance, race=race, duel=duel)

    def _undecided(
        self, assertion: Assertion, words: str, text: str, p_value: float | None = None, **found: Any
    ) -> None:
        __tracebackhide__ = True
        if self.wishes.strict:
            self._fail(assertion, words, text, p_value, **found)
        self._note(assertion, "undecided", words, p_value, **found)

    def _again(self) -> str:
        full = "--bench=full " if self._session.judging else ""
        return f"  as a test   pytest '{self._test}' {full}--bench-seed={self.wishes.seed}"

    def _launch_each(self, sides: Sequence[Side], metric: Metric) -> None:
        __tracebackhide__ = True
        self._must_be_ok(self._session.engine.once(self._checked(sides), metric, self.wishes.seed))

    def _checked(self, sides: Sequence[Side]) -> list[Side]:
        from timetrial.races import Side

        for side in sides:
            if not isinstance(side, Side):
                raise InputError(f"{side!r} is no side: bench.train(...) and bench.step(...) make them.")
        whole = [side for side in sides if {"backend", "callable"} & set(side.keys)]
        for part in sides:
            if part not in whole and "python" in part.keys and whole and "python" in whole[0].keys:
                raise InputError(
                    "bench.revision(setup=...) makes an interpreter of its own from the running one, and the "
                    f"side beside it has python={whole[0].keys['python']}. Leave out one of the two."
                )
        return [side if side in whole else whole[0].replace(**side.keys) for side in sides if whole]

    def _must_be_ok(self, ran: Ran) -> None:
        __tracebackhide__ = True
        if ran.outcome == "unavailable":
            raise Unavailable(f"{ran.name}: {ran.reason}")
        if ran.outcome != "ok":
            raise AssertionError(f"{failed_words(ran)}\n{evidence(ran)}\n{self._again()}")

    def _not_judged(self, assertion: Assertion) -> None:
        __tracebackhide__ = True
        if self._session.refused and self.wishes.strict:
            words = f"not judged: {self._session.reason}"
            self._fail(assertion, words, f"{words}\n  --bench-strict fails what was not judged")
        self._note(assertion, "not judged", self._session.reason)

    def _assert(self, assertion: Assertion, holds: bool, words: str, ran: Ran, value: float) -> None:
        __tracebackhide__ = True
        if not holds:
            self._fail(assertion, words, f"{words}\n{evidence(ran)}", ran=ran, value=value)
        self._note(assertion, "passed", words, ran=ran, value=value)

    def _fail(
        self, assertion: Assertion, words: str, text: str, p_value: float | None = None, **found: Any
    ) -> None:
        __tracebackhide__ = True
        self._note(assertion, "failed", words, p_value, **found)
        raise AssertionError(f"{text}\n{self._again()}")

    def _note(
        self,
        assertion: Assertion,
        status: Status,
        words: str,
        p_value: float | None = None,
        *,
        race: Race | None = None,
        duel: Duel | None = None,
        ran: Ran | None = None,
        value: float | None = None,
    ) -> None:
        judged, entry = None, None
        if race is not None and duel is not None:
            effect = (
                None if duel.effect is None else (duel.effect.estimate, duel.effect.low, duel.effect.high)
            )
            seconds = time.monotonic() - self._began
            judged = Judged(
                duel.challenger, duel.base, race.metric, duel.verdict, effect, duel.pairs, seconds
            )
            if self._session.history:
                entry = race_entry(self._test, status, race, duel, self._session.engine)
        elif ran is not None and value is not None and self._session.history:
            entry = value_entry(self._test, assertion, status, ran, value, self._session.engine)
        self._note_judgement(Judgement(self._test, assertion, status, words, p_value, judged, entry))


def _surely_below(duel: Duel, metric: str, equivalence: float) -> bool:
    """Whether a slowdown of `equivalence` is excluded: an inconclusive race may still show that."""
    if duel.verdict != "inconclusive" or duel.effect is None:
        return False
    if metric == "samples_per_s":  # half the rate is twice the time
        return 1 / (1 + duel.effect.low) - 1 < equivalence
    return duel.effect.high < equivalence
