"""The key `callable`: in a file, in words, from Python; and every way in which it cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from timetrial.cases.spec import parse_spec
from timetrial.errors import InputError
from timetrial.experiment.experiment import Experiment, build, load_words


def cases(document: dict[str, Any]) -> list[tuple[str, str, int | None, str | None]]:
    """(backend, network, batch_size, threads) of each case."""
    experiment = build(parse_spec({"name": "test", **document}, "test"), again=None, cpus=4)
    return [
        (one.case.backend, one.case.workload.network, one.case.workload.batch_size,
         one.case.settings.get("threads"))
        for one in experiment.cases
    ]  # fmt: skip


def test_a_callable_needs_no_network() -> None:
    assert cases({"contender": [{"callable": "pkg.mod:make"}]}) == [("pkg.mod:make", "none", None, None)]
    assert cases({"contender": [{"callable": "pkg.mod:make", "batch_size": 8}]}) == [
        ("pkg.mod:make", "none", 8, None)
    ]


def test_lists_axes_and_backends_go_with_it() -> None:
    document = {
        "workload": {"network": "mlp"},
        "contender": [{"callable": ["a:make", "b:Net.make"]}, {"backend": "eigen"}],
        "axes": {"threads": [1, 2]},
    }
    assert cases(document) == [
        (who, "mlp", 64, threads) for who in ("a:make", "b:Net.make", "eigen") for threads in ("1", "2")
    ]


def test_words() -> None:
    experiment = load_words(["callable=a:make,b:make", "threads=1"])
    assert [one.case.backend for one in experiment.cases] == ["a:make", "b:make"]
    assert experiment.again == "callable=a:make,b:make threads=1 seed=1"
    both = load_words(["callable=a:make", "backend=eigen", "network=mlp"])
    assert [one.case.backend for one in both.cases] == ["eigen", "a:make"]


def test_words_beside_a_file() -> None:
    """One contender more; a file's own callables are replaced, as any key that stands in a contender."""
    added = load_words(["first-look", "callable=a:make", "threads=1"])
    without = load_words(["first-look", "threads=1"])
    assert [one.case.backend for one in added.cases] == [
        *[one.case.backend for one in without.cases],
        "a:make",
    ]
    assert added.cases[-1].case.workload.network == "lenet5"
    again = Experiment.load("first-look", callable=["a:make", "b:make"], backend="eigen", threads=1)
    assert [one.case.backend for one in again.cases] == ["eigen", "a:make", "b:make"]


def test_a_reference_may_be_one() -> None:
    document = {
        "contender": [{"callable": ["a:make", "b:make"]}],
        "measure": {"reference": {"callable": "b:make"}},
    }
    assert parse_spec({"name": "x", **document}, "x").measure.reference == {"backend": "b:make"}
    assert len(cases(document)) == 2
    with pytest.raises(InputError, match="is no case of this experiment"):
        cases({**document, "measure": {"reference": {"callable": "c:make"}}})


def test_the_same_callable_has_the_same_id_and_another_has_not() -> None:
    ids = [one.case.content_id for one in load_words(["callable=a:make,b:make", "python=x,y"]).cases]
    assert len(set(ids)) == 4
    assert [one.case.content_id for one in load_words(["callable=a:make", "python=x"]).cases] == ids[:1]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("mypackage.training", "expected the module and the function"),
        ("mine:", "expected the module and the function"),
        (":make", "expected the module and the function"),
        ("a b:make", "expected the module and the function"),
        ("folder/mine.py:make", "A module, not a path"),
        (3, "callable is 3"),
    ],
)
def test_words_that_name_nothing(word: object, said: str) -> None:
    with pytest.raises(InputError) as raised:
        cases({"contender": [{"callable": word}]})
    assert said in str(raised.value)
    assert "mypackage.training:make_step" in str(raised.value)


def test_a_function_that_can_be_imported_is_its_word() -> None:
    experiment = Experiment.load(callable=[test_words_that_name_nothing_to_import, "b:make"])
    words = [one.case.backend for one in experiment.cases]
    assert words == ["test_words:test_words_that_name_nothing_to_import", "b:make"]
    assert experiment.again == f"callable={words[0]},b:make seed=1"
    document = {"name": "own", "contender": [{"callable": test_words_that_name_nothing_to_import}]}
    assert [one.case.backend for one in Experiment.from_dict(document).cases] == words[:1]


def test_words_that_name_nothing_to_import() -> None:
    with pytest.raises(InputError, match="callable is <generator"):
        Experiment.load(callable=(one for one in ()))


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"contender": [{"callable": "a:make", "backend": "eigen"}]}, "Write two contenders"),
        ({"contender": [{"callable": "a:make"}], "axes": {"backend": ["eigen"]}}, "Write two contenders"),
        ({"contender": [{"backend": "a:make", "network": "mlp"}]}, "write callable=a:make"),
        ({"contender": [{"callable": "a:make", "dataset": "digits28"}]}, "Leave dataset out"),
        ({"contender": [{"callable": "a:make", "optimizer.momentum": 0.5}]}, "Leave optimizer.momentum out"),
        ({"contender": [{"callable": "a:make", "batch_size": 0}]}, "at least 1"),
        ({"contender": [{"callable": "a:make", "threads": 99}]}, "this process may use 4 CPUs"),
        ({"contender": [{"calable": "a:make"}]}, "Did you mean 'callable'?"),
        ({"contender": [{}]}, "A step of your own"),
        ({"workload": {"callable": "a:make"}}, "It belongs into [axes] or a [[contender]]"),
    ],
)
def test_what_does_not_go_together(document: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as raised:
        cases(document)
    assert said in str(raised.value)
