from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from timetrial import core
from timetrial.core import native
from timetrial.errors import InputError, TimetrialError


def test_the_native_tree_is_complete() -> None:
    assert os.access(core.child_path(), os.X_OK)
    assert os.access(core.exec_path(), os.X_OK)
    assert (core.runtime_dir() / "_timetrial_runtime.abi3.so").is_file()
    manifests = core.backend_manifests()
    assert {"null", "reference", "eigen", "libtorch"} <= {manifest.backend for manifest in manifests}
    shipped = [manifest for manifest in manifests if not manifest.recipe]
    assert all(manifest.library is not None and manifest.library.is_file() for manifest in shipped)
    built_here = [manifest for manifest in manifests if manifest.recipe]
    assert all((native.sources_dir() / manifest.backend).is_dir() for manifest in built_here)
    eigen = [manifest for manifest in manifests if manifest.backend == "eigen"]
    assert [manifest.rank for manifest in eigen] == sorted((m.rank for m in eigen), reverse=True)


def _import_with(native_folder: str) -> str:
    environment = {**os.environ, "TIMETRIAL_NATIVE": native_folder}
    result = subprocess.run(
        [sys.executable, "-c", "import timetrial.core"],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
    )
    return result.stderr.strip().splitlines()[-1] if result.returncode else ""


def test_a_wrong_native_folder_is_named(tmp_path: Path) -> None:
    words = _import_with(str(tmp_path / "native"))
    assert f"TIMETRIAL_NATIVE={tmp_path}/native" in words
    assert "Build first, or unset the variable." in words


def test_missing_programs_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMETRIAL_NATIVE", str(tmp_path))
    native.native_dir.cache_clear()
    try:
        with pytest.raises(TimetrialError, match="timetrial-child is missing"):
            core.child_path()
        assert core.backend_manifests() == []
    finally:
        native.native_dir.cache_clear()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"backend": "x", "isa": "", "requires": 1, "rank": 0}'])
def test_broken_manifests_are_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"x\.json is no backend manifest"):
        native.read_manifest(path)
    path.write_text(
        json.dumps({"backend": "x", "isa": "", "requires": ["avx2"], "library": "x.so", "rank": 1})
    )
    assert native.read_manifest(path).library == tmp_path / "x.so"
    path.write_text(
        json.dumps({"backend": "x", "isa": "", "requires": [], "library": "x.so", "rank": 1, "recipe": "y"})
    )
    assert (native.read_manifest(path).library, native.read_manifest(path).recipe) == (None, "y")
