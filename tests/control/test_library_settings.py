"""A library is chosen before anything starts, and judged by what was opened and what is mapped."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from launching import make_plan, workload

from timetrial.cases.case import Case
from timetrial.contenders import Contender, registry, validate_settings
from timetrial.contenders.settings import setting_environment
from timetrial.control.judging import Evidence, judge_settings, mismatch
from timetrial.control.libraries import (
    ChosenLibrary,
    blas_problem,
    choose_for_framework,
    choose_libraries,
    judge_library,
)
from timetrial.errors import InputError, Unavailable
from timetrial.launch.job import make_job
from timetrial.library_files import find, version_of
from timetrial.library_files import known as known_module
from timetrial.observing.observe import describe_libraries
from timetrial.processes.events import Reading

DNNL = Path("/a/libdnnl.so.3.2")
OTHER = Path("/b/libdnnl.so.2.6")


def case(**settings: str) -> Case:
    return Case(backend="any", workload=workload("mlp"), settings=settings)


def asked(setting: str, word: str) -> Case:
    return case(**{setting: word})


def test_the_default_is_chosen_when_nobody_asks() -> None:
    (blas,) = choose_libraries(case(), "cblas")
    assert (blas.setting, blas.path, blas.preload) == ("blas.library", find("openblas-scipy"), False)
    (onednn,) = choose_libraries(case(), "onednn")
    assert (onednn.path, onednn.preload) == (find("onednn-pypi"), True)
    assert choose_libraries(case(), "eigen") == ()


def test_a_path_is_taken_as_it_is() -> None:
    path = str(find("openblas-scipy"))
    (blas,) = choose_libraries(asked("blas.library", path), "cblas")
    assert str(blas.path) == path
    # A plug-in given by its path has no defaults, and gets what was asked.
    assert choose_libraries(case(), None) == ()
    assert choose_libraries(asked("blas.library", path), None) == (blas,)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("openblas-pthreads", "blas.library: no blas library is called 'openblas-pthreads'. Did you mean"),
        ("/no/such.so", "blas.library: '/no/such.so': there is no such file"),
    ],
)
def test_bad_words_name_their_setting(word: str, said: str) -> None:
    with pytest.raises(InputError) as raised:
        choose_libraries(asked("blas.library", word), "cblas")
    assert said in str(raised.value)


def test_a_known_library_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_module, "multiarch_folder", lambda: tmp_path)
    with pytest.raises(Unavailable) as raised:
        choose_libraries(asked("blas.library", "atlas"), "cblas")
    assert str(raised.value) == (
        "blas.library=atlas is not installed (libatlas3-base): sudo apt install libatlas3-base"
    )


def contender(*libraries: ChosenLibrary) -> Contender:
    settings = tuple(one.setting for one in libraries)
    return Contender("any", "native", Path("any.so"), "0", settings=settings, libraries=libraries)


def job(folder: Path, settings: Mapping[str, str], *libraries: ChosenLibrary) -> dict[str, object]:
    plan = make_plan(folder, "null", settings=settings)
    found: dict[str, object] = make_job(plan, contender(*libraries))
    return found


def test_the_contender_gets_paths(tmp_path: Path) -> None:
    opened = ChosenLibrary("blas.library", Path("/x/libblas.so"), preload=False)
    linked = ChosenLibrary("onednn.library", DNNL, preload=True)
    made = job(tmp_path, {"blas.library": "blis", "onednn.library": "onednn-pypi"}, opened, linked)
    assert made["settings"] == {"blas.library": "/x/libblas.so"}
    assert made["backend"] == {"name": "any", "plugin": "any.so", "preload": [str(DNNL)]}
    # The default too, though nobody asked.
    assert job(tmp_path, {}, opened)["settings"] == {"blas.library": "/x/libblas.so"}


def test_the_environment_that_a_library_needs() -> None:
    layers = {"MKL_THREADING_LAYER": {"images": "SEQUENTIAL", "product": "GNU"}}
    mkl = contender(ChosenLibrary("blas.library", Path("/x/libmkl_rt.so.3"), False, layers))
    assert setting_environment(case(), mkl) == {"MKL_THREADING_LAYER": "SEQUENTIAL"}
    assert setting_environment(case(parallel="images"), mkl) == {"MKL_THREADING_LAYER": "SEQUENTIAL"}
    assert setting_environment(case(parallel="product"), mkl) == {"MKL_THREADING_LAYER": "GNU"}


def test_a_framework_finds_its_blas_by_name_or_has_it_loaded_first() -> None:
    asking = asked("blas.library", "openblas-scipy")
    (by_name,) = choose_for_framework(asking, {"blas.library": "libblas.so.3"}, [])
    assert (by_name.soname, by_name.stands_in) == ("libblas.so.3", False)
    (first,) = choose_for_framework(asking, {}, ["blas.library"])
    assert (first.path, first.soname, first.stands_in) == (find("openblas-scipy"), "", True)
    assert choose_for_framework(case(), {"blas.library": "libblas.so.3"}, ["x.library"]) == ()
    assert setting_environment(asking, contender(by_name)) == {}
    assert setting_environment(asking, contender(first)) == {"LD_PRELOAD": str(first.path.resolve())}


def test_an_allocator_and_a_blas_are_both_loaded_first(tmp_path: Path) -> None:
    own = tmp_path / "libown.so"
    shutil.copy(find("openblas-scipy"), own)
    blas = ChosenLibrary("blas.library", Path("/x/libblas.so"), preload=False, stands_in=True)
    asking = asked("malloc.library", str(own))
    assert setting_environment(asking, contender(blas)) == {"LD_PRELOAD": f"{own}:/x/libblas.so"}


def test_what_is_no_blas_cannot_stand_in() -> None:
    """oneDNN has sgemm under names of its own."""
    for fortran, interface in ((True, "a Fortran BLAS"), (False, "a CBLAS")):
        problem = blas_problem(find("onednn-pypi"), fortran=fortran)
        assert problem is not None
        assert f"lacks the functions of {interface}" in problem
    assert blas_problem(find("openblas-scipy"), fortran=False) is not None  # prefixed: scipy_cblas_sgemm


def test_parallel_is_checked_early() -> None:
    knows = Contender("any", "native", Path("any.so"), "0", settings=("parallel",))
    with pytest.raises(InputError, match=r"parallel='image': expected images or product. Did you mean 'im"):
        validate_settings(case(parallel="image"), knows)
    with pytest.raises(InputError, match="has no setting 'parallel'"):
        validate_settings(case(parallel="images"), contender())
    with pytest.raises(Unavailable, match="has no setting 'parallel'"):
        validate_settings(case(parallel="images"), contender(), spanned={"parallel"})


@pytest.mark.parametrize(
    ("said", "mapped", "effective", "status"),
    [
        # The plug-in says which file it opened.
        (DNNL, {DNNL}, DNNL, "applied"),
        (DNNL, {DNNL, OTHER}, DNNL, "applied"),
        (OTHER, {DNNL, OTHER}, OTHER, "ignored"),
        (DNNL, {OTHER}, DNNL, "ignored"),  # a lie: the kernel does not have it
        (DNNL, set(), DNNL, "unverifiable"),
        # It is linked to it, and says nothing.
        (None, {DNNL}, DNNL, "applied"),
        (None, {OTHER}, OTHER, "ignored"),
        (None, {DNNL, OTHER}, DNNL, "unverifiable"),
        (None, {Path("/c/libm.so.6")}, None, "ignored"),
        (None, set(), None, "unverifiable"),
    ],
)
def test_a_library_is_judged_by_plug_in_and_kernel(
    said: Path | None, mapped: set[Path], effective: Path | None, status: str
) -> None:
    reading = Reading() if said is None else Reading(effective=str(said), how_read="dladdr")
    setting = judge_library("x.library", "word", DNNL, reading, frozenset(mapped))
    assert (setting.effective, setting.status) == (effective and str(effective), status), setting
    assert (mismatch([setting]) is not None) == (status == "ignored")


def test_the_default_library_is_in_the_record() -> None:
    evidence = Evidence(libraries={"onednn.library": DNNL}, mapped=frozenset({DNNL}))
    (setting,) = judge_settings(case(), evidence)
    assert (setting.name, setting.asked, setting.effective) == ("onednn.library", None, str(DNNL))


def test_versions_are_what_is_stated_or_what_files_tell(tmp_path: Path) -> None:
    files = {
        name: tmp_path / name
        for name in ("libown.so", "libtorch_cpu.so", "libtorch-0a1b.so", "libgomp.so.1.0.0")
    }
    for path in files.values():
        path.write_bytes(b"content")
    chosen = [ChosenLibrary("blas.library", files["libown.so"], preload=False)]
    facts = {"blas.version": "Own 1.2", "torch.version": "2.13.0"}
    scipy = find("openblas-scipy")
    found = describe_libraries([*files.values(), scipy, tmp_path / "gone.so"], chosen, facts)
    versions = {Path(one.path).name: one.version for one in found}
    assert versions == {
        "libown.so": "Own 1.2",
        "libtorch_cpu.so": "2.13.0",
        "libtorch-0a1b.so": None,  # a plug-in
        "libgomp.so.1.0.0": None,
        scipy.name: version_of(scipy),
        "gone.so": None,
    }
    assert {Path(one.path).name for one in found if one.sha256 is None} == {"gone.so"}


def test_another_library_is_another_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = registry.resolve(Case("null", workload("mlp"))).fingerprint
    seen = {plain}
    for name in ("openblas-scipy", "onednn-pypi"):
        chosen = (ChosenLibrary("x.library", find(name), preload=False),)
        monkeypatch.setattr(registry, "choose_libraries", lambda case, backend, chosen=chosen: chosen)
        seen.add(registry.resolve(Case("null", workload("mlp"))).fingerprint)
    assert len(seen) == 3
