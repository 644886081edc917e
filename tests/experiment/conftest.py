"""A network loader that needs no compiled part."""

from __future__ import annotations

from typing import Any

import fakes
import pytest


@pytest.fixture
def networks() -> Any:
    return fakes.network
