"""What the parent sees of a contender through /proc, at the borders between stages only."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from timetrial.control import huge_pages
from timetrial.control.float_mode import with_float_modes
from timetrial.control.habits import Habits, is_helper
from timetrial.control.judging import Evidence
from timetrial.control.libraries import ChosenLibrary
from timetrial.control.pinning import move, pin
from timetrial.control.threads import ThreadEvidence
from timetrial.core.observer import Observation, Observer
from timetrial.hashing import file_hash
from timetrial.library_files import version_of
from timetrial.observing.aftermath import Aftermath
from timetrial.observing.counted import Counting, Tally
from timetrial.observing.held import Held, anonymous_peak
from timetrial.observing.programs import Programs, busiest, read_programs
from timetrial.observing.turn_watch import TurnWatch
from timetrial.observing.witnesses import Look, Machine, Share, witnesses_of
from timetrial.processes.environment import environment_of
from timetrial.processes.events import LoadedLibrary, Reading
from timetrial.records.model import Counter, Library, Memory, Phase, Segment, Thread

FEWEST_COUNTED_NS = 50_000_000
# Less than this share of a CPU is not worth a name.
FEWEST_NAMED_CPUS = 0.02


@dataclass(frozen=True)
class _Border:
    """A look at the contender while it was measured, and the peak since the look before; the machine too.
    `apart`: since the look before it did something else than its steps."""

    steps: int
    time_ns: int
    seen: Observation
    machine: Look
    apart: bool = False
    tally: Tally | None = None  # where counters are read


class Watch:
    """Memory at each phase, threads while steady and what else ran on the machine then, for one contender."""

    def __init__(
        self,
        pid: int,
        helper_threads: Sequence[str],
        *,
        dispatches: bool = False,
        supervisor: int | None = None,
        pins: frozenset[int] | None = None,
        counts: bool = False,
        is_alone: bool = True,
    ):
        """`counts`: counters are read at the borders of what is steady. `is_alone`: while it runs, no other
        contender does."""
        self._observer = Observer(pid, supervisor)
        self._machine = Machine(pid)
        self._programs: Programs = {}
        self._programs_ns = 0
        self._helpers = tuple(helper_threads)
        self._dispatches = dispatches
        self._pins = pins  # processors of which each thread that works gets one
        self._counts, self._is_alone = counts, is_alone
        self._counting: Counting | None = None
        self.counters: list[Counter] = []
        self._lifetime_peak = 0
        self._borders: list[_Border] = []
        self._memory = Memory()
        self._held = Held()
        self._migrations: int | None = None
        self._last: Observation | None = None
        self.threads: list[Thread] = []
        self.steady_wall_ns = 0
        self.steady_cpu_ns = 0  # of all threads and processes that are no helpers, ended ones included
        self.habits = Habits()
        self.witnesses: dict[str, float | None] = {}
        self.others: dict[str, float] = {}
        self.tasks: int | None = None
        self.libraries: list[Path] = []
        self._mapped: frozenset[Path] = frozenset()
        self._environment: dict[str, str] = {}
        self._pages = huge_pages.Seen()

    @property
    def memory(self) -> Memory:
        """As far as it came."""
        return self._held.on(self._memory)

    def after_ready(self, phases: Sequence[Phase]) -> None:
        """The backend is built; `phases` are what the contender said of itself on the way."""
        self._held.said(phases)
        seen = self._read()
        self._held.ends("build", seen, anonymous_peak([(seen, seen)], 0))
        imported = next((one.rss_bytes for one in phases if one.name == "import"), None)
        self._memory = self._memory.model_copy(
            update={"after_import": imported, "after_build": seen.rss_bytes}
        )
        self._observer.reset_peak()

    def after_first_step(self) -> None:
        """One step was taken."""
        before, seen = self._last, self._read()
        self._held.ends("first step", seen, anonymous_peak([(before or seen, seen)], 0))
        self._memory = self._memory.model_copy(update={"after_first_step": seen.rss_bytes})
        self._pin(seen)

    def move(self, start: frozenset[int], target: frozenset[int]) -> None:
        """All of the contender from the processors on which it started to others. MeasurementError: these
        cannot be had."""
        move(lambda: self._observer.read().threads, start, target)

    def begin_steady(self) -> None:
        """Threads, the peak and the others on the machine are counted from here."""
        self._borders = []
        if self._pins:
            self._pin(self._read())
        self._programs, self._programs_ns = read_programs(), time.monotonic_ns()
        self._migrations = self._observer.migrations()
        if self._counts:
            tids = [thread.tid for thread in self._observer.read().threads]
            self._counting = Counting(tids, is_alone=self._is_alone)
        self.border(0)

    @contextlib.contextmanager
    def evaluation(self, steps: int) -> Iterator[None]:
        """Around an evaluation, after so many steps: what it holds is not held by the steps."""
        before = self._read()
        if self._borders:
            self.border(steps)
        self._observer.reset_peak()
        yield
        seen = self._read()
        self._held.ends("evaluation", seen, anonymous_peak([(before, seen)], 0))
        if self._borders:
            self.border(steps, apart=True)

    def border(self, steps: int, *, apart: bool = False) -> None:
        """Looks, after so many steps, while the contender goes on or waits. What is counted may begin at any
        border, because each has a peak of its own."""
        now_ns = time.monotonic_ns()
        seen = self._read()
        self.habits.add(seen.threads, self._helpers)
        look = self._machine.look(self.habits.cpus)
        tally = self._counting.tally() if self._counting else None
        self._borders.append(_Border(steps, now_ns, seen, look, apart, tally))
        self._observer.reset_peak()

    def first_and_last(self) -> tuple[Observation, Observation] | None:
        """What was seen at the borders of all that was timed; None: nobody looked twice."""
        return (self._borders[0].seen, self._borders[-1].seen) if len(self._borders) > 1 else None

    def aftermath(self) -> Aftermath:
        """For what goes on behind steps."""
        return Aftermath(self._observer)

    def turn_watch(self) -> TurnWatch:
        """For the turns of a heat."""
        return TurnWatch(self._observer, self._machine, self._helpers)

    def end_steady(self, segments: Iterable[Segment], stopped_ns: int = 0) -> None:
        """Threads and the peak are counted up to here, over `segments`, which are all since begin_steady().
        The recorder's window is taken off the peak. `stopped_ns`: time in between in which the contender
        could not run."""
        own = list(segments)
        self.border(sum(segment.steps for segment in own))
        self.count_steady(own, 0, stopped_ns)

    def count_steady(self, segments: Iterable[Segment], cut: int, stopped_ns: int = 0) -> None:
        """Counts from the first border at or behind the step `cut` to the last border; from further in front
        where too little time lies between: the contender may have spent it waiting for us."""
        *starts, last = self._borders
        if not starts:
            return
        first = next((number for number, one in enumerate(starts) if one.steps >= cut), len(starts) - 1)
        while first > 0 and last.time_ns - starts[first].time_ns < FEWEST_COUNTED_NS:
            first -= 1
        # Of threads little is known before they have worked for some time, on a machine that others use.
        working = first
        while working > 0 and last.seen.cpu_ns - starts[working].seen.cpu_ns < FEWEST_COUNTED_NS // 2:
            working -= 1
        begin = starts[working]
        self.steady_wall_ns = last.time_ns - begin.time_ns - stopped_ns
        before = {thread.tid: thread for thread in begin.seen.threads}
        self.threads = [
            Thread(
                tid=thread.tid,
                name=thread.name,
                cpu_ns=thread.cpu_ns - (before[thread.tid].cpu_ns if thread.tid in before else 0),
                wait_ns=thread.wait_ns - (before[thread.tid].wait_ns if thread.tid in before else 0),
                allowed_cpus=thread.allowed_cpus,
            )
            for thread in last.seen.threads
        ]
        own = [one for one in self.threads if not is_helper(one.name, self._helpers)]
        cpu_ns = last.seen.cpu_ns - begin.seen.cpu_ns
        self.steady_cpu_ns = cpu_ns - sum(one.cpu_ns for one in self.threads if one not in own)
        waits_ns = [one.wait_ns for one in own]
        share = Share(
            self.steady_wall_ns, cpu_ns, max(waits_ns, default=0), self.steady_cpu_ns + sum(waits_ns)
        )
        cores = self._machine.cores(self.habits.cpus)
        self.witnesses = witnesses_of(begin.machine, last.machine, share, cores)
        if last.steps > begin.steps:
            faults = last.seen.minor_faults - begin.seen.minor_faults
            self.witnesses["page_faults_per_step"] = faults / (last.steps - begin.steps)
            self.witnesses |= _in_a_step(begin.seen, last.seen, last.steps - begin.steps)
            moved = self._observer.migrations()
            if moved is not None and self._migrations is not None:  # of all steps since begin_steady()
                self.witnesses["migrations_per_step"] = max(0, moved - self._migrations) / last.steps
        self._end_counting(self._borders[working:])
        if (self.witnesses.get("others_cpus") or 0.0) > FEWEST_NAMED_CPUS:
            wall_s = (time.monotonic_ns() - self._programs_ns) / 1e9
            where = cores if len(cores) < (os.cpu_count() or 1) else None
            used_s = busiest(self._programs, read_programs(), os.getpid(), where)
            self.others = {name: seconds / wall_s for name, seconds in used_s.items()}
        counted = [
            (one.seen, other.seen)
            for one, other in itertools.pairwise(self._borders[first:])
            if not other.apart
        ]
        peak = max(after.peak_rss_bytes or 0 for _, after in counted)
        window_bytes = max((segment.window_bytes for segment in segments), default=0)
        held = anonymous_peak(counted, window_bytes)
        self._held.ends("steady", last.seen, held)
        self._memory = self._memory.model_copy(
            update={"steady_peak": max(0, peak - window_bytes), "steady_anonymous_peak": held}
        )

    def _end_counting(self, borders: Sequence[_Border]) -> None:
        if self._counting is None:
            return
        stretches = [
            (one.tally, other.tally)
            for one, other in itertools.pairwise(borders)
            if one.tally and other.tally and not other.apart
        ]
        self.counters = self._counting.end(stretches, borders[-1].steps - borders[0].steps)
        self._counting = None

    def read_float_modes(self) -> None:
        """Of the threads that were counted; when nothing is timed any more."""
        self.threads = with_float_modes(self.threads)

    def end(self, segments: Iterable[Segment]) -> None:
        """The last look, while the contender is still there."""
        self._held.ends("after", self._read(), None)
        window_bytes = max((segment.window_bytes for segment in segments), default=0)
        self._memory = self._memory.model_copy(
            update={"lifetime_peak": max(0, self._lifetime_peak - window_bytes)}
        )

    def _pin(self, seen: Observation) -> None:
        if self._pins:
            pin(seen.threads, self._helpers, self._pins)

    def _read(self) -> Observation:
        seen = self._last = self._observer.read(once=True)
        self._lifetime_peak = max(self._lifetime_peak, seen.peak_rss_bytes or 0)
        self.tasks = sum(not is_helper(thread.name, self._helpers) for thread in seen.threads)
        return seen

    def look_at_libraries(self, chosen: Sequence[ChosenLibrary]) -> None:
        """Which files are mapped. The list for the record has the libraries that compute, schedule or
        allocate, and those that the contender was to use."""
        mapped = _mapped_files(self._observer.pid)
        if not mapped:
            return
        self._mapped = mapped
        self._environment = environment_of(self._observer.pid)
        self._pages = huge_pages.look(self._observer.pid)
        known = {Path(library.path) for library in self._observer.libraries()}
        self.libraries = sorted(known | (mapped & {one.path.resolve() for one in chosen}))

    def evidence(
        self,
        readings: Mapping[str, Reading],
        isa: str,
        interpreter: str | None,
        chosen: Sequence[ChosenLibrary],
        bound: frozenset[int] | None = None,
    ) -> Evidence:
        """All there is to judge the settings by."""
        return Evidence(
            readings=readings,
            isa=isa,
            threads=ThreadEvidence(
                steady=tuple(one for one in self.threads if not is_helper(one.name, self._helpers)),
                steady_wall_ns=self.steady_wall_ns,
                steady_cpu_ns=self.steady_cpu_ns,
                quota_cpus=self._machine.quota_cpus,
                habits=self.habits,
                tasks=self.tasks,
                main=self._observer.pid if self._dispatches else None,
                bound=bound,
            ),
            interpreter=interpreter,
            libraries={one.setting: one.path for one in chosen},
            sonames={one.setting: one.soname for one in chosen if one.soname},
            computed=tuple(self.threads),
            environment=self._environment,
            mapped=self._mapped,
            pages=self._pages,
            counters=tuple(self.counters),
        )


def _in_a_step(begin: Observation, last: Observation, steps: int) -> dict[str, float | None]:
    """What the kernel counts of threads that were there at both looks, over the steps in between."""
    before = {thread.tid: thread for thread in begin.threads}
    pairs = [(before[thread.tid], thread) for thread in last.threads if thread.tid in before]
    given = sum(one.voluntary_switches - old.voluntary_switches for old, one in pairs)
    lost = sum(one.involuntary_switches - old.involuntary_switches for old, one in pairs)
    return {
        "major_faults_per_step": (last.major_faults - begin.major_faults) / steps,
        "voluntary_switches_per_step": given / steps,
        "involuntary_switches_per_step": lost / steps,
    }


def _mapped_files(pid: int) -> frozenset[Path]:
    """Every file that a process has mapped, by the kernel's path. OSError: the process is gone."""
    fields = (line.split(maxsplit=5) for line in Path(f"/proc/{pid}/maps").read_text().splitlines())
    return frozenset(Path(one[5]) for one in fields if len(one) == 6 and one[5].startswith("/"))


_TORCH_FILES = ("libtorch.so", "libtorch_", "libc10")  # not our plug-in, libtorch-<hash>.so


def describe_libraries(
    paths: Iterable[Path],
    chosen: Sequence[ChosenLibrary],
    facts: Mapping[str, str],
    said: Sequence[LoadedLibrary] = (),
) -> list[Library]:
    """With sha256 (None where the file is gone since) and version: of a chosen library and of torch what the
    contender stated as a fact ("blas.version" for "blas.library"), of others what their files tell. `said`:
    what the contender found out about its BLAS and OpenMP libraries (PROTOCOL.md)."""
    stated = {one.path.resolve(): facts.get(one.setting.replace(".library", ".version")) for one in chosen}
    told = {Path(one.path): one for one in said}
    found = []
    for path in sorted({*paths, *told}):
        try:
            digest: str | None = file_hash(path)
        except OSError:
            digest = None
        own = told.get(path, LoadedLibrary(path=str(path)))
        of_torch = facts.get("torch.version") if path.name.startswith(_TORCH_FILES) else None
        version = stated.get(path.resolve()) or of_torch or version_of(path) or own.version or None
        found.append(
            Library(
                path=str(path),
                version=version,
                sha256=digest,
                kind=own.kind or None,
                vendor=own.vendor or None,
                kernel=own.kernel or None,
                threads=own.threads,
                threads_getter=own.threads_getter or None,
            )
        )
    return found
