"""Recurrent networks by name on the data of their kind, and what does not fit is named."""

from __future__ import annotations

import numpy as np
import pytest

from timetrial.cases.case import Workload
from timetrial.errors import InputError
from timetrial.workloads import check, load_network, prepare

pytestmark = pytest.mark.usefixtures("cache")


def workload(network: str, dataset: str | None = None) -> Workload:
    """With its defaults, or on another data set."""
    known = load_network(network)
    return Workload(network, dataset or known.dataset, known.batch_size, dict(known.optimizer))


@pytest.mark.parametrize("network", ["lstm-bahrampour", "lstm-imdb", "lstm-vowels", "gru-vowels"])
def test_the_defaults_fit_and_lengths_are_an_input(network: str) -> None:
    prepared = prepare(workload(network), seed=1, epochs=1)
    assert prepared.network is not None
    roles = [one.role for one in prepared.network.inputs]
    assert roles[:3] == ["input", "lengths", "target"]
    assert set(prepared.job["streams"]["train"]["tensors"]) >= {"lengths", "labels"}


@pytest.mark.parametrize("network", ["lstm-lm", "lstm-lm-carried", "lstm-lm-tied"])
def test_a_language_model_has_a_label_at_each_step_and_its_proof_leaves_some_out(network: str) -> None:
    prepared = prepare(workload(network), seed=1, epochs=1)
    assert prepared.network is not None
    assert [(one.role, one.shape) for one in prepared.network.inputs] == [("input", (35,)), ("target", (35,))]
    labels = {
        name: np.load(prepared.job["streams"][name]["tensors"]["labels"], mmap_mode="r")
        for name in ("train", "proof")
    }
    assert labels["train"].min() >= 0
    assert 0.2 < np.mean(labels["proof"] < 0) < 0.3
    assert labels["proof"][:, 0].min() >= 0, "no sample without a label"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_proof_is_taken_on_a_batch_whose_last_bias_has_no_gradient(seed: int) -> None:
    """Of sixteen samples of two classes eight of each are drawn in one batch of five."""
    stream = prepare(workload("lstm-bahrampour"), seed=seed, epochs=1).job["streams"]["proof"]
    labels, order = np.load(stream["tensors"]["labels"]), np.load(stream["order"])
    assert 8 not in labels[order].sum(axis=1)


def test_the_size_in_a_name_is_the_most_steps() -> None:
    short, long = (
        check(workload("lstm-bahrampour", f"synthetic-sentences@{steps}")).network for steps in (10, 20)
    )
    assert short is not None
    assert long is not None
    fc = 128 * 2
    assert 2 * (short.multiply_accumulates("forward") - 16 * fc) == (
        long.multiply_accumulates("forward") - 16 * fc
    )


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("network", "dataset", "words"),
    [
        ("lstm-bahrampour", "synthetic-series", "tokens"),
        ("lstm-vowels", "synthetic-sentences", "series"),
        ("lstm-imdb", "synthetic-language", "lengths"),
    ],
)
def test_data_of_another_kind(network: str, dataset: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        check(workload(network, dataset))
