"""The contender for frameworks: main.py JOB.json, started by its path in the framework's interpreter.

Reads commands from descriptor 3, answers on 4, stamps into 5; launch/PROTOCOL.md is all that both sides agree
on. Syntax and modules of Python 3.6, NumPy, and the C module of the recorder.
"""

import os
import sys
import time

COMMANDS_FD, EVENTS_FD, RECORDER_FD = 3, 4, 5


def _now_ns():
    return int(time.monotonic() * 1e9) if sys.version_info < (3, 7) else time.monotonic_ns()


START_NS = _now_ns()

import json  # noqa: E402

import contender as contender_module  # noqa: E402
import failures  # noqa: E402
import job as job_module  # noqa: E402
import loaded  # noqa: E402
import loading  # noqa: E402
import symbolic_adapter  # noqa: E402, F401 - stays, like the next: adapters import them
import timetrial_adapter  # noqa: E402

OWN_MODULES = ("contender", "data", "failures", "job", "loaded", "loading", "score")


def leave_the_path():
    """Frameworks and the user's code must not find our modules under such plain names."""
    own = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != own]
    for name in OWN_MODULES:
        sys.modules.pop(name, None)


def use_parents_path(job):
    """What the parent can import and this interpreter cannot yet: behind its own folders, so that a
    PYTHONPATH of the caller cannot put another copy of a framework in front."""
    for entry in job.sys_path:
        if entry not in sys.path:
            sys.path.append(entry)
    if job.working_folder and os.path.isdir(job.working_folder):
        os.chdir(job.working_folder)


def send(event):
    """One event, one line."""
    line = (json.dumps(event) + "\n").encode()
    while line:
        line = line[os.write(EVENTS_FD, line) :]


def phase(name, ns=None):
    """A border of a phase, with the memory at that moment."""
    return {
        "name": name,
        "ns": _now_ns() if ns is None else ns,
        "rss_bytes": contender_module.resident_bytes(),
    }


def obey(contender, line):
    """One command; the fields of its answer."""
    command, _, rest = line.partition(" ")
    if command in ("run", "parts"):
        return getattr(contender, command)(*rest.split())
    if command == "dump":
        role, _, folder = rest.partition(" ")
        return contender.dump(role, folder)
    if command in ("stream", "outputs", "profile"):
        return getattr(contender, command)(rest)
    if command in ("reset", "gradient", "evaluate"):
        return getattr(contender, command)()
    raise failures.ContenderError("crash", "unknown command '{}'".format(command))


def serve(job_path, place):
    """Everything between start and end. True if the parent said goodbye. `place[0]` is what is under way."""
    phases = [phase("start", START_NS)]
    job = job_module.Job(job_path)
    runtime = loading.load_runtime_module(job.runtime)
    use_parents_path(job)
    leave_the_path()
    place[0] = "load"
    environment = dict(os.environ)
    timetrial_adapter.runtime = runtime
    adapter = loading.load_adapter(job.adapter)
    contender = contender_module.Contender(job, adapter, runtime, RECORDER_FD)
    contender.check_wants()
    adapter.mode, adapter.user_path = job.settings.get("mode"), job.user_path
    adapter.load(job.settings)
    phases.append(phase("import"))
    changed = loaded.changes(environment, os.environ)
    place[0] = "build"
    contender.build()
    phases.append(phase("build"))
    place[0] = "settings"
    ready = {"event": "ready", "phases": phases, "settings": contender.read_settings()}
    ready["libraries"] = runtime.libraries()
    ready["facts"] = contender.facts()
    ready["facts"].update(loaded.facts_of(ready["libraries"]))
    if changed:
        ready["facts"]["environment changed at import"] = changed
    ready["backend"] = contender.description(job.name)
    send(ready)
    with open(COMMANDS_FD, "rb", buffering=0, closefd=False) as commands:
        pending = b""
        while True:
            while b"\n" not in pending:
                got = commands.read(4096)
                if not got:
                    return False
                pending += got
            line, _, pending = pending.partition(b"\n")
            text = line.decode()
            place[0] = text.split(" ")[0]
            if place[0] == "finish":
                return True
            done = {"event": "done", "command": place[0]}
            done.update(obey(contender, text))
            send(done)


def main():
    """The exit status."""
    place = ["job"]
    try:
        if serve(sys.argv[1], place):
            send({"event": "finished"})
        return 0
    except BaseException as error:
        import traceback

        traceback.print_exc()  # into the launch's stderr.txt
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        outcome, text = failures.describe(error)
        send({"event": "failed", "outcome": outcome, "where": place[0], "text": text})
        os._exit(1)  # a framework in an unknown state might hang in its destructors


if __name__ == "__main__":
    sys.exit(main())
