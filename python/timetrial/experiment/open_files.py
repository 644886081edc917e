"""Whether this process may open the files that contenders need: pipes, stamps, losses, output."""

from __future__ import annotations

import resource

from timetrial.errors import InputError

FEWEST = 80  # of timetrial itself, with descriptors that are kept out of a contender's way
PER_CONTENDER = 12  # of which 9 were counted while twelve were alive


def ensure_open_files(contenders: int) -> None:
    """For so many alive at once. Raises the soft limit where the hard one allows it; InputError otherwise."""
    needed = FEWEST + PER_CONTENDER * contenders
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        who, alone = "one contender needs", ""
        if contenders > 1:
            who, alone = f"{contenders} contenders at once need", ", or let each be alone: isolated=true"
        raise InputError(
            f"This process may open {hard} files (ulimit -Hn), and {who} {needed}. Raise the limit{alone}."
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
