"""Whether the caps of a launch were in force, by what the kernel and the supervisor say of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from timetrial.caps.caps import BY, CPU, MEMORY, NONE, OPEN_FILES, PROCESSES, Caps
from timetrial.cases.sizes import bytes_of
from timetrial.records.model import Setting, SettingStatus

PAGE = 4096


@dataclass
class InForce:
    """Fills itself with the reports of the supervisor, and looks into the groups as the contender begins."""

    caps: Caps = field(default_factory=Caps)
    limits: dict[str, str] = field(default_factory=dict)  # by getrlimit(2), of the process as it began
    groups: dict[str, float | None] = field(default_factory=dict)  # controller -> value of a group it was in
    left: list[str] = field(default_factory=list)  # controllers of groups that it was not in
    looks: int | None = None  # of the watch; None: there was none, or the supervisor did not say
    most_bytes: int = 0  # that the watch saw

    def heard(self, report: str, pid: int | None) -> None:
        """A report of the supervisor (PROTOCOL.md): `limits NAME VALUE ...`, `watched LOOKS BYTES`."""
        word, *rest = report.split()
        if word == "limits":
            self.limits = dict(zip(rest[::2], rest[1::2], strict=False))
            self._look(pid)
        elif word == "watched" and len(rest) == 2:
            self.looks, self.most_bytes = int(rest[0]), int(rest[1])

    def _look(self, pid: int | None) -> None:
        for group in self.caps.groups:
            is_in = group.has(pid) if pid is not None else None
            for name in group.controllers:
                if is_in:
                    self.groups[name] = group.read_back(name)
                elif is_in is False:
                    self.left.append(name)


def judge(name: str, asked: str, seen: InForce | None) -> Setting:
    """One of the caps, by its name."""
    if asked == NONE:
        return Setting(name=name, asked=asked, effective=NONE, how_read="nothing was set", status="applied")
    judged = _JUDGES[name](asked, seen) if seen is not None and seen.limits else None
    if judged is None:
        words = "it ended before anyone looked"
        return Setting(name=name, asked=asked, effective=None, how_read=words, status="unverifiable")
    return _setting(name, asked, *judged)


def judge_by(asked: str | None, seen: InForce | None) -> Setting:
    """Who keeps the cap on memory: as it was chosen. Whether it is kept is judged of `memory.cap`."""
    way = seen.caps.memory_by if seen is not None else None
    status: SettingStatus = "unverifiable" if way is None and asked is not None else "applied"
    return Setting(
        name=BY, asked=asked, effective=way or NONE, how_read=_HOW.get(way or "", ""), status=status
    )


def keepers(settings: Mapping[str, str], seen: InForce | None) -> Sequence[Setting]:
    """What the record says besides, where nobody asked who keeps the cap on memory."""
    has_one = settings.get(MEMORY, NONE) != NONE
    return [judge_by(None, seen)] if has_one and BY not in settings and seen is not None else []


_WATCHED = "private memory (RssAnon, VmSwap) of all its processes"
_HOW = {
    "cgroup": "its control group: memory.max or memory.limit_in_bytes, and /proc/PID/cgroup",
    "data": f"RLIMIT_DATA of each process, by getrlimit(2) as it began; {_WATCHED} watched 10 times a second",
    "watchdog": f"{_WATCHED}, watched 100 times a second by the supervisor",
    "address_space": "RLIMIT_AS of each process, by getrlimit(2) as it began",
}


def _setting(name: str, asked: str, wanted: float, found: float | None, source: str) -> Setting:
    slack = PAGE if name == MEMORY else 1e-3 * wanted  # the kernel counts pages, and microseconds
    is_kept = found is not None and abs(found - wanted) <= slack
    effective = asked if is_kept else (NONE if found is None else f"{found:g}")
    return Setting(
        name=name,
        asked=asked,
        effective=effective,
        how_read=source,
        status="applied" if is_kept else "ignored",
    )


# What was wanted, what is in force, how it was read. None: nobody could look.
_Judged = tuple[float, float | None, str] | None


def _grouped(name: str, wanted: float, seen: InForce, source: str) -> _Judged:
    if name not in seen.groups and name not in seen.left:
        return None
    return wanted, None if name in seen.left else seen.groups[name], source


def _memory(asked: str, seen: InForce) -> _Judged:
    way, wanted = seen.caps.memory_by, float(bytes_of(asked, MEMORY))
    source = _HOW.get(way or "", "")
    if way == "cgroup":
        return _grouped("memory", wanted, seen, source)
    if seen.looks is not None:
        source += f": {seen.looks} looks, {seen.most_bytes} bytes at most"
    if way == "watchdog":
        found = float(seen.caps.memory_bytes or 0) if seen.looks else None
        return None if seen.looks is None else (wanted, found, source)
    return wanted, _number(seen.limits.get(way or "")), source


def _cpu(asked: str, seen: InForce) -> _Judged:
    return _grouped("cpu", float(asked), seen, "its control group: cpu.max or cpu.cfs_quota_us")


def _processes(asked: str, seen: InForce) -> _Judged:
    if any("pids" in one.controllers for one in seen.caps.groups):
        return _grouped("pids", float(asked), seen, "its control group: pids.max")
    found = _number(seen.limits.get("processes"))
    # So many beyond those of the user's that ran already.
    kept = None if found is None or found < int(asked) else float(asked)
    return float(asked), kept, f"RLIMIT_NPROC, by getrlimit(2) as it began: {seen.limits.get('processes')}"


def _open_files(asked: str, seen: InForce) -> _Judged:
    return float(asked), _number(seen.limits.get("open_files")), "RLIMIT_NOFILE, by getrlimit(2) as it began"


def _number(word: str | None) -> float | None:
    return float(word) if word is not None and word.isdecimal() else None


_JUDGES = {MEMORY: _memory, CPU: _cpu, PROCESSES: _processes, OPEN_FILES: _open_files}
