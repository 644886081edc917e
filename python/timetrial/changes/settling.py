"""The race that would settle whether a row moved: both of then and now, alive together, taking turns.

Only what can still be launched here can race, so every command is read by the grammar and checked
against this machine before it is said; where there is none, why.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timetrial.cases.grammar import to_word
from timetrial.cases.keys import is_callable_word
from timetrial.changes.facts import BACKEND, SOURCE, machine_of
from timetrial.errors import InputError, Unavailable
from timetrial.experiment.engine import Engine, real_engine
from timetrial.experiment.experiment import load_words
from timetrial.experiment.validate import validate
from timetrial.races.side import check_sides, keys_behind, keys_of
from timetrial.records.model import CaseRecord, ExperimentRecord, LaunchRecord
from timetrial.records.reference import facts_of
from timetrial.results.results import Results

if TYPE_CHECKING:
    from timetrial.changes.comparison import Comparison, Pair

_SETTING, _LIBRARY = "setting ", ".library"


@dataclass(frozen=True)
class Settling:
    """`command`: to type; None: there is no such race here. `words`: what it tells, or why there is none."""

    command: str | None  # the race; None: there is none to run
    words: str  # what it would settle, or why there is none


class _NoRaceError(Exception):
    """Why something cannot race here."""


def settle(comparison: Comparison, pair: Pair, engine: Engine | None = None) -> Settling:
    """The first of what changed for the row that can race; where nothing did, its ratio anew."""
    engine = engine or real_engine()
    try:
        _check_places(comparison.records, engine.machine())
        return _settled(comparison, pair, engine)
    except _NoRaceError as error:
        return Settling(None, str(error))
    except (InputError, Unavailable) as error:
        return Settling(None, f"it cannot be launched here as it was: {error}")


def _settled(comparison: Comparison, pair: Pair, engine: Engine) -> Settling:
    new = comparison.records[1]
    values = _raceable(pair)
    refused = [_source(pair)] if SOURCE in pair.changes else []
    for key, (old, now) in values.items():
        words = _words(_keys(pair.new.case, new), key, [old, now], new.seed)
        try:
            _check(words, comparison.metric, engine)
        except (InputError, Unavailable, _NoRaceError) as error:
            refused.append(f"{key} was {old}, is {now}: {error}")
            continue
        others = [what for what in pair.changes if key not in what]
        rest = f"; what else changed ({', '.join(others[:3])}) is in neither side" if others else ""
        return Settling(_command(words, comparison), f"{key} of then and of now, together{rest}")
    if refused:
        raise _NoRaceError("; ".join(refused))
    if pair.changes:
        raise _NoRaceError(
            f"what changed ({', '.join(list(pair.changes)[:3])}) is no key of a race: bring the machine "
            "back to what it was, or measure both on one day, each from an environment of its own"
        )
    return _anew(comparison, pair, engine)


def _raceable(pair: Pair) -> dict[str, tuple[Any, Any]]:
    """Keys that can have both values in one race."""
    found: dict[str, tuple[Any, Any]] = {}
    old, new = (_last(one.launches) for one in (pair.old, pair.new))
    if old is None or new is None:
        return found
    name = pair.new.case.backend.partition("@")[0]
    versions = str(old.backend.get("version") or ""), str(new.backend.get("version") or "")
    if versions[0] != versions[1] and BACKEND in pair.changes and not is_callable_word(name):
        found["backend"] = (f"{name}@{versions[0]}", f"{name}@{versions[1]}")
    effective = [{one.name: one.effective for one in launch.settings} for launch in (old, new)]
    for key in effective[0]:
        if key.endswith(_LIBRARY) and effective[0][key] and effective[1].get(key):
            paths = [Path(str(one[key])) for one in effective]
            if paths[0] != paths[1]:
                for path, launch in zip(paths, (old, new), strict=True):
                    _check_file(path, launch)
                found[key] = (str(paths[0]), str(paths[1]))
    for what, values in pair.changes.items():
        if what.startswith(_SETTING):
            found[what.removeprefix(_SETTING)] = values
    return found


def _check_file(path: Path, launch: LaunchRecord) -> None:
    """That a library is the one that was measured."""
    known = next((one.sha256 for one in launch.libraries if Path(one.path).name == path.name), None)
    try:
        same = known is None or hashlib.sha256(path.read_bytes()).hexdigest() == known
    except OSError as error:
        raise _NoRaceError(f"'{path}' is not there any more ({error.strerror})") from None
    if not same:
        raise _NoRaceError(f"'{path}' is another file now than the one that was measured")


def _source(pair: Pair) -> str:
    who = pair.new.case.who
    if pair.new.case.called is not None:
        return (
            f"{who} is a function of a session, and was another one: race both there, "
            f"timetrial.race({who}_before, {who})"
        )
    return (
        f"the source of {who} changed, and of one name only one can be imported: race it against the commit "
        f"of then, `timetrial race callable={who} --against COMMIT`"
    )


def _anew(comparison: Comparison, pair: Pair, engine: Engine) -> Settling:
    """Records know of nothing that changed."""
    unknown = "nothing that records know changed for it"
    if not isinstance(comparison.new, Results):
        command = comparison.records[1].again
        if not command.startswith("timetrial race"):
            raise _NoRaceError(f"{unknown}, and the race was made in Python: call it there again")
        return Settling(command, f"{unknown}: the same race, today")
    base = pair.new.against
    if base is None:
        raise _NoRaceError(
            f"{unknown}, and it has no reference: a row against itself says nothing about two days"
        )
    new = comparison.records[1]
    sides = [_keys(case, new) for case in (base, pair.new.case)]
    keys = list(dict.fromkeys([*sides[0], *sides[1]]))
    differing = [key for key in keys if sides[0].get(key) != sides[1].get(key)]
    if len(differing) != 1:
        raise _NoRaceError(
            f"{unknown}. It differs from its reference in {', '.join(differing)}, which no two values of one "
            f"key say. In Python: timetrial.race({sides[0]}, {sides[1]})"
        )
    key = differing[0]
    words = _words(sides[1], key, [side[key] for side in sides], new.seed)
    _check(words, comparison.metric, engine, [base, pair.new.case])
    return Settling(_command(words, comparison), f"{unknown}: its ratio to {pair.reference}, today")


def _keys(case: CaseRecord, record: ExperimentRecord) -> dict[str, Any]:
    return {**keys_of(case), **keys_behind(record.spec)}


def _words(keys: Mapping[str, Any], key: str, values: Sequence[Any], seed: int) -> list[str]:
    """Those of a race in which `key` has these values. InputError: a value with a comma says other sides."""
    spanned = {**keys, key: list(values)}
    found = {name: value if isinstance(value, list) else [value] for name, value in spanned.items()}
    for name, texts in found.items():
        if any("," in str(text) for text in texts):
            raise InputError(f"{name}={','.join(map(str, texts))}: a comma separates values")
    return [*(to_word(name, texts) for name, texts in found.items()), f"seed={seed}"]


def _check(words: list[str], metric: str, engine: Engine, wanted: Sequence[CaseRecord] | None = None) -> None:
    """That the grammar reads two sides (these), and that both can be launched here."""
    experiment = load_words(words)
    cases = [one.case for one in experiment.cases]
    check_sides(cases, metric)
    if len(cases) != 2:
        raise _NoRaceError(f"these words say {len(cases)} sides")
    for case, record in zip(cases, wanted or (), strict=wanted is not None):
        said, meant = _facts(case.facts()), _facts(facts_of(record))
        if said != meant:
            differing = [key for key in {**said, **meant} if said.get(key) != meant.get(key)]
            raise _NoRaceError(f"the same words say another {', '.join(differing)} now")
    for one in validate(experiment.cases, engine):
        if one.unavailable is not None:
            raise _NoRaceError(f"{one.case.backend} is not here: {one.unavailable}")


def _facts(facts: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(value) for key, value in facts.items() if value is not None and key != "repeat"}


def _check_places(records: Sequence[ExperimentRecord], machine: Mapping[str, Any]) -> None:
    """Both were measured here, by this timetrial."""
    import timetrial

    for word, record in zip(("OLD", "NEW"), records, strict=True):
        own = {key: str(machine.get(key)) for key in machine_of(record)}
        if machine_of(record) != own:
            raise _NoRaceError(f"{word} was measured on another machine: both have to race on one")
        if record.timetrial_version != timetrial.__version__:
            raise _NoRaceError(
                f"{word} was measured by timetrial {record.timetrial_version}, this is "
                f"{timetrial.__version__}: two versions of its step loop cannot ride in one race. Measure "
                "both on one day, each from an environment of its own"
            )


def _command(words: Sequence[str], comparison: Comparison) -> str:
    metric = "" if comparison.metric == "step_time" else f" --metric {comparison.metric}"
    return f"timetrial race {shlex.join(words)}{metric}"


def _last(launches: Sequence[LaunchRecord]) -> LaunchRecord | None:
    return next((one for one in reversed(launches) if one.outcome == "ok"), None)
