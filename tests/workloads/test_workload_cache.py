"""The cache: same recipe, same entry; complete or absent; safe for two processes; clear errors."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path

import numpy as np
import pytest

from timetrial.errors import InputError
from timetrial.workloads import cache as module
from timetrial.workloads.cache import Content, cache_folder, cached


def content(value: int = 1) -> Content:
    return {"numbers": np.arange(1000) * value, "facts": {"value": value}}


def never() -> Content:
    raise AssertionError("the entry is there: it must not be made again")


def test_made_once_and_read_only(cache: Path) -> None:
    entry = cached("test", {"a": 1}, content)
    assert cached("test", {"a": 1}, never) == entry
    np.testing.assert_array_equal(entry.array("numbers"), np.arange(1000))
    assert entry.table("facts") == {"value": 1}
    assert set(entry.hashes()) == {"numbers.npy", "facts.json"}
    assert entry.folder.is_relative_to(cache)
    assert all(file.stat().st_mode & 0o222 == 0 for file in entry.folder.iterdir())
    with pytest.raises(ValueError, match="read-only"):
        entry.array("numbers")[0] = 5


def test_another_recipe_is_another_entry(cache: Path) -> None:
    assert cached("test", {"a": 1}, content).key != cached("test", {"a": 2}, lambda: content(2)).key


def test_a_key_does_not_depend_on_the_order_of_words(cache: Path) -> None:
    assert cached("test", {"a": 1, "b": 2}, content) == cached("test", {"b": 2, "a": 1}, never)


@pytest.mark.attempt
@pytest.mark.parametrize("damage", ["truncate", "remove", "manifest"])
def test_a_damaged_entry_is_made_again(cache: Path, damage: str) -> None:
    entry = cached("test", {"a": 1}, content)
    if damage == "truncate":
        os.truncate(entry.file("numbers.npy"), 100)
    elif damage == "remove":
        entry.file("numbers.npy").unlink()
    else:
        entry.file("entry.json").unlink()
    again = cached("test", {"a": 1}, content)
    np.testing.assert_array_equal(again.array("numbers"), np.arange(1000))
    assert [folder.name for folder in entry.folder.parent.iterdir()] == [entry.key]


@pytest.mark.attempt
def test_failure_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: Path) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "_hash", full)
    with pytest.raises(InputError, match=r"No space left on device.*Make room"):
        cached("test", {"a": 1}, content)
    assert list((cache / "v1" / "test").iterdir()) == []


@pytest.mark.attempt
def test_leftovers_of_dead_processes_go_and_fresh_ones_stay(cache: Path) -> None:
    parent = cache / "v1" / "test"
    old, fresh = parent / "making-old", parent / "making-fresh"
    for folder in (old, fresh):
        folder.mkdir(parents=True)
        (folder / "part.npy").write_bytes(b"half")
    two_days_ago = time.time() - 2 * 86400
    os.utime(old, (two_days_ago, two_days_ago))
    cached("test", {"a": 1}, content)
    assert not old.exists()
    assert fresh.exists()


@pytest.mark.attempt
@pytest.mark.parametrize("folder", ["/proc/timetrial-cache", "/dev/null/cache"])
def test_a_folder_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    monkeypatch.setenv("TIMETRIAL_CACHE", folder)
    with pytest.raises(InputError, match=rf"{folder} cannot be written \(.+\)\. Set TIMETRIAL_CACHE"):
        cached("test", {"a": 1}, content)


@pytest.mark.attempt
def test_a_read_only_folder_still_serves_what_it_has(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = cached("test", {"a": 1}, content)

    def refuse(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(
        module.tempfile, "mkdtemp", refuse
    )  # root may write anywhere: chmod would prove nothing
    assert cached("test", {"a": 1}, never) == entry
    with pytest.raises(InputError, match="Permission denied"):
        cached("test", {"a": 2}, content)


def test_default_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TIMETRIAL_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "timetrial"


def make_slowly(number: int, barrier: object) -> tuple[str, list[int]]:
    """Makes the same entries as every other process, all at the same moment."""
    seen = []
    for round_number in range(5):
        barrier.wait()  # type: ignore[attr-defined]

        def make(value: int = round_number) -> Content:
            time.sleep(0.02)
            return {"numbers": np.full(100_000, value)}

        entry = cached("race", {"round": round_number}, make)
        array = np.array(entry.array("numbers"))
        assert (array == round_number).all()
        seen.append(int(array.sum()))
    return entry.key, seen


@pytest.mark.attempt
def test_many_processes_make_the_same_entries(cache: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager:
        barrier = manager.Barrier(4)
        with context.Pool(4) as pool:
            answers = pool.starmap(make_slowly, [(number, barrier) for number in range(4)])
    assert len({key for key, _ in answers}) == 1
    entries = list((cache / "v1" / "race").iterdir())
    assert len(entries) == 5
    assert not [entry for entry in entries if entry.name.startswith("making-")]
