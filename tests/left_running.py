"""Who leaves something running: steps that do, and what a test may have left."""

from __future__ import annotations

from pathlib import Path

# A thread that works for some milliseconds with every step, without Python's lock; `AFTER` says what the step
# does about it.
STEP = """
import collections, hashlib
from concurrent.futures import ThreadPoolExecutor

def busy():
    hashlib.pbkdf2_hmac("sha256", b"", b"", 100_000)

def make():
    pool, posted = ThreadPoolExecutor(1), collections.deque()
    def step():
        AFTER
    return step
"""
POSTS_ONE_AHEAD = """
        posted.append(pool.submit(busy))
        if len(posted) > 1:
            posted.popleft().result()
"""
# What fills a queue for as long as there is room, from a thread or a process.
FILL = """
import queue, threading, time

def fill(batches):
    while True:
        time.sleep(0.02)
        batches.put(1)

"""


def command_lines_with(*words: str) -> list[str]:
    """Of all processes whose command line has all of these."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().decode(errors="replace").replace("\0", " ")
        except OSError:
            continue
        found += [line] if all(word in line for word in words) else []
    return found
