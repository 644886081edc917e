"""The columns of exported tables, in words. records/SCHEMA.md says how each number is computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from timetrial.analysis.step_times import PERCENTILES

Kind = Literal["text", "number", "integer", "yes or no"]


@dataclass(frozen=True)
class Column:
    """One column, the same in each of `tables`. `measured`: a finding, which only what is ok has."""

    tables: tuple[str, ...]
    name: str
    kind: Kind
    unit: str
    meaning: str
    null_when: str
    measured: bool = False


def _text(tables: str, name: str, meaning: str, null_when: str = "never") -> Column:
    return Column(tuple(tables.split()), name, "text", "", meaning, null_when)


def _fact(
    tables: str, name: str, kind: Kind, meaning: str, null_when: str = "never", unit: str = ""
) -> Column:
    return Column(tuple(tables.split()), name, kind, unit, meaning, null_when)


def _found(tables: str, name: str, unit: str, meaning: str, null_when: str, kind: Kind = "number") -> Column:
    return Column(
        tuple(tables.split()),
        name,
        kind,
        unit,
        meaning,
        "; ".join(filter(None, ["not ok", null_when])),
        measured=True,
    )


def _interval(tables: str, name: str, unit: str, meaning: str, null_when: str, no_ends: str) -> list[Column]:
    """An estimate and the ends of its 95 % interval."""
    ends = f"{name} is null; {no_ends}"
    return [
        _found(tables, name, unit, meaning, null_when),
        _found(tables, f"{name}_low", unit, f"lower end of the 95 % interval of {name}", ends),
        _found(tables, f"{name}_high", unit, f"upper end of the 95 % interval of {name}", ends),
    ]


_BOTH = "cases launches"
_ALL = "cases launches steps samples"
_RAN = "launches steps samples"
_NO_STEPS = "it has no steady steps"
_ONE_LAUNCH = "there is one launch only"
_NO_CACHE = "it has no proof launch, or nothing was compiled"
_OLDER = "the kernel does not tell, or the record is older"

CASES_AND_LAUNCHES = [
    _text(_RAN, "launch", "name of the launch's folder; of a proof, the id of its case"),
    _text(_ALL, "case", "id of the case: 12 hex digits of its content; -2, -3 for repetitions"),
    _text(_ALL, "backend", "who computes"),
    _text(_ALL, "network", "what is trained; none: a step of the user's own without a network"),
    _fact(_ALL, "threads", "integer", "threads asked", "not asked"),
    _text(_ALL, "task", "train, gradient or forward"),
    _text(_ALL, "device", "where it computes"),
    _text(_ALL, "dtype", "type of the numbers"),
    _text(_ALL, "semantics", "equal: all contenders do the same arithmetic"),
    _text(_RAN, "purpose", "proof, speed, learning, profile, resources or race"),
    _fact(_RAN, "block", "integer", "ratios pair launches of a block"),
    _fact("launches", "position", "integer", "place in its block, in a shuffled order"),
    _fact(_RAN, "seed", "integer", "of weights and data order"),
    _text("cases", "reference", "case it is compared with; itself: it is a reference", "there is none"),
    _text(
        _ALL,
        "outcome",
        "ok, or what failed: mismatch, wrong, nan, oom, crash, hang, capped, unavailable, damaged; "
        "in steps and samples, of their launch",
        "no launch of the case finished",
    ),
    _text(_BOTH, "reason", "why it is not ok, in words", "ok, or nothing is to be said"),
    _fact(
        _ALL,
        "proven",
        "yes or no",
        "whether the case was shown to compute what it should; no: its times are of work nobody checked",
    ),
    _text("cases", "parity", "what the proof said: passed, failed, unproven"),
    _text(
        _BOTH,
        "stop_reason",
        "why measuring ended: converged, budget, no_steady_state, max_steps, epochs, time, rounds",
        "it did not get that far",
    ),
    _fact("cases", "launches_asked", "integer", "speed launches asked"),
    _fact("cases", "launches_ok", "integer", "speed launches that are ok"),
    _fact("launches", "heat", "integer", "number of the heat in which it took turns", "it was alone"),
    _fact("launches", "turns", "integer", "turns it took; 0: it was alone"),
    _fact("launches", "turns_disturbed", "integer", "of them, those that others disturbed"),
    _fact("launches", "disturbed", "yes or no", "whether other programs or a limit disturbed it"),
    _text("launches", "compile_cache", "cold, warm or none: what is compiled or chosen", "older records"),
    _fact("launches", "duration_s", "number", "of the whole launch", unit="s"),
    _text("launches", "started_at", "ISO 8601, UTC"),
    *_interval("cases", "step_time_ns", "ns", "all time of the steady part over its steps, over launches",
               _NO_STEPS, _ONE_LAUNCH),
    _found("launches", "step_time_ns", "ns", "all time of the steady part over its steps; in a heat, of the "
           "rounds that were quiet for the others", _NO_STEPS),
    *_interval(_BOTH, "median_step_ns", "ns", "median step of the same time; of a case, over launches",
               _NO_STEPS, "there is one launch only, or the launch was in a heat"),
    *_interval("cases", "ratio", "1", "step time over that of the reference; below 1 is faster",
               "it is a reference, or there is none", _ONE_LAUNCH),
    _found("cases", "samples_per_s", "1/s", "samples of a step over its step time",
           "samples are not known"),
    *_interval("cases", "useful_steps_per_s", "1/s", "steps of sequences that count, over the step time",
               "the network reads no lengths", _ONE_LAUNCH),
    _found("cases", "useful_steps", "steps", "of the sequences of a batch, those that count, on average",
           "the network reads no lengths"),
    _found("cases", "computed_steps", "steps", "of a batch, those that a layer along time computed, useful "
           "or not", "the network reads no lengths, or its contender does not say which way it goes"),
    _found("cases", "padded_steps", "steps", "of a batch, were every sequence as long as the longest can be",
           "the network reads no lengths"),
    _found("cases", "mean_over_median", "1", "step time over the median step", _NO_STEPS),
    _found("cases", "percent_of_peak", "%", "nominal work over the measured f32 peak at its threads",
           "not proven, or no peak was measured"),
    *_interval("cases", "mean_ns", "ns", "mean steady step, over launches", _NO_STEPS, _ONE_LAUNCH),
    _found("launches", "mean_ns", "ns", "mean of the steps that count", _NO_STEPS),
    *[
        column
        for percent in PERCENTILES
        for column in _interval(
            "cases", f"p{percent}_ns", "ns", f"percentile {percent} of steady steps, over launches",
            "some launch has too few steps to carry it", _ONE_LAUNCH,
        )
    ],
    *[
        _found("launches", f"p{percent}_ns", "ns", f"percentile {percent} of the steps that count",
               "there are too few steps to carry it")
        for percent in PERCENTILES
    ],
    _found(_BOTH, "spread_within", "1", "standard deviation over mean of the steps of a launch", _NO_STEPS),
    _found(_BOTH, "spread_within_robust", "1", "the same from the median absolute deviation", _NO_STEPS),
    _found(_BOTH, "outliers_mild", "steps", "more than 1.5 interquartile ranges outside the quartiles; "
           "they are counted and stay", _NO_STEPS, "integer"),
    _found(_BOTH, "outliers_severe", "steps", "the same of 3 interquartile ranges", _NO_STEPS, "integer"),
    _found("cases", "spread_between", "1", "standard deviation of the logarithms of its launches' step times",
           _ONE_LAUNCH),
    _found("cases", "levels_apart", "1", "distance of two groups of launches with nothing between",
           "there are no two groups"),
    _found(_BOTH, "steps", "steps", "how many count", "", "integer"),
    _found(_BOTH, "steps_effective", "steps", "what they are worth as independent ones", _NO_STEPS),
    Column(("cases", "launches"), "steady", "text", "", "flat, warm-up, slowdown, drifting, no steady state; "
           "of a case also inconsistent", "not ok; too few steps to tell, or too noisy", measured=True),
    _found(_BOTH, "import_s", "s", "importing the framework", "it has no such phase"),
    _found(_BOTH, "build_s", "s", "building the network", "it has no such phase"),
    _found(_BOTH, "first_step_s", "s", "the first step", "it made none"),
    _found(_BOTH, "to_steady_s", "s", "from the first step to the first that counts", "no steady state"),
    _found(_BOTH, "before_steady_s", "s", "from the start of the process to the first step that counts",
           "no steady state"),
    _found("launches", "resets_s", "s", "resets to the initial state before the steady part; in no step",
           "no steady state, or not a timed launch"),
    _found("cases", "cold_build_s", "s", "building with nothing compiled before", _NO_CACHE),
    _found("cases", "cold_first_step_s", "s", "the first step with nothing compiled before", _NO_CACHE),
    _found("launches", "after_import_bytes", "bytes", "resident after import", _OLDER, "integer"),
    _found("launches", "after_build_bytes", "bytes", "resident after building", _OLDER, "integer"),
    _found("launches", "after_first_step_bytes", "bytes", "resident after the first step", _OLDER, "integer"),
    _found(_BOTH, "peak_memory_bytes", "bytes", "most private memory held while steady, in older records "
           "with what is shared or mapped", _OLDER, "integer"),
    _found(_BOTH, "resident_peak_bytes", "bytes", "the same with pages of mapped files and shared memory",
           _OLDER, "integer"),
    _found("cases", "on_paper_bytes", "bytes", "weights, gradients, states and activations: the least that "
           "a step needs", "nobody can say, or an older record", "integer"),
    _found(_BOTH, "cpus_used", "CPUs", "CPU time over wall time while steady", _OLDER),
    _found(_BOTH, "accuracy", "1", "of the last evaluation, on test images, 0 to 1", "it did not learn"),
    _found("cases", "accuracy_low", "1", "lower end of the 95 % interval of accuracy", "accuracy is null"),
    _found("cases", "accuracy_high", "1", "upper end of the 95 % interval of accuracy", "accuracy is null"),
]  # fmt: skip

STEPS = [
    _fact("steps", "step", "integer", "number of the step in its launch, from 0"),
    _text("steps", "kind", "of its segment: first, warmup, steady, train, detailed, turn, judged"),
    _fact("steps", "segment", "integer", "number of its segment in the launch, from 0"),
    _fact("steps", "first_in_segment", "yes or no", "whether it is the first of its segment"),
    _fact("steps", "first_in_pass", "yes or no", "whether it is the first behind a reset"),
    _fact("steps", "counts", "yes or no", "whether the step time comes from it"),
    _fact("steps", "duration_ns", "integer", "of the step, as stamped, whatever the outcome", unit="ns"),
    _fact("steps", "end_ns", "integer", "its end, on CLOCK_MONOTONIC", unit="ns"),
    _fact("steps", "loss", "number", "of the step", "the step gave none, or it is no number"),
]

SAMPLES = [
    _fact("samples", "time_ns", "integer", "of the look, on CLOCK_MONOTONIC", unit="ns"),
    _fact(
        "samples", "cpu_ns", "integer", "CPU time so far, of threads and processes that ended too", unit="ns"
    ),
    _fact(
        "samples",
        "wait_ns",
        "integer",
        "its threads ready while others had the processors, so far",
        unit="ns",
    ),
    _fact("samples", "slices", "integer", "how often a thread was put on a processor, so far"),
    _fact("samples", "threads_alive", "integer", "threads of all its processes"),
    _fact("samples", "processes_alive", "integer", "its processes"),
    _fact(
        "samples", "anonymous_bytes", "integer", "private memory, in every process that has it", unit="bytes"
    ),
    _fact("samples", "shared_bytes", "integer", "shared memory, of the process that has most", unit="bytes"),
    _fact(
        "samples",
        "file_bytes",
        "integer",
        "pages of mapped files, of the process that has most",
        unit="bytes",
    ),
    _fact("samples", "peak_bytes", "integer", "most that was resident so far, by the kernel", unit="bytes"),
    _fact("samples", "minor_faults", "integer", "page faults without reading, so far"),
    _fact("samples", "major_faults", "integer", "page faults that had to read, so far"),
    _fact("samples", "read_bytes", "integer", "through system calls so far, from caches too", unit="bytes"),
    _fact("samples", "written_bytes", "integer", "through system calls so far", unit="bytes"),
    _fact("samples", "own_cpu_ns", "integer", "CPU time of the supervisor, who looks", unit="ns"),
]

RACES = [
    _fact("pairs rounds", "pair", "integer", "number of the pair, from 0"),
    _text("pairs rounds", "stage", "judge, or confirm for the second race of a verdict"),
    _text("pairs", "base", "the side that others are compared with"),
    _text("pairs", "challenger", "the side that is compared"),
    _fact("pairs", "ratio", "number", "the metric, challenger over base: what the verdict stands on",
          "the pair is void", "1"),
    _fact("pairs", "ratio_median", "number", "the same from median steps", "void, or memory was raced", "1"),
    _fact("pairs", "ratio_p25", "number", "the same from lower quartiles of steps",
          "void, or memory was raced", "1"),
    _text("pairs", "void", "why the pair does not count", "it counts"),
    _fact("pairs", "seconds", "number", "from its first start to its last turn", "an older record", "s"),
    _fact("pairs", "turns_s", "number", "of these, its rounds", "older, or sides were alone", "s"),
    _fact("rounds", "round", "integer", "number of the turn in its pair, from 0"),
    _text("rounds", "side", "whose turn it was"),
    _fact("rounds", "steps", "integer", "steps of the turn that count"),
    _fact("rounds", "step_time_ns", "number", "time per step of the turn", unit="ns"),
    _fact("rounds", "disturbed", "yes or no", "whether others took the processors meanwhile"),
    _fact("pairs rounds", "proven", "yes or no",
          "whether the side was shown to compute what it should; of a pair, whether both were"),
]  # fmt: skip

COLUMNS = [*CASES_AND_LAUNCHES, *STEPS, *SAMPLES, *RACES]
