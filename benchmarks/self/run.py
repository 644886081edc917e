"""timetrial measuring itself: `make self`, or `run.py GROUP...`; README.md here has the groups.

Prints each figure beside its target. Not a test: absolute times belong to a machine and a moment.
"""

from __future__ import annotations

import argparse
import sys

from clock import clock_figures
from contender import contender_figures
from figures import Figure
from gates import gates_figures
from heats import heats_figures
from product import product_figures
from proof import proof_figures
from rich.console import Console
from rich.table import Table
from sampling import sampling_figures
from scaling import scaling_figures
from size import size_figures
from speed import speed_figures

GROUPS = {
    "clock": clock_figures,
    "contender": contender_figures,
    "product": product_figures,
    "gates": gates_figures,
    "proof": proof_figures,
    "speed": speed_figures,
    "scaling": scaling_figures,
    "heats": heats_figures,
    "size": size_figures,
    "sampling": sampling_figures,
}


def main() -> int:
    """0 if every figure meets its target, else 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="group", help=f"of {', '.join(GROUPS)}; all if none")
    groups = parser.parse_args().groups or list(GROUPS)
    if unknown := set(groups) - set(GROUPS):
        parser.error(f"unknown group {', '.join(sorted(unknown))}; known: {', '.join(GROUPS)}")
    console = Console()
    figures: list[Figure] = []
    for group in groups:
        console.print(f"[dim]measuring: {group}[/dim]")
        figures += GROUPS[group]()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("what", "target", "measured", ""):
        table.add_column(column)
    for figure in figures:
        met = "[green]met[/green]" if figure.met else "[red]missed[/red]"
        table.add_row(figure.what, figure.target, figure.measured, met)
    console.print(table)
    return int(not all(figure.met for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
