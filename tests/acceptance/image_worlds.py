"""Answers of several seeds to the images of a test set as they might come out: every image has a difficulty,
every seed a skill, and the rest is chance. An answer is right where their sum is above 0 (probit)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from timetrial.statistics.accuracy import accuracy_of


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
        level = self.mean + self.difficulty * rng.standard_normal(self.images)
        level = level + self.skill * rng.standard_normal((seeds, 1))
        return np.asarray(level + self.chance * rng.standard_normal((seeds, self.images)) > 0, np.float64)


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
