"""What every contender of ours can do: run segments, and say what is in force.

Syntax and modules of Python 3.6.
"""

import os
import time

from failures import UnsupportedError

# Boundaries of timetrial/recorder.h.
SEGMENT, STEP, DATA, FORWARD_END, LOSS_END, BACKWARD_END = range(6)
FLOAT_MODES = ("off", "results", "operands", "on")  # by the number of timetrial/float_mode.h
PAGE = os.sysconf("SC_PAGE_SIZE")


class Timed(object):
    """Commands are methods; each returns the fields of its `done`. `adapter`: whatever may have
    read_settings() and facts(). A class below says what a step is: _fused_parts() and _separate_parts()."""

    def __init__(self, job, adapter, runtime, recorder_fd):
        self._job = job
        self._adapter = adapter
        self._recorder = runtime.Recorder(recorder_fd)
        self._runtime = runtime
        self._pass_steps = 0  # 0: no pass ends
        self._pass_done = 0  # steps since the last reset

    @staticmethod
    def check_has(what, word, has):
        """UnsupportedError unless `word` is among what there is."""
        if word not in has:
            raise UnsupportedError(
                "the backend has no {} '{}'; it has: {}".format(what, word, ", ".join(has))
            )

    def read_settings(self):
        """What is in force, by whoever set it."""
        readings = {
            name: {"effective": None if effective is None else str(effective), "how_read": source}
            for name, (effective, source) in getattr(self._adapter, "read_settings", dict)().items()
        }
        readings["flush_to_zero"] = {
            "effective": FLOAT_MODES[self._runtime.float_mode()],
            "how_read": "MXCSR of the thread that runs the steps",
        }
        return readings

    def facts(self):
        """What it says about what was built, beyond its settings."""
        facts = getattr(self._adapter, "facts", dict)()
        return {str(name): str(value) for name, value in facts.items()}

    def run(self, steps, max_ns, window, in_parts=False):
        """A segment."""
        parts = self._separate_parts() if in_parts else self._fused_parts()
        computed_before = getattr(self._adapter, "sequence_steps", None)
        cpu_before = _cpu_ns()
        done = self._recorder.run(
            parts,
            int(steps),
            int(max_ns),
            int(window),
            self._job.task != "forward",
            self.reset,
            self._pass_steps,
            self._pass_done,
        )
        done["cpu_ns"] = _cpu_ns() - cpu_before - done.pop("reset_cpu_ns")
        self._pass_done = done.pop("pass_done")
        done["rss_bytes"], done["mapped_bytes"] = resident_bytes(), mapped_bytes()
        done["window"] = int(window)
        if computed_before is not None:
            done["sequence_steps"] = self._adapter.sequence_steps - computed_before
        return done

    def passes(self, steps):
        """From here on every so many steps are one pass, and before the next one comes a reset(); 0: none
        ends any more."""
        self._pass_steps = int(steps)
        return {}

    def reset(self):
        """The initial state, by the class below."""
        self._pass_done = 0
        return {}

    def parts(self, steps, max_ns, window):
        """A segment with a stamp after each part."""
        return self.run(steps, max_ns, window, in_parts=True)


def apply_float_mode(runtime, word):
    """How this thread treats subnormals: "on", "off", or as it is (None). Threads that it starts from now on
    inherit it, unless they set their own."""
    if word is not None:
        runtime.set_float_mode(FLOAT_MODES.index(word))


def resident_bytes():
    """Of this process, from the kernel."""
    return _statm_bytes(1)


def mapped_bytes():
    """Of these, pages of mapped files and shared memory."""
    return _statm_bytes(2)


def _statm_bytes(place):
    with open("/proc/self/statm") as file:
        return int(file.read().split()[place]) * PAGE


def _cpu_ns():
    # time.process_time_ns() is younger than Python 3.6; a double has the nanoseconds of 100 days.
    return int(time.process_time() * 1e9)
