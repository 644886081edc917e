"""Noise that machines make, as one generator: what the simulated races, launches and tables of error rates
are made of.

All sizes are natural logarithms, so about fractions. Per launch: scatter of launches (normal, or with a slow
mode, or Cauchy). Over a session: a linear drift, a random walk, a sine. Per segment: the first step after a
pause is slower, and so may be whoever is first in a round. Per step: AR(1) noise, spikes, Cauchy noise, and
a clock of coarse ticks. One session is 24 pairs, each of as many rounds of 2 segments as in a race.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import signal

from timetrial.launch import schedule

Array = npt.NDArray[np.float64]

PAIRS = 24
ROUNDS = 20  # of a pair: what wanted_rounds() makes of TYPICAL noise
STEPS = 5  # of a turn: longer ones know more, and of shorter ones there are more
FIRST_STEP = 0.058  # what the first step after a pause costs; it is left out, as in a race


@dataclass(frozen=True)
class Noise:
    """One class of noise. Standard deviations, if not said otherwise."""

    launch: float = 0.0
    slow_launches: float = 0.0  # share of launches that are slower by 8 %
    launch_cauchy: float = 0.0  # scale
    drift: float = 0.0  # of a session, linear
    steady_drift: float = 0.0  # the same in every session
    walk: float = 0.0  # at the end of a session
    sine: float = 0.0  # amplitude; its period is that of ABBA, its phase any
    first: float = 0.0  # what the first of a round pays
    step: float = 0.0
    phi: float = 0.5  # correlation of neighboring steps
    spikes: float = 0.0  # share of steps that take 1.5 to 3 times as long
    step_cauchy: float = 0.0  # scale
    tick: bool = False  # a clock of 10 ms ticks, for steps of 11 to 25 ms


QUIET = Noise(launch=0.005, drift=0.01, step=0.01, spikes=0.01)
TYPICAL = Noise(launch=0.015, drift=0.03, walk=0.02, step=0.03, spikes=0.02)
BAD = replace(TYPICAL, launch=0.03, drift=0.08)
BIMODAL = replace(TYPICAL, launch=0.01, slow_launches=0.15)
DRIFT = replace(TYPICAL, steady_drift=0.10)
WALK = replace(TYPICAL, walk=0.10)
SINE = replace(TYPICAL, sine=0.05)
POSITION = replace(TYPICAL, first=0.05)
HEAVY = replace(TYPICAL, launch_cauchy=0.01, step_cauchy=0.01)
TICKS = replace(TYPICAL, tick=True)

CLASSES = {
    "quiet": QUIET,
    "typical": TYPICAL,
    "bad machine": BAD,
    "bimodal launches": BIMODAL,
    "drift of 10 %": DRIFT,
    "random walk": WALK,
    "sine of ABBA's period": SINE,
    "the first pays 5 %": POSITION,
    "heavy tails": HEAVY,
    "clock of 10 ms ticks": TICKS,
}


def ar1(phi: float, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Stationary AR(1) series of variance 1 along the last axis."""
    noise = rng.standard_normal(shape)
    noise[..., 1:] *= np.sqrt(1 - phi * phi)
    return np.asarray(signal.lfilter([1.0], [1.0, -phi], noise, axis=-1), np.float64)


def steps(noise: Noise, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Durations of undisturbed length 1, consecutive along the last axis, with the noise of steps."""
    logs = noise.step * ar1(noise.phi, shape, rng)
    if noise.step_cauchy:
        logs += noise.step_cauchy * np.clip(rng.standard_cauchy(shape), -100, 100)
    durations = np.exp(logs)
    if noise.spikes:
        durations *= np.where(rng.random(shape) < noise.spikes, rng.uniform(1.5, 3.0, shape), 1.0)
    return durations


def sessions(noise: Noise, effect: float, trials: int, rng: np.random.Generator) -> Array:
    """Durations of all steps of so many races, (trials, pairs, rounds, side, steps). The challenger, side 1,
    takes `effect` longer. The first step of each segment is already left out."""
    shape = (trials, PAIRS, ROUNDS, 2)
    second = _second_in_round(trials, rng)  # per side, whether it is second
    time = np.arange(PAIRS * ROUNDS).reshape(PAIRS, ROUNDS, 1) * 2 + second  # in segments
    whole = PAIRS * ROUNDS * 2
    logs = np.zeros(shape)
    logs += noise.launch * rng.standard_normal((trials, PAIRS, 1, 2))
    logs += 0.08 * (rng.random((trials, PAIRS, 1, 2)) < noise.slow_launches)
    logs += noise.launch_cauchy * np.clip(rng.standard_cauchy((trials, PAIRS, 1, 2)), -100, 100)
    slope = noise.steady_drift + noise.drift * rng.standard_normal((trials, 1, 1, 1))
    logs += slope * time / whole
    walk = np.cumsum(rng.standard_normal((trials, whole)), axis=1) * noise.walk / np.sqrt(whole)
    logs += np.take_along_axis(walk, time.reshape(trials, -1), axis=1).reshape(shape)
    logs += noise.sine * np.sin(2 * np.pi * (time / 4 + rng.random((trials, 1, 1, 1))))
    logs += noise.first * (second == 0)
    logs[..., 1] += np.log1p(effect)
    durations = steps(noise, (*shape, STEPS), rng)
    durations *= np.exp(logs)[..., None]
    durations[..., 0] *= 1 + FIRST_STEP
    if noise.tick:
        durations *= rng.uniform(1.1, 2.5, (trials, 1, 1, 1, 1))
        start = rng.random((*shape, 1))
        stamps = np.floor(np.concatenate([start, start + np.cumsum(durations, axis=-1)], axis=-1))
        durations = np.diff(stamps, axis=-1)
    return durations[..., 1:]


def log_ratios(durations: Array) -> Array:
    """(trials, pairs): per pair ln(challenger / base) of what all turns took."""
    totals = np.log(np.mean(durations, axis=(-3, -1)))
    return np.asarray(totals[..., 1] - totals[..., 0])


def _second_in_round(trials: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """(trials, pairs, rounds, side): 0 or 1, from the orders that a race would draw."""
    coins = random.Random(int(rng.integers(2**31)))
    drawn = np.array([schedule(2, ROUNDS, coins) for _ in range(512)])  # sides in their order
    places = np.argsort(drawn, axis=-1)
    return places[rng.integers(len(places), size=(trials, PAIRS))]
