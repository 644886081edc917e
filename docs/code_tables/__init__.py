"""The reference, written from the code's own tables: names, each with its words.

`TABLES` has everything that a page of docs/reference asks for by `<!-- table: NAME -->`. The site puts it in
place when it is built (docs/extension.py); tests/docs looks at the same entries without building anything.
"""

from __future__ import annotations

from collections.abc import Callable

from code_tables import cells, commands, experiments, numbers, python_text, testing
from code_tables.entry import Table

TABLES: dict[str, Callable[[], Table]] = {
    "experiment-keys": experiments.experiment_keys,
    "case-keys": experiments.case_keys,
    "optimizers": experiments.optimizers,
    "schedules": experiments.schedules,
    "settings": experiments.settings,
    "experiments": experiments.experiments,
    "native-backends": experiments.native_backends,
    "frameworks": experiments.frameworks,
    "networks": experiments.networks,
    "layers": experiments.layers,
    "datasets": experiments.datasets,
    "libraries": experiments.libraries,
    "metrics": numbers.metrics,
    "outcomes": numbers.outcomes,
    "run-columns": cells.run_columns,
    "race-columns": cells.race_columns,
    "profile-columns": cells.profile_columns,
    **{f"exported-{name}": cells.exported(name) for name in cells.EXPORTED},
    "json-run": numbers.json_run,
    "json-race": numbers.json_race,
    "exit-codes": commands.exit_codes,
    "pytest-options": testing.options,
}

# What is not a table: text made in the same way.
TEXTS: dict[str, Callable[[], str]] = {
    "commands": commands.text,
    "python": python_text.text,
    "pytest-marker": testing.marker,
}
