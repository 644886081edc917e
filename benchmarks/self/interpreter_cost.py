"""Costs of the runtime module in this interpreter, in ns, as JSON. Syntax of Python 3.6; started by path.

argv: folder of the runtime module, path of a recorder file.
"""

import json
import os
import sys

sys.path.insert(0, sys.argv[1])
import _timetrial_runtime as runtime

STEPS = 20000
ROUNDS = 50


def main():
    """The smallest mean of many bursts: what disturbs a burst only adds."""
    descriptor = os.open(sys.argv[2], os.O_RDWR)
    recorder = runtime.Recorder(descriptor)
    stamp_ns = step_ns = float("inf")
    for _ in range(ROUNDS):
        recorder.begin(0, STEPS)
        stamp = recorder.stamp
        start = runtime.now_ns()
        for _ in range(STEPS):
            stamp()
        stamp_ns = min(stamp_ns, (runtime.now_ns() - start) / STEPS)
        recorder.end()
        start = runtime.now_ns()
        recorder.run([(1, nothing)], STEPS, 0, 0)
        step_ns = min(step_ns, (runtime.now_ns() - start) / STEPS)
    print(json.dumps({"python": sys.version.split()[0], "stamp_ns": stamp_ns, "step_ns": step_ns}))


def nothing():
    """An empty step."""


if __name__ == "__main__":
    main()
