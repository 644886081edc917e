"""Whether a framework starts in this interpreter: check.py TASK.json DESCRIPTOR.

Imports what a contender would import, in its order: NumPy, the runtime module, then the adapter, which loads
the framework; and what is left of the modules that it stands on. Says on the descriptor what it is about to
try and what came of it, one JSON object a line: frameworks print on standard output, and some end the
process. Syntax and modules of Python 3.6.
"""

import json
import os
import sys

import loading

# What adapters import of ours, and main.py keeps for them.
SHARED = ("timetrial_adapter", "timetrial_updates", "symbolic_adapter", "symbolic_sequences")


def say(**answer):
    """One line for the parent."""
    os.write(int(sys.argv[2]), (json.dumps(answer) + "\n").encode())


def load_runtime(folder):
    """The runtime module, for adapters too."""
    sys.modules["timetrial_adapter"].runtime = loading.load_runtime_module(folder)


def load(task):
    """The adapter, as main.py loads it."""
    adapter = loading.load_adapter(task["adapter"])
    adapter.mode, adapter.user_path = task["mode"], task["user_path"]
    adapter.load({"mode": task["mode"]} if task["mode"] else {})


def attempt(what, action, *arguments):
    """Whether it worked."""
    say(trying=what)
    try:
        action(*arguments)
    except BaseException as error:  # an `exit` of the framework too
        say(failed=what, error=type(error).__name__, words=str(error))
        return False
    say(done=what)
    return True


def main():
    """Stops at the first failure: what follows would only repeat it."""
    with open(sys.argv[1]) as file:
        task = json.load(file)
    # The shared modules import NumPy: before the framework, as in every launch.
    for name in ("numpy", *SHARED):
        if not attempt(name, __import__, name):
            return
    if not attempt("the runtime module", load_runtime, task["runtime"]):
        return
    own = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != own]
    # The adapter first: some frameworks must be told things before they are imported.
    if task["adapter"] and not attempt("its adapter", load, task):
        return
    for name in task["modules"]:
        if name not in sys.modules and not attempt(name, __import__, name):
            return
    say(finished=True)


if __name__ == "__main__":
    main()
    os._exit(0)  # what a framework does when it ends is nobody's question here
