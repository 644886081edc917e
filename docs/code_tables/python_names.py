"""The Python interface: what `import timetrial` has, and the classes that it hands out."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import timetrial
from code_tables.source import comments_of, names_in

# What pytest hands out: it has no return annotation that leads there.
FIXTURES = ("timetrial.testing.bench.Bench",)


# Every field of these has an entry on another page: records, experiment keys.
ELSEWHERE = ("timetrial.records.model", "timetrial.records.race", "timetrial.cases.spec")
DEEPEST = 2  # a result's row, the row's interval


@dataclass(frozen=True)
class Name:
    """A public name: where it is found, what it is, and its words."""

    path: str
    value: Any
    kind: str  # function, class, exception, method, property, attribute, data
    signature: str
    words: str


def public() -> list[Name]:
    """`timetrial.__all__`, each class with its members."""
    found: list[Name] = []
    for name in timetrial.__all__:
        found += _named(f"timetrial.{name}", getattr(timetrial, name))
    return found


def handed_out() -> list[Name]:
    """Classes of ours that public functions, methods and properties return, and what these hold.

    Those that have a page of their own are left out.
    """
    own = {value for name in timetrial.__all__ if inspect.isclass(value := getattr(timetrial, name))}
    level = [getattr(timetrial, name) for name in timetrial.__all__]
    found = dict.fromkeys(_import(path) for path in FIXTURES)
    for _ in range(DEEPEST):
        level = [cls for one in level for cls in _returned(one) if cls.__module__ not in ELSEWHERE]
        level = [cls for cls in dict.fromkeys(level) if cls not in own and cls not in found]
        found |= dict.fromkeys(level)
    listed = sorted(found, key=lambda cls: (cls.__module__, cls.__qualname__))
    return [one for cls in listed for one in _named(f"{cls.__module__}.{cls.__qualname__}", cls)]


def _import(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(__import__(module, fromlist=[name]), name)


def _named(path: str, value: Any) -> Iterator[Name]:
    if inspect.isclass(value):
        kind = "exception" if issubclass(value, Exception) else "class"
        yield Name(path, value, kind, "" if kind == "exception" else _signature(value), _words(value))
        for name, member in _members(value).items():
            yield _member(f"{path}.{name}", value, name, member)
    elif callable(value):
        yield Name(path, value, "function", _signature(value), _words(value))
    else:
        words = f"The version, here `{value}`." if path == "timetrial.__version__" else ""
        yield Name(path, value, "data", "", words)


def _members(cls: type) -> dict[str, Any]:
    """Public ones that classes of ours define, the bases' first; fields of data classes too."""
    ours = [one for one in reversed(cls.__mro__) if one.__module__.startswith("timetrial")]
    members: dict[str, Any] = {}
    for one in ours:
        members |= dict.fromkeys(inspect.get_annotations(one))
        members |= vars(one)
    return {
        name: member
        for name, member in members.items()
        if not name.startswith("_") and name not in ("model_config", "args", "with_traceback")
    }


def _member(path: str, cls: type, name: str, member: Any) -> Name:
    if isinstance(member, (property, functools.cached_property)):
        getter = member.fget if isinstance(member, property) else member.func
        return Name(path, getter, "property", _annotation(getter), _words(member))
    if isinstance(member, (staticmethod, classmethod)):
        member = member.__func__
    if inspect.isroutine(member):
        return Name(path, member, "method", _signature(member, bound=True), _words(member))
    annotated = next(
        (inspect.get_annotations(one)[name] for one in cls.__mro__ if name in inspect.get_annotations(one)),
        "",
    )
    return Name(path, member, "attribute", str(annotated), comments_of(cls).get(name, ""))


def _words(value: Any) -> str:
    found = getattr(value, "__doc__", None) or ""
    if inspect.isclass(value) and dataclasses.is_dataclass(value) and found.startswith(f"{value.__name__}("):
        return ""  # made by dataclass
    return inspect.cleandoc(found)


def _signature(value: Any, *, bound: bool = False) -> str:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    parameters = list(signature.parameters.values())
    if bound and parameters and parameters[0].name in ("self", "cls", "bench"):
        parameters = parameters[1:]
    # Annotations are words already: without quotes they read as the code does.
    plain = [
        one if one.annotation is one.empty else one.replace(annotation=_Words(one.annotation))
        for one in parameters
    ]
    back = signature.return_annotation
    returned = back if inspect.isclass(value) or back is signature.empty else _Words(back)
    returned = signature.empty if inspect.isclass(value) else returned
    return str(signature.replace(parameters=plain, return_annotation=returned))


class _Words:
    """An annotation as it is written."""

    def __init__(self, annotation: object):
        self._text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)

    def __repr__(self) -> str:
        return self._text


def _annotation(getter: Any) -> str:
    return str(getattr(getter, "__annotations__", {}).get("return", ""))


def _returned(value: Any) -> Iterator[type]:
    """Classes of ours in the annotations of what it gives back, and of its fields."""
    if inspect.isclass(value):
        for name, member in _members(value).items():
            found = _member(name, value, name, member)
            if found.kind == "attribute":
                yield from names_in(found.signature, sys.modules[value.__module__])
            elif found.kind in ("property", "method"):
                yield from names_in(_annotation(found.value), sys.modules[found.value.__module__])
    elif isinstance(value, types.FunctionType):
        yield from names_in(_annotation(value), sys.modules[value.__module__])
