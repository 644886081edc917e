"""Names of formats, as the command line takes them."""

from __future__ import annotations

from timetrial.errors import InputError, nearest

FOLDERS = ("csv", "parquet")  # several files each
WITHOUT_FAILED = ("bencher", "github-action")  # no place for a row without a number
TRACE = "perfetto"  # curves and phases, for viewers of traces
HISTORY = "history"  # lines that are appended to a file
STORES = ("mlflow", "tensorboard")  # folders of those tools, that several records share
FORMATS = (*FOLDERS, "google-benchmark", *WITHOUT_FAILED, TRACE, HISTORY, *STORES)


def check_format(name: str) -> None:
    """InputError: there is no such format."""
    if name not in FORMATS:
        raise InputError(f"There is no format '{name}'.{nearest(name, FORMATS)}")
