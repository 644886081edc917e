"""A contender that keeps to PROTOCOL.md but for one thing: liar.py JOB.json, whose settings have the lie.

liar.code is executed in place of the answer to the command liar.at ("start" for `ready`), once liar.after
such answers were honest. It finds `event`, the honest answer, `say` and `write` to tell others, and `folder`.
"""

import json
import mmap
import os
import struct
import sys
import time

COMMANDS_FD, EVENTS_FD, RECORDER_FD = 3, 4, 5
HEADER_BYTES, CAPACITY = 4096, 65536
STEP_S = 0.001
SEGMENT, STEP = 0, 1


class Window:
    """Stamps and losses, written as recorder.h says."""

    def __init__(self, number):
        self.file = mmap.mmap(RECORDER_FD, 0)
        self.stamps_at = HEADER_BYTES + number * 16 * CAPACITY
        self.losses_at = self.stamps_at + 8 * CAPACITY
        self.stamps = self.steps = 0

    def stamp(self, boundary, loss=None):
        """Now; and the loss of the step that ends."""
        if loss is not None:
            struct.pack_into("<d", self.file, self.losses_at + 8 * self.steps, loss)
            self.steps += 1
        stamp = time.monotonic_ns() << 8 | boundary
        struct.pack_into("<Q", self.file, self.stamps_at + 8 * self.stamps, stamp)
        self.stamps += 1
        struct.pack_into("<Q", self.file, self.stamps_at + 8 * self.stamps, 0)


class Liar:
    """Honest answers, and the one lie."""

    def __init__(self, job):
        settings = job["settings"]
        self.at, self.code = settings.get("liar.at"), settings.get("liar.code")
        self.after = int(settings.get("liar.after", 0))
        self.folder = job["folder"]
        self.name = job["backend"]["name"]

    def ready(self, began_ns):
        """The event of the start."""
        return {
            "event": "ready",
            "phases": [
                {"name": "start", "ns": began_ns, "rss_bytes": 1},
                {"name": "import", "ns": time.monotonic_ns()},
                {"name": "build", "ns": time.monotonic_ns()},
            ],
            "settings": {},
            "facts": {},
            "libraries": [],
            "backend": {"name": self.name, "flags": ["reads_no_data", "unprovable", "resets"]},
        }

    def obey(self, verb, rest):
        """The fields of an honest answer."""
        if verb in ("run", "parts"):
            steps, max_ns, number = (int(word) for word in rest.split())
            window = Window(number)
            began_ns = time.monotonic_ns()
            window.stamp(SEGMENT)
            while window.steps < steps:
                time.sleep(STEP_S)
                window.stamp(STEP, loss=1.0)
                if max_ns and time.monotonic_ns() - began_ns > max_ns:
                    break
            return {"steps": window.steps, "stamps": window.stamps, "window": number, "window_bytes": 8192}
        return {}

    def say(self, event):
        """One event."""
        self.write((json.dumps(event) + "\n").encode())

    def write(self, data):
        """Bytes on the event pipe."""
        while data:
            data = data[os.write(EVENTS_FD, data) :]

    def answer(self, verb, event):
        """The honest one, or the lie."""
        if verb == self.at:
            self.after -= 1
            if self.after == -1:
                own = {"event": event, "say": self.say, "write": self.write, "folder": self.folder}
                exec(self.code, {"os": os, "mmap": mmap, "time": time, "RECORDER_FD": RECORDER_FD, **own})
                return
        self.say(event)


def main():
    began_ns = time.monotonic_ns()
    with open(sys.argv[1]) as file:
        liar = Liar(json.load(file))
    liar.answer("start", liar.ready(began_ns))
    with open(COMMANDS_FD, "rb", buffering=0, closefd=False) as commands:
        for line in iter(commands.readline, b""):
            verb, _, rest = line.decode().strip().partition(" ")
            if verb == "finish":
                liar.answer(verb, {"event": "finished"})
                return
            liar.answer(verb, {"event": "done", "command": verb, **liar.obey(verb, rest)})


if __name__ == "__main__":
    main()
