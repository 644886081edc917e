"""The contender for frameworks and for the user's own step: main.py JOB.json, started by its path in their
interpreter.

Reads commands from descriptor 3, answers on 4, stamps into 5; processes/PROTOCOL.md is all that both sides
agree on. Syntax and modules of Python 3.6, NumPy, and the C module of the recorder.
"""

import contextlib
import gc
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
import importing  # noqa: E402
import job as job_module  # noqa: E402
import loaded  # noqa: E402
import loading  # noqa: E402
import own_step  # noqa: E402
import stacks  # noqa: E402
import symbolic_adapter  # noqa: E402, F401 - stays, like those behind it: adapters import them
import symbolic_sequences  # noqa: E402, F401
import timed  # noqa: E402
import timetrial_adapter  # noqa: E402
import timetrial_updates  # noqa: E402, F401

OWN_MODULES = (
    "contender",
    "data",
    "failures",
    "importing",
    "job",
    "loaded",
    "loading",
    "own_step",
    "score",
    "stacks",
    "timed",
)


def leave_the_path():
    """Nor must they be found as modules that are loaded already."""
    importing.leave_the_path()
    for name in OWN_MODULES:
        sys.modules.pop(name, None)


def use_parents_path(job):
    """For a framework, what the parent can import and this interpreter cannot yet: behind its own folders, so
    that a PYTHONPATH of the caller cannot put another copy of it in front. For the user's own step the
    parent's order: the same name is the same module there and here. The working directory comes last: what
    is installed in an interpreter that was named goes before a source folder."""
    importing.Checkout(*job.tree).leave_out()
    importing.add_folders(job.sys_path, first=job.callable is not None)
    if job.working_folder and os.path.isdir(job.working_folder):
        os.chdir(job.working_folder)
        if job.callable is not None:
            importing.add_folders([job.working_folder], first=False)


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
        "rss_bytes": timed.resident_bytes(),
        "mapped_bytes": timed.mapped_bytes(),
    }


def obey(contender, line):
    """One command; the fields of its answer."""
    command, _, rest = line.partition(" ")
    if command in ("run", "parts"):
        return getattr(contender, command)(*rest.split())
    if command == "dump":
        role, _, folder = rest.partition(" ")
        return contender.dump(role, folder)
    if command == "show":
        places, _, folder = rest.partition(" ")
        return contender.show(places, folder)
    if command in ("stream", "outputs", "predicted", "evaluate", "profile", "passes"):
        return getattr(contender, command)(rest)
    if command in ("reset", "gradient"):
        return getattr(contender, command)()
    raise failures.ContenderError("crash", "unknown command '{}'".format(command))


def load_contender(job, adapter, runtime):
    """A contender of the network that an adapter will build."""
    if not job.nodes:
        raise failures.UnsupportedError(
            "{} made an adapter, which builds a network; name one: network=lenet5".format(job.callable)
        )
    contender = contender_module.Contender(job, adapter, runtime, RECORDER_FD)
    contender.check_wants()
    adapter.mode, adapter.user_path = job.settings.get("mode"), job.user_path
    adapter.load(job.settings)
    return contender


class Doing(object):
    """What is under way, and the word of the user's own step, if it is one: for the words of a failure."""

    what = "job"
    own = None
    checkout = importing.Checkout()


def check_imports(checkout, **files):
    """ContenderError: something came from the working tree that should be of another checkout."""
    problem = checkout.problem(**files)
    if problem is not None:
        raise failures.ContenderError("mismatch", problem)


def serve(job_path, doing):
    """Everything between start and end. True if the parent said goodbye."""
    phases = [phase("start", START_NS)]
    job = job_module.Job(job_path)
    doing.own, doing.checkout = job.callable, importing.Checkout(*job.tree)
    runtime = loading.load_runtime_module(job.runtime)
    timed.apply_float_mode(runtime, job.flush_to_zero)
    use_parents_path(job)
    leave_the_path()
    doing.what = "load"
    environment = dict(os.environ)
    timetrial_adapter.runtime = runtime
    if job.callable is None:
        made = loading.load_adapter(job.adapter)
    else:
        if job.setup is not None:
            doing.what = "setup"
            own_step.find(job.setup)()
            doing.what = "load"
        factory = own_step.find(job.callable)
        phases.append(phase("import"))
        doing.what = "build"
        made = own_step.make(factory, job.callable)
    if job.callable is None or own_step.is_adapter(made):
        contender = load_contender(job, made, runtime)
        phases[1:] = [phase("import")]
    else:
        contender = own_step.StepContender(job, made, runtime, RECORDER_FD)
        contender.check_wants()
    changed = loaded.changes(environment, os.environ)
    doing.what = "build"
    contender.build()
    timed.apply_float_mode(runtime, job.flush_to_zero)  # a library may have changed it
    phases.append(phase("build"))
    doing.what = "settings"
    ready = {"event": "ready", "phases": phases, "settings": contender.read_settings()}
    if job.setup is not None:
        ready["settings"]["setup"] = {"effective": job.setup, "how_read": "it was called, and came back"}
    ready["libraries"] = runtime.libraries()
    ready["facts"] = contender.facts()
    ready["facts"].update(loaded.facts_of(ready["libraries"]))
    ready["facts"].update(loaded.cuda_of())
    ready["facts"].update(loaded.state_of())
    if job.callable is not None:
        ready["facts"].update(own_step.facts_of(factory))
        module = getattr(sys.modules[job.callable.partition(":")[0]], "__file__", None)
        ready["facts"].update({"callable.module": module} if module else {})
        check_imports(doing.checkout, factory=ready["facts"].get("callable.file"))
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
            doing.what = text.split(" ")[0]
            if doing.what == "finish":
                return True
            done = {"event": "done", "command": doing.what}
            done.update(obey(contender, text))
            check_imports(doing.checkout)
            send(done)


def flush():
    """What Python and C have not written yet, as far as it can be: a framework may have closed a stream."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    with contextlib.suppress(Exception):  # a Python without ctypes
        import ctypes

        process = ctypes.CDLL(None)
        for name in ("stdout", "stderr"):
            process.fflush(ctypes.c_void_p.in_dll(process, name))


def leave_at_once():
    """Without taking apart what a framework made, for up to two seconds that nobody asks for."""
    flush()
    os._exit(0)


def leave_uncollected():
    """A step of somebody's own ends as Python does, with what it asked to be called at exit, but without a
    last search for cycles, which takes 0.7 s beside PyTorch: what only that would finalize, such as a file
    in a cycle that was never closed, is not."""
    if hasattr(gc, "freeze"):  # Python 3.7
        gc.freeze()


def main():
    """The exit status."""
    stacks.tell()
    doing = Doing()
    try:
        if serve(sys.argv[1], doing):
            send({"event": "finished"})
            if doing.own is None:
                leave_at_once()
            leave_uncollected()
        return 0
    except BaseException as error:
        import traceback

        with contextlib.suppress(Exception):
            traceback.print_exc()  # into the launch's stderr.txt
        outcome, text = failures.describe(error)
        if doing.own:
            outcome = own_step.outcome_of(error, outcome, doing.own)
            text += own_step.place_of(error) + own_step.hint_of(error) + doing.checkout.hint(error)
        flush()
        send({"event": "failed", "outcome": outcome, "where": doing.what, "text": text})
        os._exit(1)  # a framework in an unknown state might hang in its destructors


if __name__ == "__main__":
    sys.exit(main())
