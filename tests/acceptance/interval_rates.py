"""Prints the tables on intervals over launches and of accuracy in docs/statistics.md; minutes on one core:

python tests/acceptance/interval_rates.py [how many experiments of each kind]
"""

from __future__ import annotations

import sys

import numpy as np
from image_worlds import ALIKE_WORLDS, IMAGE_WORLDS, accuracy_coverage, alike_rates
from launch_worlds import WORLDS, coverage, stopped

LAUNCHES = (3, 5, 6, 8, 12, 24)


def print_launches(trials: int) -> None:
    print(f"| rows | launches scatter | {' | '.join(f'{n}' for n in LAUNCHES)} |\n{'|---' * 8}|")
    for rows in (1, 6):
        for name, world in WORLDS.items():
            if rows == 1 and name.startswith(("one row", "from")):
                continue
            cells = []
            for n in LAUNCHES:
                if "stalled" in name and n % 6:
                    cells.append("-")
                    continue
                found = coverage(world, rows, n, trials, seed=n)
                held = (
                    f"{100 * found.worst:.1f}"
                    if rows == 1
                    else f"{100 * found.worst:.1f} to {100 * found.best:.1f}"
                )
                cells.append(f"{held} % (±{50 * np.median(found.width):.1f} %)")
            print(f"| {rows} | {name} | {' | '.join(cells)} |", flush=True)


def print_stopping(trials: int) -> None:
    columns = ("go on until all are within", "rows that stop at five", "of them hold the truth", "of all")
    print(f"\n| {' | '.join(columns)} |\n{'|---' * 4}|")
    for target in (0.016, 0.021, 0.026):
        found = stopped(target, trials, seed=3)
        print(
            f"| ±{100 * target:.1f} % | {100 * found.at_five:.0f} % | {100 * found.held_at_five:.1f} % "
            f"| {100 * found.held:.1f} % |",
            flush=True,
        )


def print_accuracy(trials: int) -> None:
    print("\n| test set | true accuracy | seeds | t over seeds | seeds and images |\n|---|---|---|---|---|")
    for name, world in IMAGE_WORLDS.items():
        for seeds in (3, 5):
            found = accuracy_coverage(world, seeds, trials, seed=seeds)
            print(
                f"| {name} | {100 * world.truth:.1f} % | {seeds} | {100 * found.over_seeds:.1f} % "
                f"| {100 * found.held:.1f} % (±{50 * found.width:.1f} %) |",
                flush=True,
            )


def print_alike(trials: int) -> None:
    columns = ("trainings part by", "rows", "seeds", "sign test: named", "found", "both: named", "found")
    print(f"\n| {' | '.join(columns)} |\n{'|---' * 7}|")
    for world in ALIKE_WORLDS.values():
        for rows in (2, 3, 5, 13):
            for seeds in (1, 3, 5):
                found = alike_rates(world, rows, seeds, trials, seed=rows)
                print(
                    f"| {100 * found.parted:.1f} % | {rows} | {seeds} | {100 * found.named_by_images:.0f} % "
                    f"| {100 * found.found_by_images:.0f} % | {100 * found.named:.1f} % "
                    f"| {100 * found.found:.0f} % |",
                    flush=True,
                )


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 4_000
    print_launches(number)
    print_stopping(max(number // 4, 1))
    print_accuracy(number)
    print_alike(number)
