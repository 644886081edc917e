"""Everything that a reader of a table may have to know, as one closed list: what was seen, and what to do.

Records and JSON keep what was seen, as text. What to do about it is looked up by that text whenever it is
shown, so that records of older versions say it too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache

_FIELD = re.compile(r"\{(\w+)\}")
_MOST_VALUES = 3  # of a word that differs from row to row
_LONGEST = 2000  # no text of ours is longer, and records may hold anything


@dataclass(frozen=True)
class Remark:
    """Something to know about a whole experiment; `cases`: ids of those it concerns, none where all."""

    text: str  # in words
    cases: tuple[str, ...] = ()  # ids of the cases that it concerns


class Caution(Enum):
    """(what was seen, what to do about it). A field in braces is filled in when it is seen; one that is
    called `cure` says what to do by itself. Where two fit a text, the first one counts."""

    # Of one launch, written into its record.
    TURNS_UNSTEADY = (
        "took its turns before its steps were steady",
        "Ratios allow for it; for its own time, isolated=true warms each launch up for as long as it needs.",
    )
    LEAVES_WORK = (
        "work goes on behind the step: a step returns before all of it is done. What went on behind the last "
        "step is counted",
        "Wait for the work in the step (jax.block_until_ready, future.result(), thread.join()), or return "
        "its loss.",
    )
    GOES_ON = (
        "it has helpers that go on while it is stopped ({what}), so it was measured by itself: its ratios "
        "stand on launches that did not take turns",
        "Nothing to do; more launches make the ratio finer.",
    )
    ASLEEP = (
        "asleep for a fifth of its step time or more: a step of it waits instead of computing",
        "Look for a sleep, a lock or input and output in the step.",
    )
    REMEMBERS = (
        "a step on a batch that it had never seen took {new_ms} ms of CPU time, those that were timed "
        "{known_ms} ms: it may remember results of steps that come again",
        "Look for a cache of results in the step: without it, the time is another one.",
    )
    RESET_DIFFERS = (
        "after a reset the loss of step {step} is {loss}, in the first pass it was {first}: the reset does "
        "not lead back to the initial state",
        "Let `reset` restore all that the first step began with: parameters, states, position in the data.",
    )
    RESET_WORKS = (
        "its resets took {resets_ms} ms and its steps {steps_ms} ms: work in a reset is outside the clock",
        "Move work of the training from `reset` into the step.",
    )
    UNSAMPLED = (
        "the supervisor could not go on writing what it used: {why}",
        "Its curves end there, or are missing; give the results folder more room.",
    )
    WROTE_HOME = (
        "it wrote {total} bytes into its home folder, which every launch gets anew: {files}",
        "If that is a cache to be kept, name a folder for it under [environment].",
    )
    NOT_UNTRAINED = (
        "before its first step it was right on {percent} % of the test samples; untrained weights are on "
        "{most} % at most",
        "See what it loads: weights that have learned before, or other samples than those it was given.",
    )
    TWO_OPENMP = (
        "{count} OpenMP runtimes are loaded, {files}: each has its own threads and settings, and their "
        "threads wait for the same processors",
        "Let those that wait sleep (openmp.wait_policy=passive), or take a build on the other runtime.",
    )
    WIDE_POOL = (
        "{library} has {threads} threads ({getter}), and the contender may use {processors} of the "
        "processors: its pool was sized before the mask, or asked for",
        "Ask for fewer threads, or for more processors (affinity).",
    )
    OLD_KERNEL_TO_CHOOSE = (
        "kernel: {core} on an {cpu} CPU{where}; {cure} asks for newer ones",
        "",
    )
    OLD_KERNEL = (
        "kernel: {core} on an {cpu} CPU{where}",
        "Only a newer build of that library uses all that this CPU has.",
    )
    SLOWER_PATH = ("{layers}: {path}, which is not the fastest way that the library has: {cure}", "")
    # Of one row.
    CUDA_BUILD = (
        "{library} is a CUDA build, and this machine has no GPU: libraries for GPUs count in its memory",
        "Install its CPU build (a version that ends with +cpu) before comparing memory.",
    )
    LAUNCHES_MISSING = (
        "{count} of {asked} launches measured",
        "Read its interval, which is wider for it; more time or --resume brings the others.",
    )
    NO_STEADY_STATE = (
        "no steady state in half or more of the launches that can tell: its time changes, or its neighbors' "
        "does",
        "timetrial show says in which, and how; measure again on a quieter machine.",
    )
    MEMORY_GROWS = (
        "memory grows by {size} MB a step ({total} MB at step {step})",
        "Look for what is kept from step to step: losses with their graphs, outputs, an unbounded cache.",
    )
    SLOWS = (
        "a step becomes slower by {percent} % with each {steps} steps ({whole} % in all that were measured)",
        "Its time is that of so many steps only: look for what each step goes through again, and grows.",
    )
    WORK_CHANGES = (
        "from call {call} on a step takes {after} ms, before that {before} ms, in every launch: its work "
        "changes with the number of calls",
        "Compare its time only when each call does the same: look for input that ends, or a flag; a compiler "
        "that begins so late does this too.",
    )
    TWO_GROUPS = (
        "its launches form two groups, {apart} % apart: one number says little about either",
        "Look in timetrial show for what else differs between them, and take more launches.",
    )
    BURSTS = (
        "its step time is {percent} % above its median step: some steps stall, collect garbage, wait for "
        "data or do what others put off",
        "The step time and samples/s count all of that; timetrial show has the median step beside it.",
    )
    PUT_OFF = (
        "with the first steps of its turns a step takes {percent} % more. These find the caches of others "
        "and do not count; work may be put off to them",
        "Measure it without turns: isolated=true.",
    )
    BEYOND_PEAK = (
        "above the machine's f32 multiply-add peak, by nominal work: its algorithm does less than that work "
        "(Winograd, FFT; no steps behind the end of a sequence), it multiplies in a shorter type, or "
        "something ran while the peak was measured",
        "Do not read it as a share of what the machine can do.",
    )
    SUBNORMAL = (
        "subnormal numbers at the end of a launch in {tensors}: arithmetic on them is slower",
        "timetrial show says how many; flush_to_zero=on,off says what they cost.",
    )
    PAGE_FAULTS = (
        "launches differ in page faults, from {fewest} to {most} a step: the allocator gives memory back and "
        "takes it anew, or not, by accident",
        "Settle it with malloc=keep; where that is set already, with malloc.top_pad=200000000 beside "
        "malloc.trim_threshold=1000000000 malloc.mmap_max=0.",
    )
    SHARED_MEMORY = (
        "held {shared} MB of shared memory beside {held} MB of private memory: the column `memory` leaves it "
        "out",
        "Add it up before calling it leaner: --columns shared; what several processes share counts once.",
    )
    ADJUSTED = (
        "{name} asked {asked}, effective {effective}: adjusted",
        "Read the row as one with what is in force.",
    )
    UNVERIFIABLE = (
        "{name} asked {asked}, effective {effective}: unverifiable",
        "Do not conclude from this row what the setting does: nobody could see that it took effect.",
    )
    FLIPS = (
        "proven, though rounding turned single decisions (flips)",
        "Nothing to do: each was traced to rounding; timetrial show lists them.",
    )
    TIES = (
        "proven, though of equal values another one is taken (ties)",
        "Nothing to do: either is right; timetrial show lists where.",
    )
    REDUCED = (
        "computes in less than f32 (reduced), as its math mode allows: proven are activations to 2 % and "
        "gradients to a quarter, no more",
        "Its time is that of less exact work; measure its accuracy before using it.",
    )
    CHANCE = (
        "not deterministic: five steps, taken twice from the same weights, differ",
        "Judge its accuracy by several seeds, never by one launch.",
    )
    OTHER_ANSWERS = (
        "its answers to test images differ, beyond chance, from those of most of the {rows} rows that were "
        "proven to compute the same: its accuracy is its own",
        "Train it with more seeds (learning=every learning_seeds=) before calling it more or less accurate.",
    )
    # Of a whole run.
    ONE_LAUNCH = (
        "one launch per case: no interval, no way to tell a difference from chance",
        "Take several: launches=6.",
    )
    NO_NETWORK = ("no network is named: {network} is taken", "Name the one you mean: network=lenet5.")
    OTHER_DATASET = (
        "{dataset} is not ready here: {other} in its place",
        "timetrial datasets list says what brings it.",
    )
    HELD = ("{settings}, as tt.settings holds", "Ask for others by name where that is not meant.")
    NOT_CARRIED = ("{what} here, and not in contenders, which start afresh: {cure} carries it", "")
    OUT_OF_TIME = (
        "its time was over after {most} of {asked} launches each: more time tells more (budget)",
        "Give it a larger --budget, or none.",
    )
    OTHER_REFERENCE = (
        "the reference {name} is {why}. Ratios are against {other}, the first contender that is ok",
        "Mend that, or name another one: reference=NAME.",
    )
    OTHER_STEPS = (
        "not the same steps: {names} trains on and on, the others repeat their first steps",
        "A step of your own repeats them as well if it has an attribute `reset`.",
    )
    FLUSHES = (
        "subnormal numbers are not treated alike ({modes})",
        "Ask the same of all: flush_to_zero=on, or off.",
    )
    DISTURBED = (
        "{disturbed} of {timed} timed launches disturbed ({how}): kept, marked",
        "End what else runs here and measure again if intervals are too wide.",
    )
    FREQUENCY = (
        "the clock frequency was {lowest} to {highest} GHz at the ends of timed launches: some were slower "
        "for that",
        "Hold it (governor `performance`, no boost) or take more launches.",
    )
    TOO_WIDE = (
        "the {what} are known to ±{width} % (the median row), ±{asked} % was asked for: launches of a "
        "contender differ, or the machine does. More of them: {cure}",
        "",
    )
    IDLE_THREADS = (
        "{who} uses {cpus} CPUs and takes {times} times as long as with one: its threads may only wait, "
        "spinning",
        "timetrial doctor says what two threads do on this machine.",
    )
    RUNNING = ("still running: this is what has finished so far", "Show it again when it has ended.")
    UNFINISHED = ("unfinished: {cure}", "")
    BEGUN = ("{place} is the same, begun and not finished: {cure}", "")
    RESUMED_UNREAD = (
        "resumed; {error}",
        "Do not compare rows of before and after: the machine is not known.",
    )
    RESUMED = (
        "resumed {at} after {launches} launches{changed}",
        "If rows of before and after differ, race them.",
    )
    DAMAGED = (
        "damaged, and left out: {error}",
        "Take the folder from a copy, or measure again.",
    )
    # Of a profile.
    LAYERS_DISTURBED = (
        "the layers' medians add up to {percent} % of the median profiled step: single layers were disturbed",
        "Measure again on a quiet machine.",
    )
    # Of a race.
    ALTERNATE = (
        "whole launches in alternation, as asked",
        "Without --isolated they take turns, which show smaller differences.",
    )
    ALTERNATE_FOR_MEMORY = (
        "whole launches in alternation: {why}",
        "With more memory, or a smaller batch_size, they take turns, which show smaller differences.",
    )
    ALTERNATE_FOR_HELPERS = (
        "each side is measured by itself, in alternation: {why}",
        "Nothing to do: taking turns would give it work that was done while others ran.",
    )
    RACE_OUT_OF_TIME = ("its time was over after {pairs}: by their scatter {cure}", "")
    RACE_UNDECIDED = ("{pairs} do not decide it: by their scatter {cure}", "")
    AGAINST_ITSELF = (
        "a case against itself (A/A): any difference that is found here is the instrument's",
        "timetrial self-check counts how often that happens on this machine.",
    )
    NOT_REPEATED = (
        "a first race found {first} %, an independent second one {second}",
        "Race again on a quieter machine: one of the two was chance, or the machine changed in between.",
    )
    CONFIRMED = ("confirmed by an independent second race", "Nothing to do.")
    RACED_ONCE = ("not raced a second time, so not confirmed", "Race with --confirm before acting on it.")
    SKEWED = (
        "{effect} % {gate}, {others}: some steps take much longer than others",
        "Look at every turn: race.rounds().",
    )
    TWO_KINDS = (
        "its launches are of two kinds, {apart} % apart",
        "Look in timetrial show for what else differs between them, and race more pairs.",
    )
    TICKS = (
        "ties: the clock has ticks of {ticks} ns, and medians see no difference within one",
        "Put more work into a step, or several of them into one.",
    )
    VOID = ("{pairs} void: {why}", "It counts for nothing; if many are, mend what made them fail.")

    @property
    def seen(self) -> str:
        """What was seen, with fields."""
        return str(self.value[0])

    @property
    def advice(self) -> str:
        """What to do about it; empty where the words say it."""
        return str(self.value[1])

    def words(self, **fields: object) -> str:
        """What was seen here."""
        return self.seen.format(**fields)

    def fields_of(self, text: str) -> dict[str, str] | None:
        """Of words() that it has said; None: it has not."""
        found = _pattern(self).fullmatch(text)
        return None if found is None else found.groupdict()


@cache
def _pattern(caution: Caution) -> re.Pattern[str]:
    pieces = _FIELD.split(caution.seen)
    names = [f"(?P<{piece}>.*?)" if place % 2 else re.escape(piece) for place, piece in enumerate(pieces)]
    return re.compile("".join(names), re.DOTALL)


@cache
def caution_of(text: str) -> Caution | None:
    """Which one has said this; None: words of a version that had others."""
    if len(text) > _LONGEST:
        return None
    return next((one for one in Caution if one.fields_of(text) is not None), None)


def advice_for(text: str) -> str:
    """What to do about it; empty: the words say it, or nobody knows them any more."""
    caution = caution_of(text)
    return caution.advice if caution else ""


def advised(text: str) -> str:
    """What was seen, and what to do about it, as sentences."""
    return sentences(text, advice_for(text))


def sentences(text: str, advice: str) -> str:
    """Both, one behind the other."""
    return f"{text}{'' if text.endswith(('.', '!', '?', '`')) else '.'} {advice}" if advice else text


def together(texts: Sequence[str]) -> str:
    """One text for what one caution has said in several: numbers as 'a to b', words side by side."""
    distinct = list(dict.fromkeys(texts))
    caution = caution_of(distinct[0])
    if len(distinct) == 1 or caution is None:
        return distinct[0]
    fields = [caution.fields_of(text) or {} for text in distinct]
    return caution.words(**{name: _merged(one[name] for one in fields) for name in fields[0]})


def _merged(values: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(values))
    if len(distinct) == 1:
        return distinct[0]
    try:
        ordered = sorted(distinct, key=float)
    except ValueError:
        more = len(distinct) - _MOST_VALUES
        return " / ".join(distinct[:_MOST_VALUES]) + (f" and {more} more" if more > 0 else "")
    return f"{ordered[0]} to {ordered[-1]}"
