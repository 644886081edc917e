"""The job file: all that a contender is told. PROTOCOL.md explains every key."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from timetrial.contenders.registry import Contender, import_folders
from timetrial.contenders.settings import job_settings
from timetrial.core import layer_traits, native
from timetrial.launch.plan import LaunchPlan
from timetrial.records.files import explained
from timetrial.workloads.material import channels_last

PROTOCOL = 2


def make_job(plan: LaunchPlan, contender: Contender) -> dict[str, Any]:
    """The job of a launch. Tensors stay in their files in the cache."""
    backend: dict[str, Any] = {"name": contender.name}
    if contender.interpreter is None:
        backend["plugin"] = str(contender.path)
        if contender.preload:
            backend["preload"] = [str(path) for path in contender.preload]
    else:
        if contender.kind == "callable":
            backend["callable"] = contender.name
            if contender.tree is not None:
                backend["tree"] = [str(contender.tree.folder), str(contender.tree.instead_of)]
        else:
            backend["adapter"] = str(contender.path)
        if contender.user_path is not None:
            backend["path"] = str(contender.user_path)
    job: dict[str, Any] = {
        "protocol": PROTOCOL,
        "launch": plan.id,
        "folder": str(plan.folder.resolve()),
        "backend": backend,
        "task": plan.case.task,
        "device": plan.case.device,
        "dtype": plan.case.dtype,
        "settings": job_settings(plan.case, contender),
        **plan.prepared.job,
    }
    if plan.case.task == "forward":  # which reads no masks
        job["streams"] = {
            name: {key: files for key, files in stream.items() if key != "drawn"}
            for name, stream in job["streams"].items()
        }
    if contender.interpreter is not None:
        tree = contender.tree
        job["sys_path"] = import_folders(contender.name, plan.case, contender.interpreter, tree)
        job["working_folder"] = str(tree.working_folder) if tree else os.getcwd()
        job["runtime"] = str(native.runtime_dir())
    if job["network"] is not None and contender.interpreter is not None:
        nodes = [{**node, "keeps_places": _keeps_places(node)} for node in job["network"]["nodes"]]
        job["network"] = {**job["network"], "nodes": nodes}
    layout = contender.version.image_layout if contender.version else "NCHW"
    if layout != "NCHW":
        job["layout"] = layout
        job["streams"] = {name: _arranged(job, stream) for name, stream in job["streams"].items()}
    return job


def _keeps_places(node: Mapping[str, Any]) -> bool:
    return layer_traits(node["kind"]).keeps_places


def _arranged(job: dict[str, Any], stream: dict[str, Any]) -> dict[str, Any]:
    """A stream whose inputs with height and width are files with the channels last."""
    ranks = {node["name"]: len(node["shape"]) for node in job["network"]["nodes"] if node["kind"] == "input"}
    arranged: dict[str, Any] = {
        group: {
            name: str(channels_last(Path(file))) if ranks[name] == 4 else file
            for name, file in stream[group].items()
        }
        for group in ("tensors", "drawn")
        if group in stream
    }
    return {**stream, **arranged}


def write_job(plan: LaunchPlan, job: dict[str, Any]) -> None:
    """job.json in the launch's folder."""
    file = plan.folder / "job.json"
    with explained(file):
        file.write_text(json.dumps(job, indent=1) + "\n", encoding="utf-8")


def fingerprint(job: dict[str, Any]) -> str:
    """Of the work alone: two jobs with the same one must give the same numbers."""
    work = {
        key: job[key] for key in ("task", "device", "dtype", "network", "optimizer", "streams", "batch_size")
    }
    return hashlib.sha256(json.dumps(work, sort_keys=True).encode()).hexdigest()
