"""Launches of liar.py."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from launching import SHORT, make_plan

from timetrial.contenders.registry import Contender
from timetrial.environments import Interpreter, Version
from timetrial.launch import LaunchPlan, Limits

LIAR = Path(__file__).with_name("liar.py")
IMPATIENT = dataclasses.replace(
    SHORT, detailed_steps=0, limits=Limits(start_timeout_s=10.0, progress_timeout_s=2.0)
)


def liar_plan(folder: Path, at: str = "", code: str = "", after: int = 0) -> LaunchPlan:
    """`code` in place of the answer to the command `at`, once `after` such answers were honest."""
    contender = Contender(
        name="liar",
        kind="framework",
        path=LIAR,
        fingerprint="",
        interpreter=Interpreter(Path(sys.executable), running=True),
        version=Version(version="1", program=LIAR.name),
        flags=("reads_no_data", "unprovable"),
    )
    settings = {"liar.at": at, "liar.code": code, "liar.after": str(after)}
    plan = make_plan(folder, "null", settings=settings, measure=IMPATIENT)
    return dataclasses.replace(plan, contender=contender)
