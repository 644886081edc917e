"""Functions in place of words: each gets a word that a fresh process understands.

A function that can be imported is its "package.module:function". Any other (of a notebook, a closure, a
lambda) is carried: pickled by value with cloudpickle into the cache, beside a module that loads it, and its
word names that module. The word holds the beginning of the pickle's sha256: one redefined is another one.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import inspect
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from timetrial.cases.keys import is_callable_word
from timetrial.errors import InputError
from timetrial.workloads.cache import cached, find_entry

MOST_BYTES = 100_000_000  # of a pickle; each launch reads it
_KIND = "functions"
_CARRIED = re.compile(r"carried_([0-9a-f]{12}):(.+)")
_DEEPEST = 5  # functions that use functions, in the search for what cannot be carried
_ADVICE = "Make it inside the function, which every launch calls anew"
_STUB = '''"""A function that timetrial carried out of a Python session. Its source, where it could be found:

{source}
"""

import pathlib
import pickle

with (pathlib.Path(__file__).parent / "{name}.pickle").open("rb") as file:
    globals()["{name}"] = pickle.load(file)  # needs cloudpickle
'''


def with_words(keys: Mapping[str, Any]) -> dict[str, Any]:
    """The same keys, or the same document, with a word for each function that is a `callable`."""
    return {key: _with_word(key, value) for key, value in keys.items()}


def _with_word(key: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return with_words(value)
    if isinstance(value, list | tuple):
        return [_with_word(key, one) for one in value]
    return word_of(value) if key in ("callable", "setup") and callable(value) else value


def word_of(function: Callable[..., Any]) -> str:
    """The word of a function that makes a step, or is called before one. InputError: it cannot be called
    without arguments, or uses what no other process can have."""
    _check_call(function)
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    word = f"{module}:{name}"
    if is_callable_word(word) and _is_importable(function, str(module), name):
        return word
    return _carried(function)


def carried_folder(word: str) -> Path | None:
    """Where the module of a carried function lies; None for a word of any other kind. InputError: the cache
    has it no longer."""
    match = _CARRIED.fullmatch(word)
    if match is None:
        return None
    entry = find_entry(_KIND, {"sha256": match[1]})
    if entry is None:
        raise InputError(
            f"'{shown(word)}' was carried out of a Python session and is no longer in the cache. Call "
            "timetrial.race() or timetrial.run() there again, or write the function into a module."
        )
    return entry.folder


def carried_from(word: str) -> str | None:
    """The Python whose bytecode a carried function is, as in "3.11"; None for a word of any other kind."""
    folder = carried_folder(word)
    return (folder / "python").read_text(encoding="utf-8") if folder else None


def shown(word: str) -> str:
    """A word as its user knows it: of a carried function the name alone."""
    return match[2] if (match := _CARRIED.fullmatch(word)) else word


def short_names(words: Iterable[str]) -> dict[str, str]:
    """Each word of a carried function -> its name, with a number where several of these words have it."""
    carried = [word for word in dict.fromkeys(words) if shown(word) != word]
    names = [shown(word) for word in carried]
    return {
        word: f"{name} ({names[:place].count(name) + 1})" if names.count(name) > 1 else name
        for place, (word, name) in enumerate(zip(carried, names, strict=True))
    }


def _check_call(function: Callable[..., Any]) -> None:
    name = _name_of(function)
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise InputError(f"'{name}' is async; expected a plain function.")
    if inspect.isgeneratorfunction(function):
        raise InputError(f"'{name}' is a generator; expected a plain function.")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of C: nobody knows before it is called
        return
    needed = [
        one.name
        for one in signature.parameters.values()
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]
    if needed:
        raise InputError(
            f"'{name}' needs {', '.join(needed)}; expected a function that can be called without "
            "arguments. Give them defaults, or write a small function that calls it."
        )


def _name_of(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", type(function).__name__)
    name = name.strip("<>")  # of a lambda
    return name if name.isidentifier() else "function"


def _is_importable(function: Any, module: str, name: str) -> bool:
    """Whether a fresh process that imports this finds the same."""
    found: Any = sys.modules.get(module)
    if module == "__main__" or not _is_findable(found):
        return False
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is function


def _is_findable(module: types.ModuleType | None) -> bool:
    file = getattr(module, "__file__", None)
    if module is None or file is None:
        return module is not None and module.__name__ in sys.builtin_module_names
    try:
        spec = importlib.util.find_spec(module.__name__.partition(".")[0])
    except (ImportError, ValueError):
        return False
    if spec is None or (spec.has_location is False and spec.submodule_search_locations is None):
        return False
    if "." in module.__name__:
        return True
    return spec.origin is not None and Path(spec.origin).resolve() == Path(file).resolve()


def _carried(function: Callable[..., Any]) -> str:
    name = _name_of(function)
    data = _pickled(function, name)
    key = hashlib.sha256(name.encode() + data).hexdigest()[:12]
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"

    def make() -> Mapping[str, bytes]:
        stub = _STUB.format(source=_source_of(function), name=name)
        return {f"carried_{key}.py": stub.encode(), f"{name}.pickle": data, "python": version.encode()}

    cached(_KIND, {"sha256": key}, make)
    return f"carried_{key}:{name}"


def _source_of(function: Any) -> str:
    try:
        text = inspect.getsource(inspect.unwrap(function))
    except (OSError, TypeError, ValueError):
        text = "(not found)"
    return text.replace("\\", "\\\\").replace('"""', "'''").rstrip()


def _pickled(function: Callable[..., Any], name: str) -> bytes:
    import cloudpickle

    _refuse_devices(function, name)
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    try:
        with _by_value(module):
            data = bytes(cloudpickle.dumps(function))
    except Exception as error:
        raise InputError(
            f"'{name}' cannot be carried to a fresh process: {_culprit(function, name, error)}. "
            f'{_ADVICE}; or write it into a module and name it: "package.module:{name}".'
        ) from error
    if len(data) > MOST_BYTES:
        raise InputError(
            f"'{name}' takes {len(data) / 1e6:.0f} MB along{_largest(function)}; at most "
            f"{MOST_BYTES / 1e6:.0f} MB are carried to a fresh process. {_ADVICE}."
        )
    return data


@contextmanager
def _by_value(module: types.ModuleType | None) -> Iterator[None]:
    """A module that no other process finds is carried too."""
    import cloudpickle

    if module is None or module.__name__ == "__main__" or _is_findable(module):
        yield
        return
    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def _used_by(function: Any) -> dict[str, Any]:
    """What it brings along, by name: variables around it, what it is bound to, arguments that were given."""
    if isinstance(function, functools.partial):
        given = {f"argument {place}": one for place, one in enumerate(function.args, 1)}
        return {_name_of(function.func): function.func, **given, **function.keywords}
    own = getattr(function, "__self__", None)
    bound = {} if own is None or isinstance(own, types.ModuleType) else {type(own).__name__: own}
    plain = getattr(function, "__func__", function)
    if not isinstance(plain, types.FunctionType):
        return bound or dict(getattr(plain, "__dict__", {}))
    around = inspect.getclosurevars(plain)
    inner = {name: plain.__globals__[name] for name in _names_in(plain.__code__) if name in plain.__globals__}
    return {**bound, **around.nonlocals, **around.globals, **inner}


def _names_in(code: types.CodeType) -> Iterator[str]:
    """Those that the functions inside of it use: most factories use what they use in their step alone."""
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from one.co_names
            yield from _names_in(one)


def _culprit(function: Any, name: str, error: BaseException, depth: int = 0) -> str:
    """'make_step uses log, a TextIOWrapper: cannot pickle ...'"""
    import cloudpickle

    for used, value in _used_by(function).items():
        try:
            cloudpickle.dumps(value)
        except Exception as why:
            if callable(value) and depth < _DEEPEST and _used_by(value):
                return f"{name} uses {used}; {_culprit(value, used, why, depth + 1)}"
            return f"{name} uses {used}, of type {type(value).__name__} ({_first_line(why)})"
    return _first_line(error)


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


def _largest(function: Any) -> str:
    import cloudpickle

    sizes = {used: len(cloudpickle.dumps(value)) for used, value in _used_by(function).items()}
    largest = max(sizes, key=sizes.__getitem__, default=None)
    return "" if largest is None else f", {sizes[largest] / 1e6:.0f} MB of them in {largest}"


def _refuse_devices(function: Any, name: str) -> None:
    for used, value in _used_by(function).items():
        if getattr(value, "is_cuda", False) is True:
            raise InputError(f"'{name}' uses {used}, which lies on a GPU. {_ADVICE}.")
