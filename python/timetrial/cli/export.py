"""timetrial export RECORD --format FORMAT"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def export(
    record: Annotated[str, typer.Argument(help="The folder of a record, its id under --results, or `last`.")],
    format: Annotated[
        str,
        typer.Option(
            "--format",
            help="csv, parquet, perfetto, google-benchmark, bencher, github-action, history, mlflow or "
            "tensorboard.",
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            help="The file (a history is appended to), or the folder; not given: print.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over files that exist.")] = False,
    results: Annotated[Path, typer.Option(help="The folder that has the records.")] = Path("results"),
) -> None:
    """Write a run or race in the format of another tool: tables, Google Benchmark, Bencher, GitHub action.

    Exit code: 0 written, 1 it could not be written, 2 bad input.
    """
    from timetrial.exports.formats import WITHOUT_FAILED, check_format

    check_format(format)
    from timetrial import exports
    from timetrial.records import store
    from timetrial.results.loading import load

    found = load(store.find(record, results))
    written = exports.export(found, format, output, force=force)
    if isinstance(written, str):
        typer.echo(written, nl=False)
    else:
        print(f"written: {written}", file=sys.stderr)
    missing = exports.left_out(found) if format in WITHOUT_FAILED else []
    if missing:
        rows = "row has" if len(missing) == 1 else "rows have"
        print(f"left out, {len(missing)} {rows} no numbers:", file=sys.stderr)
        for line in missing:
            print(f"  {line}", file=sys.stderr)
