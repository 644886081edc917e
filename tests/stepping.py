"""Races of steps of the user's own by scripted times: modules are found and revisions checked out, and
nothing is launched. A step of a revision takes half as long as one of the working tree, or RATIO of it."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from fakes import FakeEngine

from timetrial import contenders, workloads
from timetrial.experiment.engine import Engine
from timetrial.records.model import LaunchRecord

RATIO = "STEPPING_RATIO"  # variable: of the base's step to the challenger's


class Steps(FakeEngine):
    """Its launches say which file they would import."""

    def launch(self, plan: Any) -> LaunchRecord:
        type(self).before(plan)
        record = super().launch(plan)
        record = record.model_copy(update={"facts": {"callable.file": str(plan.contender.path)}})
        (plan.folder / "record.json").write_text(record.model_dump_json(indent=1), encoding="utf-8")
        return record


def engine() -> Engine:
    ratio = float(os.environ.get(RATIO, "0.5"))
    steps = Steps(factor=lambda plan: ratio if "revision" in plan.case.settings else 1.0)
    return dataclasses.replace(
        steps.engine(),
        resolve=contenders.resolve,
        validate_settings=lambda case, contender, spanned: None,
        check=workloads.check,
    )
