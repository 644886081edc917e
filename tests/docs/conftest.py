"""docs/ is no package of timetrial: its modules are found while these tests run."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))
