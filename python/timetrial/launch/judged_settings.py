"""The settings of a finished launch: what was asked beside what the contender and the kernel say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from timetrial.caps.in_force import InForce
from timetrial.contenders.compile_cache import SETTING as CACHE
from timetrial.contenders.compile_cache import judge_cache
from timetrial.contenders.registry import Contender
from timetrial.contenders.settings import affinity_of, bound_processors
from timetrial.control.arithmetic import Proven
from timetrial.control.contradictions import contradictions
from timetrial.control.cpus import allowed_cpus, parse_cpus
from timetrial.control.judging import Evidence, judge_settings
from timetrial.control.kernels import CORE_TYPE, announced, old_kernels
from timetrial.control.libraries import ChosenLibrary
from timetrial.control.openmp import displayed
from timetrial.control.paths import slower_paths
from timetrial.launch.plan import LaunchPlan
from timetrial.observing.observe import Watch
from timetrial.observing.sampled import looks_in
from timetrial.processes.events import Ready
from timetrial.processes.output import head
from timetrial.records.model import CompileCache, Setting


@dataclass(frozen=True)
class Said:
    """What the contender said when it was ready, and what it was given."""

    ready: Ready | None
    libraries: Sequence[ChosenLibrary]
    cache: CompileCache | None
    proven: Proven  # by this launch, or by the proof before it
    caps: InForce | None


def judged_settings(
    plan: LaunchPlan, contender: Contender, said: Said, watch: Watch | None
) -> tuple[list[Setting], list[str]]:
    """Each setting with its status, and what to warn of. `watch` None: it ended before anyone could look."""
    evidence, asked = Evidence(), plan.case.settings
    if watch is not None:
        evidence = watch.evidence(
            said.ready.settings if said.ready else {},
            (said.ready.backend.isa if said.ready else "") or contender.isa,
            str(contender.interpreter.executable) if contender.interpreter else None,
            said.libraries,
            bound_processors(plan.case, contender, plan.processors),
        )
    bound = affinity_of(plan.case, contender, plan.processors)
    loaded = said.ready.libraries if said.ready else ()
    printed = head(plan.folder / "stderr.txt")
    words = announced(printed)
    cache = None
    if asked.get(CACHE) is not None and said.cache is not None:
        cache = judge_cache(asked[CACHE], said.cache, plan.purpose)
    evidence = replace(
        evidence,
        loaded=loaded,
        facts=said.ready.facts if said.ready else {},
        announced=words,
        displayed=displayed(printed),
        cache=cache,
        looks=looks_in(plan.folder),
        proven=said.proven,
        caps=said.caps,
        tree=contender.tree.folder if contender.tree else None,
        given=allowed_cpus() if bound is None else parse_cpus(bound),
    )
    warnings = old_kernels(loaded, words, contender.settings, asked=CORE_TYPE in asked)
    warnings += contradictions(evidence.mapped, loaded, evidence.given, said="threads" in asked)
    warnings += slower_paths(evidence.facts)
    return judge_settings(plan.case, evidence), warnings
