"""How a contender gives up: an outcome and words. Syntax and modules of Python 3.6."""

MEMORY_WORDS = (
    "not enough memory",
    "out of memory",
    "can't allocate memory",
    "cannot allocate memory",
    "bad_alloc",
    "failed to map segment",  # of a library
)


class ContenderError(Exception):
    """Reported to the parent as the event `failed`."""

    def __init__(self, outcome, text):
        super().__init__(text)
        self.outcome = outcome
        self.text = text


class UnsupportedError(ContenderError):
    """The framework, or its adapter, does not have what was asked: a row `unavailable`."""

    def __init__(self, text):
        super().__init__("unavailable", text)


def describe(error):
    """(outcome, text) of any exception."""
    if isinstance(error, ContenderError):
        return error.outcome, error.text
    if isinstance(error, MemoryError):
        return "oom", "MemoryError: {}".format(error)
    text = _words(error)
    # Frameworks raise their own types for a failed allocation; the words are what they have in common.
    if any(words in text.lower() for words in MEMORY_WORDS):
        return "oom", text
    if isinstance(error, ImportError):
        return "unavailable", text
    return "crash", text


def _words(error):
    """Its type and what it says. MXNet begins with a traceback of its own and says at the end what happened:
    the end comes first."""
    name, words = type(error).__name__ + ": ", str(error)
    if words.startswith("Traceback"):
        ends = [line for line in words.splitlines()[1:] if line[:1].strip()]
        words = "\n".join([*ends, words])
    return words if words.startswith(name) else name + words
