"""`onednn` is linked to its library: the file that is opened before it is the one that it gets."""

from __future__ import annotations

from pathlib import Path

import pytest
from launching import make_plan, words, workload

from timetrial.cases.case import Case
from timetrial.contenders import resolve
from timetrial.errors import InputError, Unavailable
from timetrial.launch import run_launch
from timetrial.library_files import find
from timetrial.library_files import known as known_module


def case(word: str) -> Case:
    return Case("onednn", workload("mlp"), settings={"onednn.library": word})


def test_the_default_is_opened_and_recorded(tmp_path: Path) -> None:
    record = run_launch(make_plan(tmp_path / "launch", "onednn", settings={"threads": "1"}, purpose="proof"))
    assert record.outcome == "ok", words(record)
    assert record.parity is not None
    assert record.parity.status == "passed"
    setting = next(one for one in record.settings if one.name == "onednn.library")
    path = str(find("onednn-pypi").resolve())
    assert (setting.asked, setting.effective, setting.status) == (None, path, "applied")
    library = next(one for one in record.libraries if one.path == path)
    assert library.version == record.facts["onednn.version"]


@pytest.mark.effect("onednn.library")
def test_a_path_is_opened_instead(tmp_path: Path) -> None:
    copy = tmp_path / "libdnnl.so.3"
    copy.write_bytes(find("onednn-pypi").read_bytes())
    plan = make_plan(tmp_path / "launch", "onednn", settings={"onednn.library": str(copy), "threads": "1"})
    record = run_launch(plan)
    assert record.outcome == "ok", words(record)
    setting = next(one for one in record.settings if one.name == "onednn.library")
    assert (setting.effective, setting.status) == (str(copy), "applied")


def test_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_module.importlib.metadata, "files", lambda name: [])
    with pytest.raises(
        Unavailable, match=r"onednn\.library=onednn-pypi is not installed \(onednn-cpu-gomp\)"
    ):
        resolve(case("onednn-pypi"))


def test_a_blas_is_no_onednn(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no onednn library is called 'openblas-scipy'"):
        resolve(case("openblas-scipy"))
    with pytest.raises(InputError, match=r"libdnnl"):
        resolve(case(str(find("openblas-scipy"))))
