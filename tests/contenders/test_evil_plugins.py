"""A plug-in is asked what it is before anything starts: what it does meanwhile must reach nobody."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from timetrial.cases.case import Case, Workload
from timetrial.contenders import resolve
from timetrial.errors import InputError
from timetrial.processes import probe

pytestmark = pytest.mark.attempt

EVIL = {
    "fork": "for (int i = 0; i < 20; ++i) if (fork() == 0) for (;;) pause();",
    "daemon": "if (fork() == 0) { setsid(); if (fork() == 0) for (;;) pause(); _exit(0); }",
    "talk": "char text[65536]; memset(text, 'x', sizeof text); alarm(5);"
    " for (int i = 0; i < 2000; ++i) write(1, text, sizeof text);",
    "talk_in_lines": 'for (int i = 0; i < 300000; ++i) fprintf(stderr, "words of a library %d\\n", i);',
    "events": 'for (int i = 0; i < 7; ++i) write(i, "{\\"event\\": \\"ready\\"}\\n", 19);',
    "leave": "_exit(0);",
    "leave_with_words": 'fprintf(stderr, "no licence\\nask at the counter\\n"); _exit(3);',
    "crash": "abort();",
    "memory": "for (;;) { char* more = (char*)malloc(1 << 30); if (more == 0) abort(); }",
    "hang": "for (;;) pause();",
    "spin": "for (;;) {}",
    "stop": "raise(SIGSTOP);",
    "supervisor": "kill(getppid(), SIGKILL); for (;;) pause();",
    "close": "for (int i = 0; i < 10; ++i) close(i);",
}
SAYS = {
    "hang": "no progress for 1 s of running time during loading",
    "spin": "no progress for 1 s of running time during loading",
    "stop": "it stands still by a signal that is not ours",
    "crash": "was ended by SIGABRT during loading",
    "memory": "was ended by SIGABRT during loading (memory.cap=17179869184 (RLIMIT_DATA) was set: that may",
    "leave_with_words": "no licence\nask at the counter",
    "leave": "it ended the process that loaded it, with exit code 0",
    "talk": "it exports no tt_backend_table",
    "supervisor": "somebody ended the supervisor",
}
SOURCE = """
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <csignal>
#include <unistd.h>
extern "C" __attribute__((constructor)) void evil() { %s }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of them, each a plug-in that exports nothing."""
    found = tmp_path_factory.mktemp("evil")
    compiler = os.environ.get("CXX", "g++")
    for name, code in EVIL.items():
        (found / f"{name}.cpp").write_text(SOURCE % code)
        flags = ["-shared", "-fPIC", "-w"]
        subprocess.run([compiler, *flags, f"{name}.cpp", "-o", f"{name}.so"], check=True, cwd=found)
    return found


def _asked(path: Path) -> str:
    with pytest.raises(InputError) as refused:
        resolve(Case(str(path), Workload("mlp", "synthetic", 8, {})))
    return str(refused.value)


def _alive(path: Path) -> list[str]:
    """Processes that have the plug-in mapped."""
    found = []
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            if str(path) in maps.read_text():
                found.append(maps.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("name", EVIL)
def test_it_is_refused_in_words_and_leaves_nothing(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(probe, "TIMEOUT_S", 1.0)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    said = _asked(folder / f"{name}.so")
    assert said.startswith(f"backend {folder / name}.so: ")
    assert SAYS.get(name, "") in said
    assert len(said) < 5_000
    deadline = time.monotonic() + 10
    while _alive(folder / f"{name}.so") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(folder / f"{name}.so")
    assert not list(tmp_path.iterdir())
