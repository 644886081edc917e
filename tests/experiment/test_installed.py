"""backend = "installed" becomes the frameworks that are here."""

from __future__ import annotations

from typing import Any

import pytest

from timetrial.cases.overrides import apply
from timetrial.cases.spec import Spec, parse_spec
from timetrial.errors import InputError
from timetrial.experiment.installed import spell_out

HERE = {"tensorflow@2.21.0": ("graph", "eager"), "tensorflow@1.4.0": ("graph",), "caffe@1.0.0": ()}


def spec(**contender: Any) -> Spec:
    return parse_spec({"name": "x", "workload": {"network": "mlp"}, "contender": [contender]}, "x")


def spelled(found: dict[str, tuple[str, ...]] = HERE, **contender: Any) -> list[dict[str, Any]]:
    return spell_out(spec(**contender), lambda: found).contender


def test_each_version_in_each_of_its_modes() -> None:
    assert spelled(backend=["installed", "eigen"], affinity="0") == [
        {"affinity": "0", "backend": "tensorflow@2.21.0", "mode": ["graph", "eager"]},
        {"affinity": "0", "backend": "tensorflow@1.4.0", "mode": ["graph"]},
        {"affinity": "0", "backend": "caffe@1.0.0"},
        {"affinity": "0", "backend": "eigen"},
    ]


def test_a_mode_keeps_those_that_have_it() -> None:
    assert spelled(backend="installed", mode=["eager", "jit"]) == [
        {"backend": "tensorflow@2.21.0", "mode": ["eager"]}
    ]


def test_without_the_word_nobody_is_asked() -> None:
    def nobody() -> Any:
        raise AssertionError

    own = spec(backend="eigen")
    assert spell_out(own, nobody) is own


def test_nothing_installed_is_said_with_the_cure() -> None:
    with pytest.raises(
        InputError, match=r"no framework is installed. `timetrial frameworks install --cheap`"
    ):
        spelled({}, backend="installed")


def test_a_bare_name_matches_all_versions() -> None:
    full = spell_out(spec(backend="installed"), lambda: HERE)
    kept = apply(full, {"backend": ["tensorflow"]}, "words")["contender"]
    assert [table["backend"] for table in kept] == ["tensorflow@2.21.0", "tensorflow@1.4.0"]
    (one,) = apply(full, {"backend": ["tensorflow@1.4.0"]}, "words")["contender"]
    assert one["backend"] == "tensorflow@1.4.0"
    with pytest.raises(InputError, match="no contender with backend 'tensorflow@9'"):
        apply(full, {"backend": ["tensorflow@9"]}, "words")
