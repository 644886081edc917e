"""Accuracy on a test set: how far it holds for other seeds *and* other images. Pure functions of arrays.

Seeds and images are crossed: every seed answers the same images. With the mean squares of a two-way layout
(seeds S, images I, their interaction E; Searle, Casella and McCulloch, "Variance Components", 1992, section
4.4) the variance of the mean over s seeds and i images, for new seeds and new images, is
(S + I - E) / (s i), with Satterthwaite's degrees of freedom. So many images as would give that variance if
each were drawn once are the effective ones; the interval is Wilson's score interval for them ("Probable
inference, the law of succession, and statistical inference", JASA 22, 1927), with Student's t. It does not
shrink to nothing where all answers are right, or all seeds agree.

Two rows are compared on the same images by the exact sign test: McNemar's test ("Note on the sampling error
of the difference between correlated proportions", Psychometrika 12, 1947) without its approximation. Over
several seeds an image counts once, for the row that was right on it with more seeds: answers of several seeds
to one image are not independent.

That says whether a row that is better on these images is better on others, and nothing of other seeds:
rounding alone lets two trainings from the same weights end in other places, each right or wrong on many
images at once. So a difference must be one over seeds too, by Student's t against the interaction of rows and
seeds (Scheffe, "The Analysis of Variance", 1959, section 4.1), of which several rows tell more than two, or,
of one seed, by what is known of other trainings. The larger p-value counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import special

from timetrial.statistics.intervals import CONFIDENCE, Estimate
from timetrial.statistics.multiplicity import holm

Right = npt.NDArray[np.floating | np.bool_]  # (seeds, images): 1 where an answer is right, 0 where not
DIFFERENT = 0.01  # chance that any of the rows that compute the same is set apart


# Untrained weights answer images of one class alike, so that their accuracy scatters as if each class had
# been asked so many times, however many images it has: with a tenth in each of ten classes by 0.047. mlp over
# digits8, lenet5 over digits28, MNIST and Fashion-MNIST scatter by 0.03 to 0.042 from seed to seed.
ANSWERS_OF_A_CLASS = 4
NEVER = 1e-6
# Standard deviation of the accuracies of trainings that rounding alone sends apart, with the same seed: twice
# the most that was seen of networks that had learned (docs/statistics.md, "Accuracy").
PARTED = 0.02
_EQUAL = 1e-12  # shares of right answers that differ by less are the same


@dataclass(frozen=True)
class Discordance:
    """Images on which two rows are not equally often right, and whether chance may have split them so."""

    only_first: int  # images that the first row had right more often
    only_second: int  # images that the second row had right more often
    p_value: float  # two-sided: of the exact sign test (McNemar), or over seeds where that is larger


def accuracy_of(right: Right, confidence: float = CONFIDENCE) -> Estimate | None:
    """The mean of (seeds, images) with its interval; None where there are no images.

    Between 0 and 1 an entry is the mean of several rows that answered with the same seed.
    """
    data = np.asarray(right, np.float64)
    if data.size == 0:
        return None
    seeds, images = data.shape
    center = float(np.mean(data))
    variance, df = _variance(data)
    return _wilson(center, variance, df, seeds, images, confidence)


def accuracy_of_shares(
    shares: Sequence[float], images: int, confidence: float = CONFIDENCE
) -> Estimate | None:
    """The same where only each seed's share of right answers is known: as if all seeds were right on the same
    images, which is nearly so and never makes the interval too narrow."""
    if not shares or images < 1:
        return None
    data = np.asarray(shares, np.float64)
    center, seeds = float(np.mean(data)), len(data)
    variance = center * (1 - center) / images
    among = float(np.var(data, ddof=1)) / seeds if seeds > 1 else 0.0
    total = variance + among
    # Satterthwaite's; that of the images is taken as known.
    df = (seeds - 1) * (total / among) ** 2 if among > 0 else math.inf
    return _wilson(center, total, df, seeds, images, confidence)


def discordance(first: Right, second: Right) -> Discordance:
    """Of two rows on the same images, with the same seeds in the same order. ValueError for other shapes."""
    one, other = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if one.shape != other.shape:
        raise ValueError(f"expected answers of the same seeds and images, got {one.shape} and {other.shape}")
    found = _sign_test(one, other)
    return replace(found, p_value=max(found.p_value, over_seeds([one, other])[0]))


def _sign_test(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> Discordance:
    balance = np.sum(one, axis=0) - np.sum(other, axis=0)
    for_first, for_second = int(np.count_nonzero(balance > 0)), int(np.count_nonzero(balance < 0))
    both = for_first + for_second
    # Two-sided: both tails of a fair coin are equal.
    p = min(1.0, 2 * float(special.bdtr(min(for_first, for_second), both, 0.5))) if both else 1.0
    return Discordance(for_first, for_second, p)


def over_seeds(rows: Sequence[Right]) -> list[float]:
    """For each of two or more rows with the same seeds: the two-sided p-value of its distance from the mean
    of the others, if each row's training ends a little elsewhere with each seed. How far, the others tell: a
    row that collapses with one seed is no excuse for itself. Of one seed they would tell little, and what is
    known of other trainings is taken (PARTED)."""
    shares = np.array([np.mean(one, axis=1) if one.size else np.zeros(len(one)) for one in rows])
    count, seeds = shares.shape
    if seeds < 2:
        away = (shares - (shares.sum(axis=0) - shares) / (count - 1))[:, 0]
        deviation = PARTED * math.sqrt(1 + 1 / (count - 1))
        return [float(2 * special.ndtr(-abs(one) / deviation)) for one in away]
    if count == 2:
        apart = shares[0] - shares[1]
        return [_student(float(apart.mean()), float(apart.var(ddof=1)) / seeds, seeds - 1)] * 2
    found = []
    for place in range(count):
        others = np.delete(shares, place, axis=0)
        rest = others - others.mean(axis=1, keepdims=True) - others.mean(axis=0) + others.mean()
        df = (count - 2) * (seeds - 1)
        variance = float(np.sum(rest**2)) / df * (1 + 1 / (count - 1)) / seeds
        found.append(_student(float(shares[place].mean() - others.mean()), variance, df))
    return found


def _student(distance: float, variance: float, df: int) -> float:
    # Where seeds do not scatter at all, any distance is one.
    if abs(distance) < _EQUAL:
        return 1.0
    return 2 * float(special.stdtr(df, -abs(distance) / max(math.sqrt(variance), _EQUAL)))


def pooled(rows: Sequence[Mapping[int, Right]]) -> tuple[Estimate | None, list[bool]]:
    """One figure for rows that compute the same, and which rows it is of. Each row gives, by seed, which of
    the same images it had right.

    A row whose answers differ beyond chance (Holm over rows) from the majority's, and over seeds from the
    mean of the others, is set apart: by the seeds that all have. With two rows nobody could say which of them
    is off, so neither is pooled.
    """
    alike = [True] * len(rows)
    common = sorted(set.intersection(*(set(row) for row in rows)))
    if len(rows) > 1 and common:
        data = [np.asarray([row[seed] for seed in common], np.float64) for row in rows]
        # Of all rows, this one too: without it, one row that is off would be half of what others are held to.
        majority = np.asarray(np.median(data, axis=0), np.float64)
        on_images = [_sign_test(one, majority).p_value for one in data]
        both = [max(pair) for pair in zip(on_images, over_seeds(data), strict=True)]
        alike = [p > DIFFERENT for p in holm(both)]
        if len(data) == 2 and not all(alike):
            alike = [False, False]
    means = together([row for row, is_alike in zip(rows, alike, strict=True) if is_alike])
    return (accuracy_of(np.asarray(list(means.values()))) if means else None), alike


def together(rows: Sequence[Mapping[int, Right]]) -> dict[int, npt.NDArray[np.float64]]:
    """By seed, of each image how many of the rows that learned with it had it right, as a share."""
    return {
        seed: np.mean([row[seed] for row in rows if seed in row], axis=0)
        for seed in sorted({seed for row in rows for seed in row})
    }


def _variance(data: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Of the mean, for new seeds and new images, with its degrees of freedom."""
    seeds, images = data.shape
    center = np.mean(data)
    of_images, of_seeds = np.mean(data, axis=0), np.mean(data, axis=1)
    df_images, df_seeds = images - 1, seeds - 1
    if df_images < 1:
        return 0.0, math.inf
    image_square = seeds * float(np.sum((of_images - center) ** 2)) / df_images
    if df_seeds < 1:
        return image_square / images, float(df_images)
    seed_square = images * float(np.sum((of_seeds - center) ** 2)) / df_seeds
    rest = data - of_images - of_seeds[:, None] + center
    rest_square = float(np.sum(rest**2)) / (df_images * df_seeds)
    # No smaller than any of its parts: the difference that estimates it may fall below zero.
    total = max(seed_square + image_square - rest_square, seed_square, image_square, rest_square)
    parts = seed_square**2 / df_seeds + image_square**2 / df_images + rest_square**2 / (df_images * df_seeds)
    return total / (seeds * images), total**2 / parts if parts > 0 else float(df_images)


def _wilson(
    center: float, variance: float, df: float, seeds: int, images: int, confidence: float
) -> Estimate:
    # All right, or all wrong: the answers say nothing of how seeds agree; at worst on every image.
    spread = center * (1 - center)
    size = min(spread / variance, seeds * images) if variance > 0 and spread > 0 else images
    # A variance of few degrees of freedom may come out small by luck; t knows.
    t = float(special.stdtrit(min(df, 1e9), (1 + confidence) / 2))
    square = t * t
    middle = (center + square / (2 * size)) / (1 + square / size)
    half = t * math.sqrt(spread / size + square / (4 * size * size)) / (1 + square / size)
    return Estimate(center, max(0.0, middle - half), min(1.0, middle + half), seeds, "seeds and images")


def most_untrained(share: float, classes: int, samples: int) -> float:
    """The accuracy that untrained weights exceed with a chance of NEVER at most. share: of the most frequent
    class among the samples, which they may always answer. 1 where chance can do anything (few classes)."""
    answers = min(samples, ANSWERS_OF_A_CLASS * classes)
    most = next(right for right in range(answers + 1) if special.bdtrc(right, answers, share) <= NEVER)
    return most / answers
