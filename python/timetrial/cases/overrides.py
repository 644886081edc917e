"""What the command line changes in an experiment before it is validated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from timetrial.cases.environment import PREFIX
from timetrial.cases.grammar import Overrides
from timetrial.cases.keys import EXPERIMENT_KEYS, backend_name, check_keys, is_workload, setting_word
from timetrial.cases.spec import Spec
from timetrial.errors import InputError, nearest
from timetrial.toml import as_values

_CONTENDERS_FIRST = {"backend": 0, "callable": 1}


def apply(spec: Spec | None, overrides: Overrides, where: str) -> dict[str, Any]:
    """The document of `spec` (None: words alone are the experiment) with `overrides` in place."""
    document: dict[str, Any] = spec.model_dump(exclude_none=True) if spec else {"name": "command-line"}
    for key in ("workload", "axes", "measure", "environment"):
        document[key] = dict(document.get(key, {}))
    document["contender"] = [dict(table) for table in document.get("contender", [])]
    _check(overrides, where)
    if "dataset" in overrides and "dataset_else" not in overrides:
        document["workload"].pop("dataset_else", None)  # who names a data set means it
    # The backends first: settings that carry a backend's name belong to that one.
    for key, values in sorted(overrides.items(), key=lambda item: _CONTENDERS_FIRST.get(item[0], 2)):
        if key in EXPERIMENT_KEYS:
            _set_experiment_key(document, key, values, where)
        elif key.startswith(PREFIX) and len(values) == 1 and not _is_of_cases(document, key):
            document["environment"][key.removeprefix(PREFIX)] = setting_word(values[0])
        elif key == "backend" and any("backend" in table for table in document["contender"]):
            document["contender"] = _matching(document["contender"], values, where)
        elif key == "callable" and key not in document["axes"]:
            _set_callables(document["contender"], values)
        else:
            _replace(document, key, values)
    _forget_lost_reference(document, overrides)
    return document


def _check(overrides: Overrides, where: str) -> None:
    keys = [key for key in overrides if key not in EXPERIMENT_KEYS and not key.startswith(PREFIX)]
    check_keys(keys, where, also=EXPERIMENT_KEYS)
    for key, values in overrides.items():
        if not values:
            raise InputError(f"{where}: '{key}' has no value: an empty list says nothing.")


def _is_of_cases(document: Mapping[str, Any], key: str) -> bool:
    return any(key in table for table in (document["axes"], *document["contender"]))


def _single(key: str, values: list[Any], where: str) -> Any:
    if len(values) != 1:
        raise InputError(f"{where}: '{key}' takes one value, not {len(values)}.")
    return values[0]


def _set_experiment_key(document: dict[str, Any], key: str, values: list[Any], where: str) -> None:
    *tables, last = EXPERIMENT_KEYS[key]
    place = document
    for table in tables:
        place[table] = dict(place.get(table) or {})
        place = place[table]
    value = _single(key, values, where)
    place[last] = str(value) if last in ("name", "question") else value


def _matching(contenders: list[dict[str, Any]], wanted: list[Any], where: str) -> list[dict[str, Any]]:
    """`backend=a,b` on a file keeps the contenders that match, in the file's order; equal values are kept. A
    framework's bare name matches all its versions."""
    present = [str(value) for table in contenders for value in as_values(table.get("backend", []))]
    for backend in wanted:
        if not any(_same(str(backend), one) for one in present):
            raise InputError(
                f"{where}: the experiment has no contender with backend '{backend}'."
                f"{nearest(str(backend), set(present))} "
                "(backend=... keeps matching contenders; to add one, edit the file.)"
            )
    kept: list[dict[str, Any]] = []
    for table in contenders:
        backends = as_values(table.get("backend", []))
        matching = [backend for backend in backends for word in wanted if _same(str(word), str(backend))]
        if matching:
            kept.append({**table, "backend": matching if len(matching) > 1 else matching[0]})
    return kept


def _set_callables(contenders: list[dict[str, Any]], wanted: list[Any]) -> None:
    """`callable=...` takes the place of the callables of a file; beside backends it is one contender more."""
    value = wanted if len(wanted) > 1 else wanted[0]
    having = [table for table in contenders if "callable" in table]
    for table in having:
        table["callable"] = value
    if not having:
        contenders.append({"callable": value})


def _same(word: str, backend: str) -> bool:
    word, backend = backend_name(word), backend_name(backend)
    return word == backend or ("@" not in word and word == backend.partition("@")[0])


def _replace(document: dict[str, Any], key: str, values: list[Any]) -> None:
    """Replaces a key where it stands: in every contender that has it, otherwise in [axes] or [workload]."""
    value = values if len(values) > 1 else values[0]
    document["contender"] = _own_tables(document["contender"], key)
    having = [table for table in document["contender"] if key in table]
    owner = key.split(".")[0]
    if not having and key not in document["axes"]:
        having = [table for table in document["contender"] if "." in key and table.get("backend") == owner]
    document["workload"].pop(key, None)
    for table in having:
        table[key] = value
    if having:
        document["contender"] = _distinct(document["contender"])
    elif key == "backend" and key not in document["axes"]:
        document["contender"] = [{"backend": value}]
    elif is_workload(key) and len(values) == 1 and key not in document["axes"]:
        document["workload"][key] = value
    else:
        document["axes"][key] = values


def _own_tables(contenders: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """`null.step_us=5 backend=null,eigen`: null gets a table of its own; the setting reaches only it."""
    owner, dot, _ = key.partition(".")
    tables: list[dict[str, Any]] = []
    for table in contenders:
        backends = as_values(table.get("backend", []))
        if dot and owner in backends and len(set(backends)) > 1:
            tables += [{**table, "backend": backend} for backend in backends]
        else:
            tables.append(table)
    return tables


def _distinct(contenders: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Tables that differed in nothing but a replaced key would measure the same case twice."""
    kept: list[dict[str, Any]] = []
    for table in contenders:
        if table not in kept:
            kept.append(table)
    return kept


def _forget_lost_reference(document: dict[str, Any], overrides: Overrides) -> None:
    """A file's reference that the words ruled out is no mistake: the first ok contender steps in."""
    reference = document["measure"].get("reference")
    if not isinstance(reference, Mapping) or "reference" in overrides or "measure.reference" in overrides:
        return
    for key, value in reference.items():
        places = [document["axes"], document["workload"], *document["contender"]]
        values = [str(one) for table in places if key in table for one in as_values(table[key])]
        if key in overrides and str(value) not in values:
            document["measure"].pop("reference")
            return
