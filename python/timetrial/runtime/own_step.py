"""The user's own step: found by its word, made, asked what it is, and run.

Syntax and modules of Python 3.6.
"""

import functools
import hashlib
import importlib
import inspect
import os
import sys

from failures import ContenderError, UnsupportedError
from timed import STEP, Timed

_OWN_FOLDER = os.path.dirname(os.path.abspath(__file__))
_NOT_USERS = (os.path.dirname(_OWN_FOLDER), os.path.dirname(os.__file__))
_LIBRARIES = ("/site-packages/", "/dist-packages/")


def find(word):
    """What "package.module:function" names; its module is imported."""
    module_name, _, path = word.partition(":")
    found = importlib.import_module(module_name)
    for name in path.split("."):
        if not hasattr(found, name):
            raise ContenderError("crash", "{}: there is no '{}' in {!r}".format(word, name, found))
        found = getattr(found, name)
    if not callable(found):
        raise ContenderError("crash", "{} is {}; expected a function".format(shown(word), described(found)))
    return found


def shown(word):
    """As its user knows it: a function that was carried out of a session has no module of his."""
    return word.partition(":")[2] if word.startswith("carried_") else word


def make(factory, word):
    """What the factory returns: a step, or an adapter."""
    made = factory()
    if is_adapter(made) or (callable(made) and not inspect.isclass(made)):
        return made
    if inspect.isawaitable(made):
        close(made)
    raise ContenderError(
        "crash",
        "{} returned {}; expected a step: a function without arguments that does one training step, "
        "or an adapter".format(shown(word), described(made)),
    )


def outcome_of(error, outcome, word):
    """A package that is not installed makes a row `unavailable`. Whatever else cannot be imported is a
    mistake in the user's code, which must not pass for something that this machine lacks."""
    if isinstance(error, ImportError):
        own = word.partition(":")[0].partition(".")[0]
        missing = (error.name or "") if isinstance(error, ModuleNotFoundError) else own
        if missing.partition(".")[0] == own:
            return "crash"
    return outcome


def is_adapter(made):
    """Whether it has the shape of frameworks/README.md."""
    return all(callable(getattr(made, name, None)) for name in ("load", "build", "step"))


class StepContender(Timed):
    """A plain step: there is nothing to build, and no tensor to look at."""

    def __init__(self, job, step, runtime, recorder_fd):
        super().__init__(job, step, runtime, recorder_fd)
        self._step = step
        self._known = None  # what the loop calls, once a first result has been seen
        self._samples = count_of(step, "samples")
        self._period = count_of(step, "period")
        self._reset = reset_of(step)

    def check_wants(self):
        """Task, device and dtype: a step is what it is."""
        self.check_has("task", self._job.task, ("train",))
        self.check_has("device", self._job.device, ("cpu",))
        self.check_has("dtype", self._job.dtype, ("f32",))
        asked = self._job.batch_size
        if None not in (asked, self._samples) and asked != self._samples:
            raise ContenderError(
                "mismatch", "batch_size asked {}, the step says samples = {}".format(asked, self._samples)
            )

    def build(self):
        """The factory has."""

    def description(self, name):
        """The `backend` of the event `ready`."""
        package = sys.modules.get(name.partition(":")[0].partition(".")[0])
        return {
            "name": name,
            "version": str(getattr(package, "__version__", "")),
            "library": "",
            "isa": "",
            "flags": ["reads_no_data", "unprovable"] + (["resets"] if self._reset else []),
            "parts": [],
            "samples": self._samples,
            "period": self._period,
        }

    def reset(self):
        """The initial state, first batch included: the step's own function of this name."""
        if self._reset is None:
            raise UnsupportedError(
                "the step has no attribute `reset`, a function that leads back to its start"
            )
        self._reset()
        return super().reset()

    def run(self, steps, max_ns, window, in_parts=False):
        """A segment."""
        try:
            return super().run(steps, max_ns, window, in_parts)
        except (TypeError, ValueError, RuntimeError) as error:
            if _is_from(error, Timed.run):  # not from within the step, but from what it returned
                raise ContenderError(
                    "crash", "the step returned no number as its loss: {}".format(error)
                ) from None
            raise

    def _fused_parts(self):
        return [(STEP, self._first if self._known is None else self._known)]

    _separate_parts = _fused_parts

    def _first(self):
        """A step whose result is looked at. The steps after it go from the loop straight into the user's."""
        result = self._step()
        self._known, loss = judged(self._step, result)
        return loss


def judged(step, result):
    """(what the loop can call, the loss of this step or None) by what the step returned. What computes in the
    background is waited for: what it returned, or, of a step that returns nothing, what it has changed."""
    if result is None:
        holders = [get for get in state_of(step) if arrays_in(get())]
        for get in holders:
            wait(arrays_in(get()))
        return (functools.partial(_waiting_for_state, step, holders) if holders else step), None
    if inspect.isawaitable(result) or inspect.isgenerator(result) or hasattr(result, "__anext__"):
        close(result)
        raise ContenderError(
            "crash",
            "the step returned {}: nothing was computed. Expected a plain function that does the step "
            "and waits for it".format(described(result)),
        )
    leaves = pending(result)
    if leaves and (leaves[0] is not result or not _is_number(result)):
        wait(leaves)
        return functools.partial(_waited, step), _loss_of(result)
    if hasattr(type(result), "__float__") or hasattr(type(result), "__index__"):
        try:
            return step, float(result)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ContenderError("crash", "{}: {}".format(_no_loss(result), error)) from None
    if callable(getattr(result, "item", None)):
        return functools.partial(_item_of, step), float(result.item())
    raise ContenderError("crash", _no_loss(result))


def _waited(step):
    result = step()
    wait(pending(result))
    return _loss_of(result)


def _waiting_for_state(step, holders):
    step()
    for get in holders:
        wait(arrays_in(get()))


def _is_number(thing):
    return hasattr(type(thing), "__float__") and getattr(thing, "ndim", 0) == 0


def _loss_of(result):
    """The first number in what a step returned; None where there is none."""
    for leaf in leaves_of(result):
        leaf = leaf.result() if _wait_of(leaf) == "result" else leaf
        if _is_number(leaf) and not isinstance(leaf, bool):
            return float(leaf)
    return None


# How what computes in the background is waited for: JAX, MXNet, futures of Python and of torch.
_BACKGROUND = ("jaxlib", "jax", "mxnet", "concurrent", "torch", "distributed")
ARRAY_WAITS = ("block_until_ready", "wait_to_read")
WAITS = (*ARRAY_WAITS, "result", "wait")
_DEEPEST = 6  # levels of containers in what a step returns or keeps
_MOST_LEAVES = 100000


def leaves_of(thing, depth=0):
    """What lies in tuples, lists and mappings, however nested."""
    if isinstance(thing, dict):
        thing = list(thing.values())
    if not isinstance(thing, (tuple, list)) or depth >= _DEEPEST:
        return [thing]
    return [leaf for one in thing[:_MOST_LEAVES] for leaf in leaves_of(one, depth + 1)]


def pending(thing):
    """What in it can be waited for."""
    return [leaf for leaf in leaves_of(thing) if _wait_of(leaf) is not None]


def arrays_in(thing):
    """Arrays that are computed in the background. A future that a step keeps is for a later one."""
    return [leaf for leaf in leaves_of(thing) if _wait_of(leaf) in ARRAY_WAITS]


def _wait_of(leaf):
    kind = type(leaf)
    return next((name for name in WAITS if callable(getattr(kind, name, None)) and _is_known(kind)), None)


def _is_known(kind):
    """Whether waiting for it is what its name says: a process or an event of the user's is left alone."""
    home = (kind.__module__ or "").partition(".")[0]
    return home in _BACKGROUND


def wait(leaves):
    """Until all of them are computed."""
    for leaf in leaves:
        getattr(leaf, _wait_of(leaf))()


def state_of(step):
    """What a step can change, each as a function that gets it: attributes of what it is bound to, its
    closure, and the globals that it names."""
    function = getattr(step, "__func__", step)
    owners = [own for own in (getattr(step, "__self__", None), step) if hasattr(own, "__dict__")]
    found = [functools.partial(vars(own).get, name) for own in owners for name in vars(own)]
    found += [functools.partial(_content, cell) for cell in getattr(function, "__closure__", None) or ()]
    names = getattr(getattr(function, "__code__", None), "co_names", ())
    return found + [functools.partial(getattr(function, "__globals__", {}).get, name) for name in names]


def _content(cell):
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _item_of(step):
    return step().item()


def _no_loss(result):
    return "the step returned {}; expected its loss (a number, or what has .item()) or nothing".format(
        described(result)
    )


def count_of(step, name):
    """Its attribute `samples`, how many a step trains on, or `period`, after how many steps its time repeats;
    None where it has none."""
    count = getattr(step, name, None)
    if count is None:
        return None
    if isinstance(count, bool) or not hasattr(type(count), "__index__") or int(count) < 1:
        raise ContenderError(
            "crash", "{} of the step is {!r}; expected a whole number, at least 1".format(name, count)
        )
    return int(count)


def reset_of(step):
    """Its attribute `reset`: a function that leads back to its first step; None where it has none."""
    reset = getattr(step, "reset", None)
    if reset is not None and (not callable(reset) or inspect.isclass(reset)):
        raise ContenderError(
            "crash",
            "reset of the step is {}; expected a function that leads back to its first step".format(
                described(reset)
            ),
        )
    return reset


def facts_of(factory):
    """Where the code was found, and in which versions the packages that it stands on."""
    facts = {}
    try:
        facts["callable.file"] = inspect.getsourcefile(inspect.unwrap(factory)) or ""
    except TypeError:
        facts["callable.file"] = getattr(sys.modules.get(factory.__module__), "__file__", None) or ""
    facts["callable.sha256"] = _hash_of(facts["callable.file"])
    versions = []
    for name, module in sorted(sys.modules.items()):
        version = getattr(module, "__version__", None)
        if "." not in name and isinstance(version, str) and not _is_standard(module):
            versions.append("{} {}".format(name, version))
    facts["callable.packages"] = ", ".join(versions)
    return {name: words for name, words in facts.items() if words}


def _hash_of(path):
    """Of a file's content; '' where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return ""


def _is_standard(module):
    path = getattr(module, "__file__", None) or ""
    return not path or (path.startswith(_NOT_USERS) and not any(folder in path for folder in _LIBRARIES))


def place_of(error):
    """' (training.py:12)': where in the user's code, rather there than in a library; '' where in neither."""
    own, library, trace = "", "", error.__traceback__
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        place = " ({}:{})".format(os.path.basename(path), trace.tb_lineno)
        if any(folder in path for folder in _LIBRARIES):
            library = place
        elif not path.startswith(_NOT_USERS) and not path.startswith("<"):
            own = place
        trace = trace.tb_next
    return own or library


def hint_of(error):
    """What to do about a lost variable or file of the caller's, who has another environment and home."""
    home = os.environ.get("HOME", "")
    if home and home + os.sep in str(error):
        return (
            "; ~ is a folder of the launch's own: give the whole path, or a variable, environment.NAME=/path"
        )
    if isinstance(error, KeyError) and _last_frame(error).f_globals is vars(os):
        return "; environment.{}=VALUE gives it: contenders have none of the caller's".format(error.args[0])
    return ""


def _is_from(error, function):
    """Whether it was raised by what this function of ours called that is no Python."""
    return _last_frame(error).f_code is function.__code__


def _last_frame(error):
    """Of the function that raised it."""
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame


def close(unused):
    """A coroutine that nobody awaits complains when it is collected."""
    if hasattr(unused, "close"):
        unused.close()


def described(thing):
    """'None', 'the class Net', 'a dict'."""
    if thing is None:
        return "None"
    if inspect.isclass(thing):
        return "the class {}".format(thing.__name__)
    name = type(thing).__name__
    return "{} {}".format("an" if name[0].lower() in "aeiou" else "a", name)
