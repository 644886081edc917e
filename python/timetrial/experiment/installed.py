"""backend = "installed": every framework that is here, in each of its versions and modes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from timetrial.cases.spec import Spec
from timetrial.errors import InputError
from timetrial.toml import as_values

INSTALLED = "installed"
Here = Mapping[str, tuple[str, ...]]  # "tensorflow@1.15.5" -> its modes, the default first


def _here() -> Here:
    from timetrial.environments import present

    return present()


def spell_out(spec: Spec, here: Callable[[], Here] = _here) -> Spec:
    """The spec with a table for each framework in place of the word. A table's own `mode` keeps the
    frameworks that have it. InputError: none is installed."""
    if not any(INSTALLED in as_values(table.get("backend")) for table in spec.contender):
        return spec
    found = here()
    if not found:
        raise InputError(
            "backend 'installed': no framework is installed. `timetrial frameworks install --cheap` installs "
            "those that are quick to have."
        )
    contenders: list[dict[str, Any]] = []
    for table in spec.contender:
        if "backend" not in table:  # a callable
            contenders.append(table)
        for backend in as_values(table.get("backend", [])):
            contenders += _tables(table, found) if backend == INSTALLED else [{**table, "backend": backend}]
    return spec.model_copy(update={"contender": contenders})


def _tables(table: Mapping[str, Any], found: Here) -> list[dict[str, Any]]:
    tables = []
    for backend, modes in found.items():
        wanted = [mode for mode in as_values(table["mode"]) if mode in modes] if "mode" in table else modes
        if "mode" in table and not wanted:
            continue
        mode = {"mode": list(wanted)} if wanted else {}
        tables.append({**table, "backend": backend, **mode})
    return tables
