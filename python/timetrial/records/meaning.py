"""What the fields of the JSON of `run` and `race` are, and the outcomes, in words that the reference prints.

A field has a dotted path; `[]` goes into a list. A field that an exported table has too (exports/columns.py)
is not repeated here. {estimate, low, high} of a number with its 95 % interval count as one field.
"""

from __future__ import annotations

from timetrial.records.metric import RACED
from timetrial.records.model import Outcome

OUTCOME_WORDS: dict[Outcome, str] = {
    "ok": "it ran to its end",
    "mismatch": "a setting was shown not to take effect: the row gets no time",
    "wrong": "the proof failed: it does not compute this network",
    "nan": "a loss was no number",
    "oom": "it asked for more memory than there is",
    "crash": "it ended before it should, by an exception, a signal or a word that nobody asked for",
    "hang": "no step ended in time; only time in which it could run counts",
    "capped": "it reached a limit that was set: of memory, of processes and threads, or of open files",
    "unavailable": "not installed here, or it lacks a layer, a task or a setting; the reason names the cure",
    "damaged": "its files are not those that were written; said by whoever reads them",
}

# Of a step, of all threads and processes of the contender; the unit is in the name where it is no number of
# events.
COUNTER_WORDS = {
    "instructions": "instructions in user mode",
    "cycles": "clock cycles in user mode",
    "cache_misses": "reads and writes that the last cache did not have",
    "branch_misses": "branches that were predicted wrongly",
    "tlb_misses": "reads whose page the first data TLB did not have",
    "task_clock_ns": "nanoseconds on a processor",
    "page_faults": "page faults in user mode",
    "context_switches": "how often a thread left its processor",
    "migrations": "how often a thread went on on another processor",
    "package_energy_j": "joules of all processor packages, whoever ran on them",
    "memory_energy_j": "joules of the memory behind them",
}

_SETTINGS = {
    "settings[].name": "of a setting that was asked, or that the contender told of itself",
    "settings[].asked": "the word that was asked; null: nobody asked",
    "settings[].effective": "what is in force; null: nothing tells",
    "settings[].how_read": "who says so: the library's own getter, the kernel, the environment",
    "settings[].status": "`applied`, `adjusted`, `ignored` (a `mismatch`), `unverifiable` or `unsupported`",
}

_CASE = {
    "id": "id of the case: 12 hex digits of its content; -2, -3 for repetitions",
    "axes": "what tells the rows apart: key -> value as asked",
    "outcomes": "outcome -> how many launches of the case ended so",
    "launches.asked": "speed launches asked",
    "launches.ok": "speed launches that are ok",
    "median_step_ns": "the median step of the same time as `step_time_ns`, which bursts do not move",
    "alike": "letters: rows of the same work that share one cannot be told apart; null: too few rows",
    "interval.method": "of the interval of `ratio`, or else of `step_time_ns`, in a word",
    "interval.launches": "on how many launches it stands",
    "interval.degrees_of_freedom": "of it; null: there is none",
    "interval.borrowed": "of these, from the scatter of other rows",
    "samples_per_s_interval.low": "lower end of the 95 % interval of samples_per_s",
    "samples_per_s_interval.high": "upper end of the 95 % interval of samples_per_s",
    "accuracy_interval.low": "lower end of the 95 % interval of accuracy",
    "accuracy_interval.high": "upper end of the 95 % interval of accuracy",
    "accuracy_interval.seeds": "seeds it stands on",
    "accuracy_interval.rows": "rows that are proven to compute the same and share the figure",
    "accuracy_from": "id of the case that learned for it; null: it learned itself, or nobody did",
    "accuracy_own": "accuracy of the row alone",
    "accuracy_against_reference": "null: one of both did not learn",
    "accuracy_against_reference.only_first": "test images that this row alone had right in more seeds",
    "accuracy_against_reference.only_second": "test images that the reference alone had right in more seeds",
    "accuracy_against_reference.p_value": "of the exact sign test (McNemar), or over seeds: the larger",
    "parity.status": "what the proof said: `passed`, `failed`, `unproven`",
    "parity.max_error": "the largest error, relative; null: unproven",
    "parity.tensor": "where it is",
    "proof_from": "id of the case that was proven for it; null: it was proven itself, or nobody was",
    "proof_kept_from": "id of the earlier run whose proof it is; null: it was proven in this one, or not",
    **_SETTINGS,
    "facts": "what the contender says of what it built: versions of libraries, kernels; `<layer> forward`: "
    "which way it goes through a layer, `<layer> faster`: how to get a faster one of the library",
    "steps.n": "how many steps count",
    "steps.n_effective": "what they are worth as independent ones",
    "warnings[]": "why it is not ok, then what a reader must know",
    "records[]": "folders of its launches",
}

RUN_FIELDS = {
    "schema_version": "of the records; it rises when a field changes its meaning",
    "experiment": "name of the experiment",
    "cases": "one entry per row of the table, in its order",
    **{f"cases[].{path}": words for path, words in _CASE.items()},
}

_DUEL = {
    "verdict": "`better`, `worse`, `same` or `inconclusive`; null: it could not be judged",
    "reason": "why there is none, or why it is unsure, in words",
    "base": "the side that others are compared with",
    "challenger": "the side that is compared",
    "pairs": "on which the verdict stands",
    "void": "pairs in which a side failed",
    "p_value": "two-sided, that there is no effect",
    "effect": "the metric, challenger over base, minus 1; null: not judged",
    "minimal_detectable_effect": "a fraction: what so many pairs find in 9 of 10 races",
    "confirmed": "whether an independent second race said the same; null: none was asked for or needed",
    "log_ratios[]": "ln(challenger / base) of each pair that the verdict stands on",
    "other_statistics": "what median and lower quartile of turns say, as effects",
    "settings[]": "effective settings that differ between the sides, in words",
}

# With more than two sides the fields of a duel are in `races`, one entry for each challenger.
RACE_FIELDS = {
    "schema_version": RUN_FIELDS["schema_version"],
    "metric": f"what was raced: {', '.join(f'`{name}`' for name in RACED)}",
    "seconds": "from the first proof to the verdict; null: it was ended before",
    "isolated": "whether whole launches took turns in place of steps",
    "origins": "only against a revision: side -> file that its step was imported from, commit, changes",
    "levels": "side -> its metric; a challenger's is the base's times the ratio of the verdict",
    "records": "the folder of the race",
    "again": "the command that races once more",
    **_DUEL,
    **{f"races[].{path}": words for path, words in _DUEL.items()},
}
