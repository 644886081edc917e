"""The search: every candidate once, the base first, and good ones soon."""

from __future__ import annotations

import itertools
import random
import sys

import pytest

from timetrial.cases.case import Case, Workload
from timetrial.errors import InputError, Unavailable
from timetrial.tuning.search import Search
from timetrial.tuning.space import Space

WORK = Workload("lenet5", "synthetic", 64, {"name": "sgd"})
AXES = {
    "backend": ["eigen", "cblas", "onednn", "libtorch"],
    "threads": ["1", "2"],
    "malloc.top_pad": ["0", "1", "2", "3", "4"],
    "blas.core_type": ["a", "b", "c", "d", "e"],
}


def space(axes: dict[str, list[str]] = AXES) -> Space:
    points = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    return Space([Case(one.pop("backend"), WORK, settings=one) for one in points])


def world(seed: int) -> dict[str, float]:
    """What each candidate takes, as a logarithm: an effect of each value, and of pairs with the backend."""
    rng = random.Random(seed)
    effects = {(name, one): rng.choice([0, 0, 0.1, 0.3, 0.6]) for name, some in AXES.items() for one in some}
    pairs = {(back, name, one): rng.gauss(0, 0.05) for back in AXES["backend"] for name, one in effects}
    return {
        one.case.id: sum(effects[item] + pairs[(one.point["backend"], *item)] for item in one.point.items())
        for one in space().candidates
    }


def test_each_is_asked_for_once_and_the_base_first() -> None:
    some = space({name: values[:2] for name, values in AXES.items()})
    search, asked = Search(some, seed=1), []
    while chosen := search.ask(3):
        asked += chosen
        for one in chosen:
            search.tell(one, None if len(asked) % 3 == 0 else 0.1 * len(asked))
    assert asked[0] is some.base
    assert sorted(one.case.id for one in asked) == sorted(one.case.id for one in some.candidates)


def test_each_choice_in_turn_beside_the_best_of_those_before() -> None:
    """And of what is not known yet, as in the base."""
    some, best = space(), {"backend": "onednn", "threads": "2", "malloc.top_pad": "3", "blas.core_type": "d"}
    search, asked = Search(some, seed=1), []
    assert len(some.candidates) == 200
    while len(asked) < 13:
        for one in search.ask(4):
            asked.append(dict(one.point))
            search.tell(one, -0.1 * sum(value == best[name] for name, value in one.point.items()))
    base = dict(some.base.point)
    assert asked[:4] == [{**base, "backend": one} for one in AXES["backend"]]
    so_far = {**base, "backend": "onednn"}
    assert asked[4] == {**so_far, "threads": "2"}
    so_far["threads"] = "2"
    assert asked[5:9] == [{**so_far, "malloc.top_pad": one} for one in "1234"]
    so_far["malloc.top_pad"] = "3"
    assert asked[9:] == [{**so_far, "blas.core_type": one} for one in "bcde"]


def test_good_ones_are_found_soon() -> None:
    """Of 200, within 30; `benchmarks/self/tune_search.py` has the figures for many worlds."""
    behind = []
    for seed in range(2):
        took, some = world(seed), space()
        search, noise = Search(some, seed), random.Random(seed)
        seen: dict[str, float] = {}
        while len(seen) < 30:
            for one in search.ask(4):
                seen[one.case.id] = took[one.case.id] + noise.gauss(0, 0.02)
                search.tell(one, seen[one.case.id])
        behind.append(took[min(seen, key=lambda name: seen[name])] - min(took.values()))
    assert max(behind) < 0.1


def test_what_an_earlier_session_measured_is_not_asked_for() -> None:
    some = space({"backend": ["eigen", "cblas"], "threads": ["1", "2"]})
    search = Search(some, seed=1)
    known = some.candidates[:3]
    for one, value in zip(known, (0.0, None, -0.2), strict=True):
        search.tell(one, value)
    assert search.ask(4) == [some.candidates[3]]


def test_a_setting_that_a_backend_lacks_does_not_count() -> None:
    """blas.library is cblas's alone: eigen has one candidate for each number of threads."""
    cases = [Case("eigen", WORK, settings={"threads": n}) for n in "12"]
    cases += [Case("cblas", WORK, settings={"threads": n, "blas.library": b}) for n in "12" for b in "xy"]
    some = Space(cases)
    assert some.choices["blas.library"] == ["-", "x", "y"]
    chosen = some.find({"backend": "eigen", "threads": "2", "blas.library": "y"})
    assert chosen is not None
    assert chosen.case is cases[1]
    assert some.find({"backend": "cblas", "threads": "2", "blas.library": "-"}) is None
    # The values of cblas's own are seen though no candidate is like the best but for them.
    assert [one.case for one in some.values_of("blas.library", some.candidates[2])] == [
        cases[0],
        cases[2],
        cases[3],
    ]
    assert [one.case for one in some.values_of("backend", some.candidates[1])] == [cases[1], cases[4]]
    search, asked = Search(some, seed=1), []
    while chosen := search.ask(10):
        asked += chosen
    assert len(asked) == 6


def test_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="there is nothing to tune: one case alone"):
        space({"backend": ["eigen"]})
    other = Workload("mlp", "synthetic", 64, {"name": "sgd"})
    with pytest.raises(InputError, match="network, data set, optimizer or task differ"):
        Space([Case("eigen", WORK), Case("eigen", other)])
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(Unavailable, match=r"pip install 'timetrial\[tune\]'"):
        Search(space(), seed=1)
