"""What an experiment may name: keys, settings, backends, networks, data sets, libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from code_tables.entry import Entry, Table
from timetrial import environments
from timetrial.cases.keys import CASE_KEYS, EXPERIMENT_KEYS, OPTIMIZER_KEYS, WORKLOAD_KEYS
from timetrial.cases.spec import Measure, Spec, Train
from timetrial.contenders.known_settings import known_settings
from timetrial.core import layer_kinds
from timetrial.experiment import catalog
from timetrial.library_files import known_libraries
from timetrial.optimizers import OPTIMIZERS, SCHEDULES
from timetrial.workloads import NETWORKS, load_network

_NESTED: dict[str, type[BaseModel]] = {"train": Train, "measure": Measure}


def experiment_keys() -> Table:
    """Of the file's own tables."""
    entries = []
    models: dict[str, type[BaseModel]] = {"": Spec, **_NESTED}
    for table, model in models.items():
        properties = model.model_json_schema()["properties"]
        for name, field in model.model_fields.items():
            path = f"{table}.{name}" if table else name
            value = "a table" if path in _NESTED else _value(properties[name])
            entries.append(Entry(path, field.description or "", (value, _short(path))))
    return Table(("key", "value", "as a word", "what it is"), entries)


def _short(path: str) -> str:
    """How it is said on the command line."""
    words = [word for word, place in EXPERIMENT_KEYS.items() if ".".join(place) == path]
    return f"`{min(words, key=len)}=`" if words else ""


def _value(schema: Mapping[str, Any]) -> str:
    """'a whole number, 1 to 1000' of a JSON schema."""
    kinds = [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
    kind = kinds[0]
    if "enum" in kind:
        words = " or ".join(f"`{one}`" for one in kind["enum"])
    else:
        words = {
            "integer": "a whole number",
            "boolean": "`true` or `false`",
            "string": "words",
            "number": "a number",
        }.get(str(kind.get("type")), "a list of tables" if kind.get("type") == "array" else "a table")
    low, high = kind.get("minimum"), kind.get("maximum")
    if high is not None:
        words += f", {low} to {high}"
    elif low is not None:
        words += f", from {low}"
    default = schema.get("default")
    if default is None or isinstance(default, dict | list):
        return words
    return f"{words}; default `{str(default).lower()}`"


def case_keys() -> Table:
    """Of the workload and of who computes it."""
    keys = {**CASE_KEYS, **WORKLOAD_KEYS, **OPTIMIZER_KEYS}
    return Table(("key", "what it is"), _entries(keys))


def optimizers() -> Table:
    """Rules, with what they compute, what they keep and where they are from."""
    entries = [
        Entry(
            name,
            rule.source,
            (
                f"`{rule.formula}`",
                ", ".join(f"`{state.name}`" for state in rule.states),
                ", ".join(
                    f"`{key}`" if limits.default is None else f"`{key}` {limits.default:g}"
                    for key, limits in rule.keys.items()
                ),
            ),
        )
        for name, rule in OPTIMIZERS.items()
    ]
    return Table(("rule", "formula", "states", "keys with defaults", "source"), entries)


def schedules() -> Table:
    """What the rate of step t is, as a part of the learning rate."""
    entries = [
        Entry(name, f"`{one.formula}`", (", ".join(f"`{key}`" for key in one.keys),))
        for name, one in SCHEDULES.items()
    ]
    return Table(("schedule", "keys", "part of the rate in step t"), entries)


def settings() -> Table:
    """Of libraries and of the process."""
    entries = [
        Entry(one.name, one.words, (", ".join(one.contenders), one.default, one.read))
        for one in known_settings()
    ]
    return Table(("setting", "of", "default", "read back by", "what it is"), entries)


def experiments() -> Table:
    """That come along."""
    return Table(("experiment", "question"), _entries(catalog.catalog("experiments")["experiments"]))


def native_backends() -> Table:
    """Of C++."""
    return Table(("backend", "what it is"), _entries(catalog.NATIVE_WORDS))


def frameworks() -> Table:
    """By environment.toml, whatever is installed here."""
    entries = []
    for name, framework in environments.shipped_frameworks().items():
        versions = [
            f"`{version.version}`" + (f" ({', '.join(version.modes)})" if version.modes else "")
            for version in framework.versions
        ]
        entries.append(Entry(name, ", ".join(versions), (framework.title,)))
    return Table(("backend", "framework", "versions (modes, the default first)"), entries)


def networks() -> Table:
    """By name, with what is known of each on paper, and of one's own."""
    entries = []
    for name in NETWORKS:
        network = load_network(name)
        facts = network.facts
        assert facts is not None, name
        size = "x".join(map(str, facts.sample)) + (f", {facts.classes} classes" if facts.classes else "")
        more = (
            facts.words,
            size,
            f"{facts.parameters:,}",
            f"{facts.multiply_accumulates:,}",
            f"{network.dataset}, batch {network.batch_size}",
        )
        differs = f". Differs: {facts.differs}" if facts.differs else ""
        entries.append(Entry(name, f"{facts.source}. Counted: {facts.counted}{differs}", more))
    entries += [Entry(name, words, ("",) * 5) for name, words in catalog.OWN_NETWORKS.items()]
    titles = (
        "network",
        "what it is",
        "of samples",
        "parameters",
        "multiply-accumulates",
        "by default",
        "source",
    )
    return Table(titles, entries)


def layers() -> Table:
    """The kinds of nodes, as the core's table defines them."""
    entries = [Entry(one.name, one.source, (one.attributes, one.formula)) for one in layer_kinds()]
    return Table(("kind", "attributes", "what it computes", "defined in"), entries)


def datasets() -> Table:
    """By name."""
    return Table(("data set", "what it is"), _entries(catalog.catalog("datasets")["datasets"]))


def libraries() -> Table:
    """By name, whatever is installed here."""
    return Table(
        ("library", "what it is"), [Entry(name, one.words) for name, one in known_libraries().items()]
    )


def _entries(words: Mapping[str, str]) -> list[Entry]:
    return [Entry(name, said) for name, said in words.items()]
