"""Races two steps and sends itself signals: the first in the middle of a turn, the others behind the first
seat that the clean-up releases.

signalled.py cli|python NUMBER_OF_THE_SIGNAL HOW_MANY
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from typing import Any

from timetrial.heats.heat import Seat

WORDS = ["callable=steps:first,steps:second", "threads=1"]
NUMBER, HOW_MANY = int(sys.argv[2]), int(sys.argv[3])
take_turn, release = Seat.take_turn, Seat.release
rides: list[Any] = []
released: list[Seat] = []


def signalled_turn(seat: Seat, ride: Any) -> Any:
    rides.append(ride)
    if len(rides) == 6:
        signal.raise_signal(NUMBER)
    return take_turn(seat, ride)


def signalled_release(seat: Seat) -> None:
    release(seat)
    released.append(seat)
    if len(released) == 1:
        for _ in range(HOW_MANY - 1):
            signal.raise_signal(NUMBER)


setattr(Seat, "take_turn", signalled_turn)  # noqa: B010 - mypy
setattr(Seat, "release", signalled_release)  # noqa: B010
signal.signal(signal.SIGINT, signal.default_int_handler)
if sys.argv[1] == "cli":
    from timetrial.cli.main import main

    sys.argv = ["timetrial", "race", *WORDS, "--json"]
    main()
else:
    import timetrial as tt
    from timetrial.launch import MeasurementLock
    from timetrial.races import RaceInterrupted

    try:
        tt.race(*({"callable": f"steps:{name}", "threads": 1} for name in ("first", "second")), quiet=True)
    except RaceInterrupted as stopped:
        with MeasurementLock():  # nobody has it any more
            left = [one.name for one in threading.enumerate() if one is not threading.main_thread()]
        usual = [signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)]
        is_usual = usual == [signal.default_int_handler, signal.SIG_DFL]
        said = {"folder": str(stopped.race.folder.resolve()), "threads": left, "usual": is_usual}
        print(json.dumps(said))
