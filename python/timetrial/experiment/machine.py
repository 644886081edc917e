"""Facts about the machine that a reader of a record needs. What cannot be read is left out, never guessed."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Any

from timetrial.control_groups import cpu_groups, quota_cpus
from timetrial.proc import read_proc

_CPU = Path("/sys/devices/system/cpu")


def machine_facts() -> dict[str, Any]:
    """CPU, memory, kernel, and what is known to change timings. Names carry units."""
    info = read_proc("cpuinfo")
    facts: dict[str, Any] = {
        "cpu": short_cpu_name(_field(info, "model name") or platform.machine()),
        "cpu_model": _field(info, "model name"),
        "microcode": _field(info, "microcode"),
        "cpus": os.cpu_count(),
        "usable_cpus": len(os.sched_getaffinity(0)),
        "hypervisor": " hypervisor" in info,
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "python": platform.python_version(),
        "governor": _read(_CPU / "cpu0/cpufreq/scaling_governor"),
        "boost": _read(_CPU / "cpufreq/boost"),
        "smt": _read(_CPU / "smt/active"),
        "transparent_hugepage": _chosen(_read(Path("/sys/kernel/mm/transparent_hugepage/enabled"))),
        "clocksource": _read(Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        "cpu_quota": quota_cpus(cpu_groups()),  # in CPUs
        "gpus": gpus(Path("/dev")),
        "load_1min": os.getloadavg()[0],
    }
    return {name: value for name, value in facts.items() if value is not None}


def gpus(devices: Path) -> int:
    """How many a CUDA library could use: one for each device of NVIDIA's driver, or what Windows lends."""
    return len(list(devices.glob("nvidia[0-9]*"))) or int((devices / "dxg").exists())


def short_cpu_name(model: str) -> str:
    """'Intel(R) Xeon(R) Gold 6226R CPU @ 2.90GHz' is 'Intel Xeon Gold 6226R'."""
    words = re.sub(r"\((R|TM|tm)\)|\bCPU\b|\bProcessor\b|@.*$|\d+-Core", " ", model)
    return " ".join(words.split())


def _field(info: str, name: str) -> str | None:
    match = re.search(rf"^{name}\s*:\s*(.+)$", info, re.MULTILINE)
    return match.group(1).strip() if match else None


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip() or None
    except OSError:
        return None


def _chosen(text: str | None) -> str | None:
    match = re.search(r"\[(\w+)\]", text or "")
    return match.group(1) if match else text
