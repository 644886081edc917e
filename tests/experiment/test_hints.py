"""Hints in errors: near misses only, and a way that works today for what is not here."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from timetrial.errors import InputError, nearest
from timetrial.experiment.experiment import load_words
from timetrial.networks import NETWORKS
from timetrial.optimizers import check_optimizer

KINDS = ("avg_pool2d", "conv2d", "dense", "relu", "tanh")


@pytest.mark.parametrize(
    ("word", "known", "hint"),
    [
        ("lennet5", NETWORKS, "lenet5"),
        ("lenet", NETWORKS, "lenet5"),
        ("thread", ("threads", "task"), "threads"),
        ("egien", ("eigen", "cblas"), "eigen"),
        ("learning_rate", ("learning", "optimizer.learning_rate"), "optimizer.learning_rate"),
        ("momentum", ("optimizer.momentum",), "optimizer.momentum"),
        ("dens", KINDS, "dense"),
        ("mpl", NETWORKS, "mlp"),
        ("SGD", ("sgd",), "sgd"),
    ],
)
def test_a_slip_is_recognized(word: str, known: tuple[str, ...], hint: str) -> None:
    assert nearest(word, known) == f" Did you mean '{hint}'?"


@pytest.mark.parametrize(
    ("word", "known"),
    [("inception3", NETWORKS), ("gpt2", NETWORKS), ("gelu", KINDS), ("adam", ("sgd",))],
)
def test_another_thing_is_not_taken_for_a_slip(word: str, known: tuple[str, ...]) -> None:
    assert nearest(word, known) == f" Known: {', '.join(sorted(known))}."


@pytest.mark.attempt
@pytest.mark.parametrize(
    "ask",
    [lambda: load_words(["network=inception3", "backend=eigen"]), lambda: check_optimizer({"name": "lion"})],
)
def test_what_is_not_here_can_be_raced_all_the_same(ask: Callable[[], object]) -> None:
    with pytest.raises(InputError, match=r'callable="package\.module:make_step"'):
        ask()


@pytest.mark.attempt
def test_another_device_is_a_row_that_says_so() -> None:
    [one] = load_words(["network=mlp", "backend=eigen", "device=cuda"]).cases
    assert "only 'cpu'" in str(one.unavailable)
    assert 'callable="package.module:make_step"' in str(one.unavailable)


@pytest.mark.attempt
@pytest.mark.parametrize(
    "word", ["threads=[]", "optimizer.momentum=[]", "backend=[]", "callable=[]", "launches=[]"]
)
def test_an_empty_list_is_no_value(word: str) -> None:
    with pytest.raises(InputError, match="has no value"):
        load_words(["network=mlp", word])
