"""Whatever a contender says, its launch ends with an outcome that names it, and nothing else ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from launching import words
from liars import liar_plan

from timetrial.launch import run_launch
from timetrial.processes.events import (
    LONGEST_TEXT,
    Asked,
    Done,
    EvaluateDone,
    Failed,
    GradientDone,
    ProfileDone,
    read_event,
)
from timetrial.processes.outcome import LaunchError
from timetrial.records.model import LaunchRecord

# What is executed in place of an answer; what the reason must say.
LIES_AT_START = [
    ("del event['event']; say(event)", "its answer to 'start' cannot be one: 'event': Field required"),
    ("event['event'] = 'done'; say(event)", "'event'"),
    ("event['event'] = 7; say(event)", "'event'"),
    ("del event['phases']; say(event)", "'phases': Field required"),
    ("event['phases'] = {}; say(event)", "'phases'"),
    ("event['phases'] = []; say(event)", "its phases ended: none; expected start, import, build"),
    ("event['phases'].reverse(); say(event)", "its phases ended: build at"),
    ("event['phases'][1]['ns'] = 5; say(event)", "import at 5"),
    ("event['phases'][2]['ns'] *= 2; say(event)", "its phases ended"),
    ("event['phases'][0]['ns'] = '12'; say(event)", "'phases.0.ns'"),
    ("event['phases'][0]['ns'] = -1; say(event)", "'phases.0.ns'"),
    ("event['phases'][0]['ns'] = 0.5; say(event)", "'phases.0.ns'"),
    ("event['phases'][0]['ns'] = 10**30; say(event)", "'phases.0.ns'"),
    ("event['phases'][0]['rss_bytes'] = True; say(event)", "'phases.0.rss_bytes'"),
    ("event['settings'] = ['threads']; say(event)", "'settings'"),
    ("event['settings'] = {'threads': 2}; say(event)", "'settings.threads'"),
    ("event['settings'] = {'threads': {'effective': 2}}; say(event)", "'settings.threads.effective'"),
    ("event['facts'] = {'a': {'b': 1}}; say(event)", "'facts.a'"),
    ("event['facts'] = {str(n): '' for n in range(2000)}; say(event)", "'facts'"),
    ("event['facts'] = {'a': 'x' * 50_000}; say(event)", "'facts.a'"),
    ("event['facts'] = {'a': chr(0)}; say(event)", "'facts.a'"),
    ("event['libraries'] = [{'kind': 'blas'}]; say(event)", "'libraries.0.path': Field required"),
    ("event['libraries'] = 'none'; say(event)", "'libraries'"),
    ("del event['backend']; say(event)", "'backend': Field required"),
    ("event['backend'] = 'eigen'; say(event)", "'backend'"),
    ("event['backend']['flags'] = 'unprovable'; say(event)", "'backend.flags'"),
    ("event['backend']['samples'] = -4; say(event)", "'backend.samples'"),
    ("event['more'] = 1; say(event)", "'more': Extra inputs are not permitted"),
    ("say(event); say(event)", "protocol: "),
    ("write(b'7\\n')", "its answer to 'start' cannot be one"),
    ("write(b'null\\n')", "its answer to 'start' cannot be one"),
    ("write(b'\\n')", "Invalid JSON"),
    ("write(b'[' * 100_000 + b'\\n')", "recursion limit"),
    ("write(b'{\"event\": ' + b'9' * 5_000 + b'}\\n')", "number out of range"),
    ("write(b'{\"event\": \"ready\", \"x\": \"\\xff\\xfe\"}\\n')", "Invalid JSON"),
    ("write(b'{\"event\": \"ready\\x00\"}\\n')", "Invalid JSON"),
    ("say({'event': 'finished'})", "'event'"),
    ("os.close(4); time.sleep(60)", "closed its event pipe"),
    ("time.sleep(60)", "start_timeout_s"),
]  # fmt: skip
LIES_IN_A_SEGMENT = [
    ("del event['steps']; say(event)", "'steps': Field required"),
    ("event['steps'] = '22'; say(event)", "'steps'"),
    ("event['steps'] = -1; say(event)", "'steps'"),
    ("event['steps'] += 1; say(event)", "and stamped"),
    ("event['steps'] = 0; say(event)", "says 0, and stamped"),
    ("event['stamps'] = 0; say(event)", "it says 0 stamps"),
    ("event['stamps'] += 1; say(event)", "stamps, the recorder has"),
    ("event['stamps'] = 2**62; say(event)", "stamps, the recorder has"),
    ("event['window'] = 1 - event['window']; say(event)", "it was given the window"),
    ("event['window'] = 10**9; say(event)", "it was given the window"),
    ("event['window_bytes'] = 2**40; say(event)", "1099511627776 bytes"),
    ("event['cpu_ns'] = -5; say(event)", "'cpu_ns'"),
    ("event['cpu_ns'] = float('nan'); say(event)", "'cpu_ns'"),
    ("event['command'] = 'parts'; say(event)", "it was asked to 'run' and answered a 'parts'"),
    ("event['event'] = 'ready'; say(event)", "'event'"),
    ("event['loss'] = 1.0; say(event)", "'loss': Extra inputs are not permitted"),
    ("say(event); say(event); say(event); say(event)", "protocol:"),
    ("say(event); write(b'x\\n')", "protocol:"),
    ("write(b'{\"event\": \"done\"}\\n' * 200_000)", "protocol:"),
    ("[write(b'y' * 65536) for _ in range(1_000)]; time.sleep(60)", "protocol: it wrote 16 MiB"),
    ("write(b'{\"event\": '); time.sleep(60)", "no progress for 2 s"),
    ("write(b'{\"event\": '); os._exit(0)", "exit code 0"),
    ("write(b'\\n\\n\\n')", "Invalid JSON"),
    ("say({'event': 'failed', 'outcome': 'bored'})", "'outcome'"),
    ("say({'event': 'failed'})", "'outcome': Field required"),
    ("say({'event': 'failed', 'outcome': 'crash', 'text': 5})", "'text'"),
    ("say({'event': 'failed', 'outcome': 'crash', 'text': 'x' * 10**6})", " [...] "),
    ("say({'event': 'finished'})", "'event'"),
    ("os.ftruncate(RECORDER_FD, 0)", "exit code 1"),
    ("os.ftruncate(RECORDER_FD, 10**9)", "exit code 1"),
    ("os.pwrite(RECORDER_FD, bytes(4096), 0); say(event)", "protocol: the recorder's file is damaged"),
    ("os.pwrite(RECORDER_FD, bytes([255]) * 64, 0); say(event)", "protocol: the recorder's file is damaged"),
    ("os.pwrite(RECORDER_FD, bytes(32 * 65536), 4096); say(event)", "stamps, the recorder has 0"),
    ("os.pwrite(RECORDER_FD, bytes([255]) * (32 * 65536), 4096); say(event)", "begins with a stamp of"),
    ("os.pwrite(RECORDER_FD, bytes([1, 0, 0, 0, 0, 0, 0, 9]) * (4 * 65536), 4096); say(event)", "protocol"),
    ("os.close(4)", "closed its event pipe"),
    ("os.kill(os.getpid(), 9)", "SIGKILL"),
    ("os.kill(os.getpid(), 19); say(event)", "no progress for 2 s"),
]  # fmt: skip
LIES_AT_THE_END = [
    ("say({'event': 'done', 'command': 'finish'})", "'event'"),
    ("say(event); say(event)", "it said what nobody asked for"),
    ("event['steps'] = 1; say(event)", "'steps': Extra inputs are not permitted"),
    ("say({'event': 'failed', 'outcome': 'oom', 'text': 'no room', 'where': 'finish'})", "no room (finish)"),
    ("say(event); time.sleep(60)", "did not exit within 2 s"),
    ("say(event); os._exit(4)", "exit code 4 during exit, after its work was done"),
    ("time.sleep(60)", "no progress for 2 s of running time during finish"),
]  # fmt: skip


@pytest.fixture
def launch(tmp_path: Path) -> Callable[..., LaunchRecord]:
    return lambda *lie: run_launch(liar_plan(tmp_path / "launch", *lie))


def test_who_tells_no_lie_is_measured(launch: Callable[..., LaunchRecord]) -> None:
    record = launch()
    assert record.outcome == "ok", words(record)
    assert sum(segment.steps for segment in record.segments) > 10


@pytest.mark.attempt
@pytest.mark.parametrize(("code", "said"), LIES_AT_START)
def test_lies_at_the_start(launch: Callable[..., LaunchRecord], code: str, said: str) -> None:
    check(launch("start", code), said)


@pytest.mark.attempt
@pytest.mark.parametrize(("code", "said"), LIES_IN_A_SEGMENT)
def test_lies_in_a_segment(launch: Callable[..., LaunchRecord], code: str, said: str) -> None:
    check(launch("run", code, 1), said)


@pytest.mark.attempt
@pytest.mark.parametrize(("code", "said"), LIES_AT_THE_END)
def test_lies_at_the_end(launch: Callable[..., LaunchRecord], code: str, said: str) -> None:
    check(launch("finish", code), said)


def check(record: LaunchRecord, said: str) -> None:
    assert record.outcome in ("crash", "hang", "oom"), words(record)
    assert said in (record.reason or ""), words(record)
    assert len(record.reason or "") < LONGEST_TEXT + 200
    assert "Traceback" not in (record.reason or "")


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("verb", "answer", "line"),
    [
        ("gradient", GradientDone, b'{"event": "done", "command": "gradient"}'),
        ("gradient", GradientDone, b'{"event": "done", "command": "gradient", "loss": "1"}'),
        ("gradient", GradientDone, b'{"event": "done", "command": "gradient", "loss": Infinity}'),
        ("evaluate", EvaluateDone, b'{"event": "done", "command": "evaluate", "loss": 1, "accuracy": 1}'),
        (
            "evaluate",
            EvaluateDone,
            b'{"event": "done", "command": "evaluate", "loss": 1, "accuracy": 1, "samples": -3}',
        ),
        ("profile", ProfileDone, b'{"event":"done","command":"profile","steps":1,"layers":{}}'),
        ("profile", ProfileDone, b'{"event":"done","command":"profile","steps":1,"layers":[{"node":"a"}]}'),
        (
            "profile",
            ProfileDone,
            b'{"event":"done","command":"profile","steps":1,'
            b'"layers":[{"node":"a","direction":"up","ns":[1]}]}',
        ),
        ("reset", Done, b'{"event": "done", "command": "gradient"}'),
        ("reset", Done, b'{"event": "done", "command": "reset", "steps": 1}'),
    ],
)  # fmt: skip
def test_other_answers_are_checked_alike(verb: str, answer: type[Done], line: bytes) -> None:
    with pytest.raises(LaunchError, match=r"^protocol: |crash") as caught:
        read_event(line, Asked(verb, answer))
    assert caught.value.outcome == "crash"
    assert caught.value.reason.startswith("protocol: ")


def test_a_failure_may_come_instead_of_any_answer() -> None:
    line = b'{"event": "failed", "outcome": "oom", "where": "run", "text": "none left"}'
    for asked in (None, Asked("run", Done)):
        assert isinstance(read_event(line, asked), Failed)
