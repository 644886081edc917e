"""What a contender may say: a model for each event of PROTOCOL.md. Nothing else gets past `read_event`.

A contender that breaks the protocol ends its own launch, as `crash: protocol: ...`, and nothing more.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Annotated, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from timetrial.processes.outcome import LaunchError
from timetrial.records.model import Direction

LONGEST_TEXT = 20_000  # of a failure: a compiler's own words can be a book
SHOWN = 160  # characters of a bad event, in the words about it


def _cut(text: object) -> object:
    if isinstance(text, str) and len(text) > LONGEST_TEXT:
        half = LONGEST_TEXT // 2 - 10
        return f"{text[:half]} [...] {text[-half:]}"
    return text


Natural = Annotated[int, Field(ge=0, lt=2**63)]
Word = Annotated[str, Field(max_length=1_000, pattern=r"^[^\x00-\x1f]*$")]
Words = Annotated[str, Field(max_length=LONGEST_TEXT, pattern=r"^[^\x00]*$")]
Longer = Annotated[Words, BeforeValidator(_cut)]
Few = Field(max_length=1_000)  # of what a list has by nature a few


class Said(BaseModel):
    """Types are taken literally ("2" is no number), and unknown fields are a typo of the contender's."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


AnswerType = TypeVar("AnswerType", bound=Said)


class SaidPhase(Said):
    """The end of a part of the start, on CLOCK_MONOTONIC."""

    name: Literal["start", "import", "build"]
    ns: Natural
    rss_bytes: Natural | None = None
    mapped_bytes: Natural | None = None


class Reading(Said):
    """The value of a setting that is in force, None where nothing tells, and how it was found out."""

    effective: Words | None = None
    how_read: Words | None = ""


class LoadedLibrary(Said):
    """A BLAS or OpenMP library of the contender's process (timetrial/libraries.h)."""

    path: Words
    kind: Word | None = None
    vendor: Word | None = None
    version: Words | None = None
    kernel: Word | None = None
    kernel_getter: Word | None = None
    threads: Natural | None = None
    threads_getter: Word | None = None


class Description(Said):
    """The backend, in its own words."""

    name: Word
    version: Word = ""
    library: Words = ""
    isa: Word = ""
    flags: Annotated[tuple[Word, ...], Few] = ()
    parts: Annotated[tuple[Word, ...], Few] = ()
    samples: Natural | None = None
    period: Annotated[int, Field(ge=1, le=100_000)] | None = None


class Ready(Said):
    """Built, and what is in force."""

    event: Literal["ready"]
    phases: Annotated[tuple[SaidPhase, ...], Few]
    settings: Annotated[dict[Word, Reading], Few] = {}
    facts: Annotated[dict[Word, Words], Few] = {}
    libraries: Annotated[tuple[LoadedLibrary, ...], Few] = ()
    backend: Description


class Failed(Said):
    """It gives up; may come instead of any other."""

    event: Literal["failed"]
    outcome: Literal["unavailable", "crash", "oom", "mismatch"]
    where: Word | None = None
    text: Longer | None = None


class Finished(Said):
    """The answer to `finish`."""

    event: Literal["finished"]


class Done(Said):
    """The answer to a command that has nothing to tell."""

    event: Literal["done"]
    command: Word


class SegmentDone(Done):
    """The answer to `run` and `parts`."""

    steps: Natural
    stamps: Natural
    window: Natural
    window_bytes: Natural = 0
    cpu_ns: Natural | None = None
    rss_bytes: Natural | None = None
    mapped_bytes: Natural | None = None
    sequence_steps: Natural | None = None


class GradientDone(Done):
    """None: the loss is not finite, which JSON cannot say."""

    loss: float | None


class EvaluateDone(Done):
    """Of the whole test stream."""

    accuracy: float | None
    loss: float | None
    samples: Natural


class LayerTime(Said):
    """Of one layer and direction, nanoseconds per step."""

    node: Word
    direction: Direction
    ns: tuple[Natural, ...]


class ProfileDone(Done):
    """One entry per step in each of `layers`."""

    steps: Natural
    layers: Annotated[tuple[LayerTime, ...], Field(max_length=100_000)]


class DumpDone(Done):
    """The names of the tensors."""

    tensors: Annotated[tuple[Word, ...], Field(max_length=100_000)]


_KIND = TypeAdapter(dict[str, object])


class Ask(Protocol):
    """Sends a command and waits for its answer."""

    def __call__(self, command: str, answer: type[AnswerType]) -> AnswerType:
        """Raises LaunchError if none comes."""


@dataclass(frozen=True)
class Asked(Generic[AnswerType]):
    """A command under way, and the event that answers it."""

    verb: str
    answer: type[AnswerType]


def read_event(line: bytes, asked: Asked[AnswerType] | None) -> AnswerType | Failed:
    """The answer to what was asked, or Failed. None: nothing was asked; it may still fail.

    Raises LaunchError for anything else.
    """
    try:
        answer = _answer(line, asked)
    except ValidationError as error:
        # Their order is not always the same. That it is another event says most, and what is wrong or missing
        # more than what is there besides.
        first = min(error.errors(include_url=False), key=_rank)
        place = ".".join(str(part) for part in first["loc"])
        what = f"'{place}': {first['msg']}" if place else first["msg"]
        about = f"its answer to '{asked.verb}' cannot be one" if asked else "its event cannot be one"
        raise broken(f"{about}: {what}: {shown(line)}") from None
    if asked and isinstance(answer, Done) and asked.verb != answer.command:
        raise broken(f"it was asked to '{asked.verb}' and answered a '{answer.command}'")
    return answer


def _rank(error: ErrorDetails) -> tuple[bool, bool, str]:
    return error["loc"] != ("event",), error["type"] == "extra_forbidden", str(error["loc"])


def _answer(line: bytes, asked: Asked[AnswerType] | None) -> AnswerType | Failed:
    if asked is not None:
        with contextlib.suppress(ValidationError):  # nearly always it is what was asked for
            return asked.answer.model_validate_json(line)
    if _KIND.validate_json(line).get("event") == "failed":
        return Failed.model_validate_json(line)
    if asked is None:
        raise broken(f"it said what nobody asked for: {shown(line)}")
    return asked.answer.model_validate_json(line)


def broken(words: str) -> LaunchError:
    """The contender does not keep to PROTOCOL.md."""
    return LaunchError("crash", f"protocol: {words}")


def shown(line: bytes) -> str:
    """The beginning of what a contender said, fit to be printed."""
    text = line[:SHOWN].decode("utf-8", "backslashreplace")
    return repr(text) + (f" and {len(line) - SHOWN} bytes more" if len(line) > SHOWN else "")
