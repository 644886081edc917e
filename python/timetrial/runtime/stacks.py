"""The stacks of all threads on standard error: as this process dies of a signal, and when the parent asks
where it stands (STACKS_SIGNAL of timetrial/endings/stuck.py). Syntax and modules of Python 3.6."""

import faulthandler
import signal

STACKS_SIGNAL = signal.SIGRTMAX - 1


def tell():
    """From here on. Both write from a handler in C, so code that never returns to Python does not matter."""
    faulthandler.enable(all_threads=True)
    faulthandler.register(STACKS_SIGNAL, all_threads=True)
