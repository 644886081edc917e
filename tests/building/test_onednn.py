"""oneDNN 2.x: Debian's library and headers are found, or missed with the cure; the plug-in is proven."""

from __future__ import annotations

from pathlib import Path

import pytest
from launching import make_plan, small_network, words, workload

from timetrial import building
from timetrial.building.onednn import find_debian_onednn
from timetrial.cases.case import Case
from timetrial.contenders import NotBuiltYet, resolve
from timetrial.errors import Unavailable
from timetrial.launch import run_launch
from timetrial.library_files import available, known, known_libraries

WIDE = """
[[nodes]]
name = "conv1"
kind = "conv2d"
attributes = { channels = 16, kernel = 3 }

[[nodes]]
name = "conv2"
kind = "conv2d"
attributes = { channels = 32, kernel = 3, padding = 1 }

[[nodes]]
name = "pool2"
kind = "avg_pool2d"
attributes = { kernel = 13 }

[[nodes]]
name = "flat"
kind = "flatten"

[[nodes]]
name = "fc"
kind = "dense"
attributes = { units = 10 }

[[nodes]]
name = "loss"
kind = "softmax_cross_entropy"
inputs = ["fc", "labels"]
"""


@pytest.fixture
def debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine where Debian's packages go into a folder of the test's own: the file of the header."""
    monkeypatch.setattr(known, "multiarch_folder", lambda: tmp_path)
    (tmp_path / "libdnnl.so.2.6").touch()
    (tmp_path / "libdnnl.so.2").symlink_to("libdnnl.so.2.6")
    header = tmp_path / "dnnl_version.h"
    header.write_text("#define DNNL_VERSION_MAJOR 2\n#define DNNL_VERSION_MINOR 6\n")
    return header


def test_it_is_found(debian: Path) -> None:
    target = find_debian_onednn(debian)
    assert (target.name, target.library) == ("oneDNN 2.6", debian.parent / "libdnnl.so.2")
    assert target.link == (str(target.library),)


def test_what_is_missing_is_named_with_its_cure(debian: Path) -> None:
    cure = "sudo apt install libdnnl-dev"
    debian.write_text("#define DNNL_VERSION_MAJOR 3\n")
    with pytest.raises(Unavailable, match=rf"is of oneDNN 3, which does not fit .*: {cure}"):
        find_debian_onednn(debian)
    debian.unlink()
    with pytest.raises(Unavailable, match=rf"no C\+\+ headers here .*: {cure}"):
        find_debian_onednn(debian)
    (debian.parent / "libdnnl.so.2").unlink()
    with pytest.raises(Unavailable, match=rf"is not installed .*: {cure}"):
        find_debian_onednn(debian)


def test_the_library_chooses_the_plugin(tmp_path: Path) -> None:
    default = resolve(Case("onednn", workload("mlp")), build=False)
    assert default.path.name == "onednn.so", "oneDNN 3 needs no build"
    if "onednn-debian" not in available():
        with pytest.raises(Unavailable, match="onednn-debian is not installed"):
            resolve(Case("onednn", workload("mlp"), settings={"onednn.library": "onednn-debian"}))
        return
    with pytest.raises(NotBuiltYet, match="timetrial backends build onednn-debian"):
        resolve(Case("onednn", workload("mlp"), settings={"onednn.library": "onednn-debian"}), build=False)


@pytest.fixture
def built_once(workers_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real plug-in is compiled by whoever is first."""
    monkeypatch.setenv("TIMETRIAL_CACHE", str(workers_folder / "onednn"))


@pytest.mark.usefixtures("built_once")
def test_it_is_built_and_proven(tmp_path: Path) -> None:
    if "onednn-debian" not in available():
        pytest.skip(known_libraries()["onednn-debian"].cure)
    plan = make_plan(
        tmp_path / "launch", "onednn", network=small_network(tmp_path), purpose="proof",
        settings={"threads": "1", "onednn.library": "onednn-debian"},
    )  # fmt: skip
    record = run_launch(plan)
    assert record.outcome == "ok", words(record)
    assert record.parity is not None
    assert record.parity.status == "passed"
    assert {setting.name: setting.status for setting in record.settings}["onednn.library"] == "applied"
    target = building.make_plan(building.recipe_named("onednn-debian")).target
    assert str(target.library.resolve()) in {library.path for library in record.libraries}
    assert "2.6" in str(record.facts)


@pytest.mark.usefixtures("built_once")
def test_the_algorithm_of_convolutions_is_the_one_that_is_said(tmp_path: Path) -> None:
    """Version 2 has Winograd's on AVX-512; elsewhere the row is a mismatch, not a claim."""
    if "onednn-debian" not in available():
        pytest.skip(known_libraries()["onednn-debian"].cure)
    network = tmp_path / "wide.toml"
    network.write_text(WIDE)
    settings = {"threads": "1", "onednn.library": "onednn-debian", "convolution": "winograd"}
    plan = make_plan(tmp_path / "launch", "onednn", network=str(network), purpose="proof", settings=settings)
    record = run_launch(plan)
    runs = any("wino" in str(fact) for fact in record.facts.values())
    (setting,) = (one for one in record.settings if one.name == "convolution")
    assert (setting.effective, setting.status) == (("winograd", "applied") if runs else ("direct", "ignored"))
    assert (record.outcome == "mismatch") is not runs, words(record)  # its rounding is another matter
