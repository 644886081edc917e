"""Answers of several seeds to the images of a test set as they might come out: every image has a difficulty,
every seed a skill, and the rest is chance. An answer is right where their sum is above 0 (probit)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from timetrial.statistics.accuracy import DIFFERENT, accuracy_of, pooled
from timetrial.statistics.multiplicity import holm


@dataclass(frozen=True)
class ImageWorld:
    """Standard deviations of difficulty, skill and chance, and the mean."""

    images: int
    mean: float
    difficulty: float
    skill: float
    chance: float

    @property
    def truth(self) -> float:
        """The share of right answers over all images and all seeds there could be."""
        spread = math.sqrt(self.difficulty**2 + self.skill**2 + self.chance**2)
        return float(special.ndtr(self.mean / spread))

    def answers(self, rng: np.random.Generator, seeds: int) -> npt.NDArray[np.float64]:
        """(seeds, images), 1 where right."""
        return np.asarray(self.levels(rng, 1, seeds)[0] > 0, np.float64)

    def levels(self, rng: np.random.Generator, rows: int, seeds: int) -> npt.NDArray[np.float64]:
        """(rows, seeds, images), right where above 0: of rows that compute the same, whose trainings part."""
        level = self.mean + self.difficulty * rng.standard_normal(self.images)
        level = level + self.skill * rng.standard_normal((rows, seeds, 1))
        return np.asarray(level + self.chance * rng.standard_normal((rows, seeds, self.images)))


IMAGE_WORLDS = {
    "360 images": ImageWorld(360, 2.0, 1.0, 0.05, 0.3),
    "360 images, seeds agree": ImageWorld(360, 2.0, 1.0, 0.0, 0.0),
    "360 images, seeds differ": ImageWorld(360, 2.3, 1.0, 0.15, 0.2),
    "360 images, hard": ImageWorld(360, 1.0, 1.0, 0.05, 1.0),
    "360 images, nearly all right": ImageWorld(360, 3.0, 1.0, 0.1, 0.1),
}


@dataclass(frozen=True)
class AccuracyCoverage:
    """How often intervals held the truth: those over seeds and images, and Student's t over seeds alone."""

    held: float
    width: float
    over_seeds: float


def accuracy_coverage(world: ImageWorld, seeds: int, trials: int, seed: int) -> AccuracyCoverage:
    """For new images and new seeds."""
    rng = np.random.default_rng(seed)
    held, over_seeds, widths = 0, 0, []
    for _ in range(trials):
        right = world.answers(rng, seeds)
        found = accuracy_of(right)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        held += found.low <= world.truth <= found.high
        widths.append(found.high - found.low)
        shares = right.mean(axis=1)
        half = float(special.stdtrit(seeds - 1, 0.975)) * float(shares.std(ddof=1)) / math.sqrt(seeds)
        over_seeds += abs(float(shares.mean()) - world.truth) <= half
    return AccuracyCoverage(held / trials, float(np.median(widths)), over_seeds / trials)


ALIKE_WORLDS = {
    "a little": ImageWorld(1112, 2.0, 1.0, 0.0, 0.3),
    "as an LSTM's over mails": ImageWorld(1112, 2.0, 1.0, 0.15, 0.3),
}
WORSE = 0.5  # by so much the level of a row that learned less is lower: 5 % fewer right answers


@dataclass(frozen=True)
class AlikeRates:
    """How often a row of equal ones was named, and one that learned less; by the sign test over images alone
    likewise. `parted`: the standard deviation of accuracies of one seed."""

    parted: float
    named: float
    found: float
    named_by_images: float
    found_by_images: float


def alike_rates(world: ImageWorld, rows: int, seeds: int, trials: int, seed: int) -> AlikeRates:
    """Of so many tables of rows that are equal, and of as many in which the first learned less."""
    rng = np.random.default_rng(seed)
    counts, parted = np.zeros(4), 0.0
    for _ in range(trials):
        levels = world.levels(rng, rows, seeds)
        parted += float(np.mean(np.std(np.mean(levels > 0, axis=2), axis=0, ddof=1)))
        equal = list(levels > 0)
        levels[0] -= WORSE
        other = list(levels > 0)
        counts += [
            not all(pooled([dict(enumerate(row)) for row in equal])[1]),
            not pooled([dict(enumerate(row)) for row in other])[1][0],
            not all(_alike_on_images(equal)),
            not _alike_on_images(other)[0],
        ]
    return AlikeRates(parted / trials, *(counts / trials))


def _alike_on_images(rows: list[npt.NDArray[np.bool_]]) -> list[bool]:
    majority = np.median(rows, axis=0)
    p_values = []
    for row in rows:
        balance = np.sum(row, axis=0) - np.sum(majority, axis=0)
        better, both = int(np.count_nonzero(balance > 0)), int(np.count_nonzero(balance))
        p_values.append(float(stats.binomtest(better, both).pvalue) if both else 1.0)
    return [p > DIFFERENT for p in holm(p_values)]
