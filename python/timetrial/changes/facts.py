"""What may make the same case take another time: the machine, and what a row stood on. Plain words by name.

What an older record does not say is left out; nothing is guessed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from timetrial.experiment.resume import MOMENTARY, SAME_MACHINE
from timetrial.records.model import CaseRecord, ExperimentRecord, LaunchRecord

_LIBRARY = ".library"  # the end of a setting whose value is a path: the library itself says more
BACKEND = "backend"
SOURCE = "source"  # of the user's own step
_MEASURE = ("effort", "isolated", "launches")
_VERSION, _HASH, _VARIABLE = " version", " sha256", "environment."


def machine_of(record: ExperimentRecord) -> dict[str, str]:
    """What two machines that are not the same differ in, as far as records say it. Machines that are alike
    in all of it count as one: records name no host."""
    return {key: str(record.machine.get(key)) for key in SAME_MACHINE if key != "python"}


def state_of(record: ExperimentRecord) -> dict[str, str]:
    """What may change on one machine, for all rows alike: kernel, Python, timetrial, how it was measured."""
    known = {
        key: str(value)
        for key, value in record.machine.items()
        if key not in MOMENTARY and (key == "python" or key not in SAME_MACHINE)
    }
    measure = record.spec.get("measure") or {}
    known |= {f"measure.{key}": str(measure[key]) for key in _MEASURE if measure.get(key) is not None}
    known |= {f"{_VARIABLE}{key}": str(value) for key, value in _asked_environment(record).items()}
    for data in record.workloads:
        files = data.get("arrays_sha256")
        if files:
            known[f"data of {data.get('dataset')}"] = f"sha256 {digest(files)}"
    return {"timetrial": record.timetrial_version, "seed": str(record.seed), **known}


def stands_on(case: CaseRecord, launches: Sequence[LaunchRecord]) -> dict[str, str]:
    """What a row stood on, by its last launch: versions and files of what computed, settings in force,
    kernels that were chosen, the user's own source."""
    if not launches:
        return {}
    last = next((one for one in reversed(launches) if one.outcome == "ok"), launches[-1])
    found = {BACKEND: _backend(last.backend)}
    if case.called is not None:  # carried out of a session: its word holds the hash of what it is
        found[SOURCE] = case.backend.partition(":")[0]
    elif "callable.sha256" in last.facts:
        found[SOURCE] = f"sha256 {last.facts['callable.sha256'][:12]}"
    for setting in last.settings:
        if setting.effective is not None and not setting.name.endswith(_LIBRARY):
            found[f"setting {setting.name}"] = setting.effective
    for library in last.libraries:
        name = Path(library.path).name
        facts = {_VERSION: library.version, " kernel": library.kernel, _HASH: (library.sha256 or "")[:12]}
        found |= {f"{name}{key}": value for key, value in facts.items() if value}
    if "callable.packages" in last.facts:
        found["packages"] = last.facts["callable.packages"]
    kernels = {key: text for key, text in last.facts.items() if " " in key and "(chosen)" not in text}
    found |= {
        f"kernel {key}": text for key, text in kernels.items() if not key.startswith(("blas.", "callable."))
    }
    return {key: text for key, text in found.items() if text}


def changes_between(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Name -> what it was, and is; "-" where it was not there. An older record may not have known a fact, so
    what only one of them has is a change only of what every record names: libraries, variables."""
    found = {
        key: (old.get(key, "-"), new.get(key, "-"))
        for key in dict.fromkeys([*old, *new])
        if old.get(key) != new.get(key) and ((key in old and key in new) or _is_listed(key, old, new))
    }
    # A file of another version is another file.
    return {
        key: value
        for key, value in found.items()
        if not (key.endswith(_HASH) and f"{key.removesuffix(_HASH)}{_VERSION}" in found)
    }


def _is_listed(key: str, old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    if key.endswith(_HASH):
        return all(any(one.endswith(_HASH) for one in facts) for facts in (old, new))
    return key.startswith(_VARIABLE)


def digest(facts: Any) -> str:
    """12 hex digits of whatever JSON can say."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]


def _backend(backend: Mapping[str, Any]) -> str:
    return " ".join(str(backend[key]) for key in ("version", "library", "isa") if backend.get(key))


def _asked_environment(record: ExperimentRecord) -> Mapping[str, Any]:
    found = record.spec.get("environment")
    return found if isinstance(found, Mapping) else {}
