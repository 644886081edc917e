"""Which candidates to measure next: Optuna's samplers, by ask and tell.

First each choice in turn gets all its values beside the best that is known of the choices before it: most of
what a setting does, it does beside any other. Then a Gaussian process over the categories proposes
(GPSampler, which needs torch), or else a tree-structured Parzen estimator. `benchmarks/self/tune_search.py`
says how often which finds what.
"""

from __future__ import annotations

import contextlib
import importlib.util
import random
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

from timetrial.errors import Unavailable
from timetrial.tuning.space import Candidate, Space

if TYPE_CHECKING:
    import optuna

STARTUP = 6  # measured candidates, until the sampler has a model
TRIES = 4  # proposals that were measured before, until one is drawn by chance


class Search:
    """Asks for candidates that were not measured yet, and is told what they took."""

    def __init__(self, space: Space, seed: int):
        self._space = space
        self._study = _study(seed)
        self._random = random.Random(seed)
        self._asked: dict[str, optuna.trial.Trial | None] = {}  # by the case's id; None: by chance
        self._values: dict[str, float | None] = {}
        self._choices = list(space.choices)  # whose values were not looked at in turn
        self._planned = [space.base]

    @property
    def method(self) -> str:
        """The sampler, by name."""
        return type(self._study.sampler).__name__

    def ask(self, count: int) -> list[Candidate]:
        """Up to so many, fewer where the next are to be told from them; none when all have been asked for."""
        found = self._in_turn(count)
        if found:
            return found
        with _one_thread():
            while len(found) < count and len(self._asked) < len(self._space.candidates):
                found.append(self._new())
        return found

    def tell(self, candidate: Candidate, log_ratio: float | None) -> None:
        """ln(step time / that of the base). None: it failed, or was not proven, and never wins."""
        name = candidate.case.id
        trial = self._asked.setdefault(name, None)
        self._values[name] = log_ratio
        if trial is not None:
            self._tell(trial, log_ratio)
        else:
            self._add(candidate, log_ratio)

    def _in_turn(self, count: int) -> list[Candidate]:
        """Of the first choice whose values were not all asked for. While nothing is known, the base is the
        best, and the values of one choice need not wait for those of another."""
        enough = 1 if self._values else count
        while self._choices and len(self._waiting()) < enough:
            self._planned = self._waiting() + self._space.values_of(self._choices.pop(0), self._best())
        found = self._waiting()[:count]
        self._asked.update(dict.fromkeys(one.case.id for one in found))
        return found

    def _waiting(self) -> list[Candidate]:
        by_id = {one.case.id: one for one in self._planned}
        return [one for name, one in by_id.items() if name not in self._asked]

    def _best(self) -> Candidate:
        timed = {name: value for name, value in self._values.items() if value is not None}
        if not timed:
            return self._space.base
        best = min(timed, key=lambda name: timed[name])
        return next(one for one in self._space.candidates if one.case.id == best)

    def _new(self) -> Candidate:
        for _ in range(TRIES):
            trial = self._study.ask()
            candidate = self._space.find(self._suggested(trial))
            if candidate is not None and candidate.case.id not in self._asked:
                self._asked[candidate.case.id] = trial
                return candidate
            # What is known is told again; what is no candidate at all has failed.
            self._tell(trial, self._values.get(candidate.case.id) if candidate else None)
        left = [one for one in self._space.candidates if one.case.id not in self._asked]
        candidate = self._random.choice(left)
        self._asked[candidate.case.id] = None
        return candidate

    def _suggested(self, trial: optuna.trial.Trial) -> dict[str, str]:
        return {name: trial.suggest_categorical(name, some) for name, some in self._space.choices.items()}

    def _tell(self, trial: optuna.trial.Trial, value: float | None) -> None:
        import optuna

        state = optuna.trial.TrialState.FAIL if value is None else None
        self._study.tell(trial, value, state=state)

    def _add(self, candidate: Candidate, value: float | None) -> None:
        """Of one that no trial asked for: drawn by chance, or measured by an earlier session."""
        import optuna

        states = optuna.trial.TrialState
        self._study.add_trial(
            optuna.trial.create_trial(
                params=dict(candidate.point),
                distributions={
                    name: optuna.distributions.CategoricalDistribution(some)
                    for name, some in self._space.choices.items()
                },
                value=value,
                state=states.FAIL if value is None else states.COMPLETE,
            )
        )


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """The model is small: several threads of torch's wait for each other, for seconds on a busy machine."""
    if importlib.util.find_spec("torch") is None:
        yield
        return
    torch = importlib.import_module("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _study(seed: int) -> optuna.Study:
    """Unavailable: without Optuna."""
    try:
        import optuna
    except ImportError:
        raise Unavailable("timetrial tune needs Optuna: pip install 'timetrial[tune]'") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a sampler is new
        sampler: optuna.samplers.BaseSampler
        if importlib.util.find_spec("torch") is None:
            sampler = optuna.samplers.TPESampler(
                seed=seed, multivariate=True, constant_liar=True, n_startup_trials=STARTUP
            )
        else:
            sampler = optuna.samplers.GPSampler(seed=seed, n_startup_trials=STARTUP)
        return optuna.create_study(sampler=sampler)
