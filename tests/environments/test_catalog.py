"""environment.toml as data: what a version takes from [shared] and what it says itself."""

from __future__ import annotations

from pathlib import Path

from timetrial.environments.catalog import framework_in

TEXT = """
[shared]
modules = { tiny = "tiny" }
modes = ["one", "two"]
[shared.settings.threads]
environment = ["TINY_THREADS"]
[shared.settings."blas.core_type"]
environment = ["OPENBLAS_CORETYPE"]
[shared.environment]
TINY_CACHE = "{cache}/tiny"
TINY_LOG = "0"

[[versions]]
version = "2"

[[versions]]
version = "1"
modes = ["one"]
[versions.settings.threads]
affinity = true
[versions.environment]
TINY_LOG = "1"
"""


def test_a_version_replaces_what_it_names_and_keeps_the_rest(tmp_path: Path) -> None:
    (tmp_path / "environment.toml").write_text(TEXT, encoding="utf-8")
    new, old = framework_in(tmp_path).versions
    assert new.modes == ("one", "two")
    assert new.settings["threads"].environment == ("TINY_THREADS",)
    assert old.modes == ("one",)
    assert old.settings["threads"].affinity
    assert old.settings["threads"].environment == ()
    assert old.settings["blas.core_type"] == new.settings["blas.core_type"]
    assert old.environment == {"TINY_CACHE": "{cache}/tiny", "TINY_LOG": "1"}
