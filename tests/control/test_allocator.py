"""The setting malloc.library: another allocator, seen in the process by the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from launching import make_plan, words, workload

from timetrial.cases.case import Case
from timetrial.contenders import resolve, validate_settings
from timetrial.control import allocator
from timetrial.errors import InputError, Unavailable
from timetrial.launch import run_launch
from timetrial.library_files import available, known_libraries

ALLOCATORS = [name for name, library in known_libraries().items() if library.kind == "allocator"]


def check(word: str, *, spanned: bool = False) -> None:
    case = Case("eigen", workload("mlp"), settings={allocator.NAME: word})
    validate_settings(case, resolve(case), spanned=[allocator.NAME] if spanned else [])


@pytest.mark.effect("malloc.library")
@pytest.mark.parametrize("purpose", ["proof", "speed"])
@pytest.mark.parametrize("name", ALLOCATORS)
def test_it_takes_the_place_of_malloc(tmp_path: Path, name: str, purpose: str) -> None:
    path = available("allocator").get(name)
    if path is None:
        pytest.skip(f"machine: {name} is not installed: {known_libraries()[name].cure}")
    plan = make_plan(tmp_path / "launch", "eigen", settings={allocator.NAME: name}, purpose=purpose)
    record = run_launch(plan)
    assert record.outcome == "ok", words(record)
    [found] = [one for one in record.settings if one.name == allocator.NAME]
    assert (found.asked, found.effective, found.status) == (name, str(path.resolve()), "applied")


@pytest.mark.attempt
def test_settings_of_glibc_have_no_effect_beside_it(tmp_path: Path) -> None:
    name = next(iter(available("allocator")), None)
    if name is None:
        pytest.skip(f"machine: no allocator is installed: {known_libraries()[ALLOCATORS[0]].cure}")
    settings = {allocator.NAME: name, "malloc.top_pad": "1048576"}
    record = run_launch(make_plan(tmp_path / "launch", "eigen", settings=settings))
    assert record.outcome == "mismatch"
    assert record.reason is not None
    assert "malloc.top_pad asked 1048576" in record.reason


@pytest.mark.attempt
def test_one_that_is_not_mapped_was_ignored(tmp_path: Path) -> None:
    """As in a program that is linked statically, or where the loader refused the file."""
    wanted, rival, program = tmp_path / "libjemalloc.so.2", tmp_path / "libtcmalloc.so.4", Path("/bin/x")
    for path in (wanted, rival):
        path.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\x3e\x00" + bytes(44))
    asked = {allocator.NAME: str(wanted)}
    judged = allocator.judge(asked, [program], [])
    assert (judged.effective, judged.status) == ("glibc's", "ignored")
    judged = allocator.judge(asked, [program, rival], [rival])
    assert (judged.effective, judged.status) == (str(rival), "ignored")
    judged = allocator.judge(asked, [wanted, rival], [wanted, rival])
    assert (judged.effective, judged.status) == (str(wanted), "unverifiable")
    assert str(rival) in judged.how_read
    assert allocator.judge(asked, [], []).status == "unverifiable"
    assert allocator.judge(asked, [wanted], [wanted]).status == "applied"


def test_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"no allocator library is called 'jemaloc'\. Did you"):
        check("jemaloc")
    with pytest.raises(InputError, match=r"malloc\.library: .*nowhere\.so"):
        check(str(tmp_path / "nowhere.so"))
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(InputError, match=r"malloc\.library: .*text\.so"):
        check(str(tmp_path / "text.so"))
    (tmp_path / "arm.so").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\xb7\x00" + bytes(44))
    with pytest.raises(InputError, match=r"malloc\.library: .*built for another machine"):
        check(str(tmp_path / "arm.so"))
    with pytest.raises(Unavailable, match=r"malloc\.library: "):
        check(str(tmp_path / "text.so"), spanned=True)
    monkeypatch.setattr("timetrial.library_files.known.multiarch_folder", lambda: tmp_path)
    with pytest.raises(
        Unavailable, match=r"malloc\.library=jemalloc is not installed .*apt install libjemalloc2"
    ):
        check("jemalloc")
