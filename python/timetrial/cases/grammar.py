"""The one grammar of the command line: an experiment (the word without '='), then key=value,value words."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from timetrial.errors import InputError
from timetrial.toml import as_values, parse_toml

_MOST_DIGITS = 400  # the largest float has 309
_INTEGER = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")

Overrides = dict[str, list[Any]]  # flat key -> its values; more than one value spans


def parse_words(words: Iterable[str]) -> tuple[str | None, Overrides]:
    """(experiment or None, overrides) of the words after `timetrial run`."""
    source: str | None = None
    overrides: Overrides = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals:
            if source is not None:
                raise InputError(
                    f"Two experiments: '{source}' and '{word}'. One word without '=' names the experiment; "
                    "everything else is key=value."
                )
            source = word
            continue
        key = key.strip()
        if not key:
            raise InputError(f"'{word}' has no key before '='. Expected key=value, for example threads=1,2.")
        if key in overrides:
            raise InputError(f"'{key}' is given twice. One word holds all its values: {key}=A,B.")
        for flat_key, values in spread(key, parse_value(key, text)).items():
            if flat_key in overrides:
                raise InputError(
                    f"'{flat_key}' is given twice. One word holds all its values: {flat_key}=A,B."
                )
            overrides[flat_key] = values
    return source, overrides


def parse_value(key: str, text: str) -> list[Any]:
    """The values of one word: TOML if it begins with [ or {, otherwise a comma list of scalars."""
    text = text.strip()
    if text[:1] in ("[", "{"):
        value = parse_toml(f"value = {text}", f"The value {text} of '{key}'")["value"]
        return value if isinstance(value, list) else [value]
    parts = [part.strip() for part in text.split(",")]
    if "" in parts:
        raise InputError(f"'{key}={text}' has an empty value. Expected key=value or key=value,value.")
    return [_scalar(part) for part in parts]


def spread(key: str, values: list[Any]) -> Overrides:
    """A table as value is flattened to dotted keys (`optimizer={...}`); other values stay with their key."""
    if not any(isinstance(value, Mapping) for value in values) or key in ("reference", "measure.reference"):
        return {key: values}
    if len(values) > 1:
        raise InputError(f"'{key}' cannot span tables. Span one of its keys: {key}.NAME=value,value.")
    return {flat: as_values(value) for flat, value in flatten(values[0], f"{key}.").items()}


def keyword_overrides(keywords: Mapping[str, Any]) -> Overrides:
    """The same from Python: run("blas-look", threads=[1, 2], optimizer={"learning_rate": 0.01}).

    A keyword cannot carry a dot; `**{"blas.library": ...}` can.
    """
    overrides: Overrides = {}
    for key, value in keywords.items():
        overrides.update(spread(key, as_values(value)))
    return overrides


def flatten(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as dotted keys: {"blas": {"library": 1}} is {"blas.library": 1}."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """The other way: {"schedule.name": 1} is {"schedule": {"name": 1}}."""
    tables: dict[str, Any] = {}
    for key, value in flat.items():
        first, _, rest = key.partition(".")
        if rest:
            tables.setdefault(first, {})[rest] = value
        else:
            tables[first] = value
    return tables


def to_word(key: str, values: Iterable[Any]) -> str:
    """key=value,value such that parse_words() reads the same again."""
    return f"{key}={','.join(_text(value) for value in values)}"


def _scalar(text: str) -> Any:
    is_whole = _INTEGER.fullmatch(text)
    if is_whole or _NUMBER.fullmatch(text):
        if len(text) > _MOST_DIGITS or not math.isfinite(float(text)):
            raise InputError(f"'{text[:40]}' ({len(text)} characters) is larger than any number can be.")
        return int(text) if is_whole else float(text)
    return {"true": True, "false": False}.get(text, text)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + "}"
    return str(value)


def _toml(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else _text(value)
