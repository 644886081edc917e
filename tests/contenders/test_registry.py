"""Names, paths and interpreters become contenders, or errors that say what to do."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from launching import make_plan, words, workload

from timetrial.cases.case import Case
from timetrial.contenders import known_backends, native_backends, registry, resolve
from timetrial.errors import InputError, Unavailable
from timetrial.launch import run_launch

PLANTED = Path(__file__).parents[1] / "frameworks" / "planted"


def case(backend: str, **settings: str) -> Case:
    return Case(backend=backend, workload=workload("mlp"), settings=settings)


def test_all_known_backends() -> None:
    assert {"null", "reference", "eigen", "pytorch"} <= set(known_backends())


def test_the_best_variant_that_the_processor_has(monkeypatch: pytest.MonkeyPatch) -> None:
    variants = {manifest.isa: manifest for manifest in native_backends()["eigen"]}
    monkeypatch.setattr(registry, "cpu_flags", lambda: frozenset(variants["avx2"].requires))
    assert resolve(case("eigen")).isa == "avx2"
    with pytest.raises(Unavailable, match="isa=avx512 needs a CPU with avx512f"):
        resolve(case("eigen", isa="avx512"))
    monkeypatch.setattr(registry, "cpu_flags", lambda: frozenset(variants["avx512"].requires))
    assert resolve(case("eigen")).isa == "avx512"
    assert resolve(case("eigen", isa="avx2")).isa == "avx2"
    monkeypatch.setattr(registry, "cpu_flags", frozenset)
    with pytest.raises(Unavailable, match="eigen needs a CPU with sse2"):
        resolve(case("eigen"))


@pytest.mark.parametrize(
    ("backend", "settings", "said"),
    [
        ("eigne", {}, "Did you mean 'eigen'?"),
        ("./no/such.so", {}, "no such file or folder"),
        ("eigen", {"isa": "avx9"}, "has no variant isa='avx9': it has avx512, avx2, sse2"),
        ("null", {"isa": "avx2"}, "it has only one variant"),
        ("eigen", {"python": "python3"}, "runs in no interpreter"),
        ("pytorch", {"isa": "avx2"}, "chooses its instructions itself"),
        ("pytorch", {"python": "no-such-python"}, "there is no such interpreter"),
    ],
)
def test_bad_input_is_named(backend: str, settings: dict[str, str], said: str) -> None:
    with pytest.raises(InputError) as raised:
        resolve(case(backend, **settings))
    assert said in str(raised.value)


def test_files_that_are_no_plugins(tmp_path: Path) -> None:
    text = tmp_path / "text.so"
    text.write_text("not a library")
    with pytest.raises(InputError, match="no ELF header"):
        resolve(case(str(text)))
    with pytest.raises(InputError, match=r"no adapter\.py"):
        resolve(case(str(tmp_path)))
    other = tmp_path / "libother.so"
    source = tmp_path / "other.c"
    source.write_text("int other(void) { return 1; }")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(other), str(source)], check=True)
    with pytest.raises(InputError, match="tt_backend_table"):
        resolve(case(str(other)))


def test_a_plugin_of_another_abi(tmp_path: Path) -> None:
    source = tmp_path / "old.c"
    source.write_text("void* tt_backend_table(unsigned host_abi) { (void)host_abi; return 0; }")
    old = tmp_path / "old.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(old), str(source)], check=True)
    with pytest.raises(InputError, match=r"(?i)abi"):
        resolve(case(str(old)))


def test_a_plugin_by_its_path(tmp_path: Path) -> None:
    path = native_backends()["null"][0].library
    record = run_launch(make_plan(tmp_path / "launch", str(path), settings={"null.step_us": "500"}))
    assert record.outcome == "ok", words(record)


def test_a_framework_that_its_interpreter_lacks(tmp_path: Path) -> None:
    adapter = tmp_path / "mine"
    adapter.mkdir()
    (adapter / "adapter.py").write_text("class Adapter: pass\n")
    (adapter / "environment.toml").write_text(
        '[[versions]]\nversion = "1"\nmodules = { no_such_module = "no-such" }\n'
    )
    with pytest.raises(Unavailable) as raised:
        resolve(case(str(adapter)))
    assert "needs the module no_such_module" in str(raised.value)
    assert f"timetrial frameworks install {adapter}@1" in str(raised.value)


def test_a_version_behind_a_path_or_a_name() -> None:
    with pytest.raises(Unavailable, match=f"not installed: timetrial frameworks install {PLANTED}@1"):
        resolve(case(f"{PLANTED}@1"))
    found = resolve(case(f"{PLANTED}@current"))
    assert found.version is not None
    assert (found.path, found.version.version) == (PLANTED / "adapter.py", "1")
    for backend, known in (
        (f"{PLANTED}@2", "planted has no version '2'; it has 1"),
        ("pytorch@0", "it has 2."),
    ):
        with pytest.raises(InputError, match=known):
            resolve(case(backend))
    with pytest.raises(InputError, match=r"'pytroch@2'\. Did you mean 'pytorch'"):
        resolve(case("pytroch@2"))


def test_the_fingerprint_follows_the_code(tmp_path: Path) -> None:
    adapter = tmp_path / "mine"
    adapter.mkdir()
    (adapter / "adapter.py").write_text("class Adapter: pass\n")
    first = resolve(case(str(adapter))).fingerprint
    assert resolve(case(str(adapter))).fingerprint == first
    (adapter / "adapter.py").write_text("class Adapter: version = 2\n")
    assert resolve(case(str(adapter))).fingerprint != first
