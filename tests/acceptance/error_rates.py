"""Prints the tables of measured error rates in docs/statistics.md; takes some minutes on one core:

python tests/acceptance/error_rates.py [how many races of each kind]
"""

from __future__ import annotations

import sys

import numpy as np
from measures import bare_threshold, pooled_t, rates, run_race, steps_mann_whitney
from noise_classes import BAD, CLASSES, TYPICAL, Array, Noise, log_ratios, sessions, steps

from timetrial.statistics.quantiles import quantile
from timetrial.statistics.ranks import quantile_ranks
from timetrial.statistics.verdict import Rule

RACES = 10_000
LAUNCHES = 2_000


def percent(share: float) -> str:
    return f"{100 * share:.2f} %" if share < 0.02 else f"{100 * share:.1f} %"


def print_races(races: int) -> None:
    columns = ("noise", "worse", "better", "same", "pairs", "+1 %: worse", "+5 %: worse", "+10 %: worse")
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    for name, noise in CLASSES.items():
        equal, *slower = (
            rates(noise, effect, races, seed=1_000 + k) for k, effect in enumerate((0.0, 0.01, 0.05, 0.10))
        )
        cells = [percent(equal.share(verdict)) for verdict in ("worse", "better", "same")]
        cells.append(f"{equal.mean_pairs:.1f}")
        cells += [percent(one.share("worse")) for one in slower]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def print_controls(races: int) -> None:
    print("\n| rule, on equal contenders | typical | bad machine |")
    print("|---|---|---|")
    found: dict[str, list[float]] = {}
    for noise in (TYPICAL, BAD):
        durations = sessions(noise, 0.0, races, np.random.default_rng(2_000))
        for name, rule in (
            ("two means of one launch each, 5 % apart", bare_threshold),
            ("Mann-Whitney over the steps of one launch each", steps_mann_whitney),
            ("t-test over the steps of 24 launches each", pooled_t),
        ):
            found.setdefault(name, []).append(float(np.mean([rule(one) for one in durations])))
        verdicts = [run_race(ratios, Rule()).verdict for ratios in log_ratios(durations)]
        wrong = np.mean([verdict in ("worse", "better") for verdict in verdicts])
        found.setdefault("a race, without its confirmation", []).append(float(wrong))
    for name, shares in found.items():
        print(f"| {name} | {' | '.join(percent(share) for share in shares)} |", flush=True)


def print_coverage() -> None:
    print("\n| correlation of neighboring steps | 0 | 0.3 | 0.6 | 0.9 |")
    print("|---|---|---|---|---|")
    aware, naive = [], []
    for phi in (0.0, 0.3, 0.6, 0.9):
        data = steps(Noise(step=0.03, phi=phi), (LAUNCHES, 1_000), np.random.default_rng(3_000))
        aware.append(np.mean([holds_one(one) for one in data]))
        naive.append(np.mean([naively_holds_one(one) for one in data]))
    print(f"| 95 % interval of the median | {' | '.join(f'{100 * one:.1f} %' for one in aware)} |")
    print(f"| the same, steps taken as independent | {' | '.join(f'{100 * one:.1f} %' for one in naive)} |")


def holds_one(durations: Array) -> bool:
    found = quantile(durations)
    return found is not None and found.low is not None and found.low <= 1.0 <= (found.high or 0.0)


def naively_holds_one(durations: Array) -> bool:
    low, high = quantile_ranks(len(durations))
    ordered = np.sort(durations)
    return low is not None and high is not None and bool(ordered[low - 1] <= 1.0 <= ordered[high - 1])


if __name__ == "__main__":
    print_races(int(sys.argv[1]) if len(sys.argv) > 1 else RACES)
    print_controls(400)
    print_coverage()
