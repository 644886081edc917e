"""A network loader that needs no compiled part."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from timetrial.errors import InputError


@pytest.fixture
def networks() -> Callable[[str], SimpleNamespace]:
    def load(name: str) -> SimpleNamespace:
        if name not in ("mlp", "lenet5"):
            raise InputError(f"There is no network '{name}'.")
        optimizer = {"name": "sgd", "learning_rate": 0.02, "momentum": 0.9, "weight_decay": 0.0}
        return SimpleNamespace(name=name, dataset="digits28", batch_size=64, optimizer=optimizer, epochs=12)

    return load
