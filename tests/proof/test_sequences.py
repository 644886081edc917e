"""Layers along time, on sequences of unequal length: proven step by step like any other layer; each way to
get them wrong is caught and named."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launching import SHORT, make_plan, words, workload
from sequence_networks import (
    CARRIED,
    FULL,
    LANGUAGE,
    ROWS,
    SERIES,
    TIED,
    TRANSLATION,
    directed,
    gated,
    plain,
    texts,
)
from twins import Bench, Twin

from timetrial.errors import InputError
from timetrial.launch import Limits
from timetrial.launch.run import run_launch
from timetrial.questions.observed import Batches
from timetrial.records.model import LaunchRecord
from timetrial.records.store import read_answers
from timetrial.workloads import prepare
from timetrial.workloads.material import SHORTER

# The engine of our own every day; torch, and what is timed, where everything is tried.
NATIVE = ("eigen", "cblas", "onednn")
TORCH = ("libtorch", "pytorch")
EVERY_DAY = [("eigen", 0), ("eigen", 1), ("cblas", 2), ("onednn", 0), ("onednn", 2)]
OTHERS = [("cblas", 1), ("onednn", 1), *[(backend, biases) for backend in TORCH for biases in (0, 1, 2)]]

# What is as small, or as long, as it may be.
ONE_LAYER = """
nodes = [
    { name = "in", kind = "embedding", inputs = ["tokens"], attributes = { vocabulary = 10000, units = 3 } },
    { name = "one", kind = "KIND", inputs = ["in", "lengths"], attributes = { units = UNITS } },
    { name = "fc", kind = "dense", attributes = { units = "classes" } },
    { name = "loss", kind = "softmax_cross_entropy", inputs = ["fc", "labels"] },
]
"""


def network(folder: Path, text: str) -> str:
    file = folder / "own.toml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def _launch(folder: Path, backend: str, text: str, data: str, batch: int = 6, **how: Any) -> LaunchRecord:
    """One thread: on a busy machine two of torch's wait for each other."""
    if backend in TORCH:
        pytest.importorskip("torch", reason="machine: the running interpreter has no torch")
    own = network(folder, text)
    plan = make_plan(
        folder / "launch",
        backend,
        network=own,
        dataset=data,
        batch_size=batch,
        settings={"threads": "1"},
        **how,
    )
    record = run_launch(plan)
    assert record.outcome == "ok", words(record)
    return record


def _prove(folder: Path, backend: str, text: str, data: str, **how: Any) -> None:
    record = _launch(folder, backend, text, data, **how)
    judged = record.parity if how["purpose"] == "proof" else record.end
    assert judged is not None
    assert judged.status == "passed", judged


def _with_others(every_day: list[tuple[str, Any]], others: list[tuple[str, Any]]) -> list[Any]:
    return [*every_day, *[pytest.param(*one, marks=pytest.mark.full) for one in others]]


@pytest.mark.parametrize(("backend", "biases"), _with_others(EVERY_DAY, OTHERS))
def test_texts_are_proven(tmp_path: Path, backend: str, biases: int) -> None:
    _prove(tmp_path, backend, texts(biases), "synthetic-sentences@20", purpose="proof")


@pytest.mark.parametrize("backend", [*NATIVE, pytest.param("libtorch", marks=pytest.mark.full)])
@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn"])
@pytest.mark.parametrize(
    ("units", "steps", "batch"),
    [(1, 20, 6), (5, 1, 6), (5, 20, 1)],
    ids=["one unit", "one step, all lengths equal", "one sample"],
)
def test_of_everything_one(
    tmp_path: Path, backend: str, kind: str, units: int, steps: int, batch: int
) -> None:
    text = ONE_LAYER.replace("KIND", kind).replace("UNITS", str(units))
    _prove(tmp_path, backend, text, f"synthetic-sentences@{steps}", batch=batch, purpose="proof")


@pytest.mark.full
@pytest.mark.parametrize("backend", NATIVE)
def test_a_hundred_thousand_steps(tmp_path: Path, backend: str) -> None:
    text = ONE_LAYER.replace("KIND", "lstm").replace("UNITS", "4")
    patient = dataclasses.replace(SHORT, limits=Limits())
    data = "synthetic-sentences@100000"
    _prove(tmp_path, backend, text, data, batch=2, purpose="proof", measure=patient)


@pytest.mark.parametrize(
    ("backend", "text"),
    _with_others(
        [("eigen", gated()), ("cblas", gated(False)), ("onednn", gated()), ("onednn", gated(False))],
        [
            ("eigen", gated(False)),
            ("cblas", gated()),
            *[(backend, gated()) for backend in TORCH],
            *[(backend, plain(2)) for backend in ("eigen", "cblas", "onednn", *TORCH)],
        ],
    ),
)
def test_other_cells_are_proven(tmp_path: Path, backend: str, text: str) -> None:
    _prove(tmp_path, backend, text, "synthetic-sentences@20", purpose="proof")


@pytest.mark.parametrize(
    ("backend", "text"),
    _with_others(
        [(backend, directed(texts())) for backend in ("eigen", "onednn")],
        [
            *[(backend, directed(texts())) for backend in ("cblas", *TORCH)],
            *[
                (backend, directed(text, direction))
                for backend in ("eigen", "cblas", "onednn", *TORCH)
                for text, direction in (
                    (texts(2), "reverse"),
                    (gated(), "bidirectional"),
                    (gated(), "reverse"),
                    (plain(2), "bidirectional"),
                    (plain(0), "reverse"),
                )
            ],
        ],
    ),
)
def test_directions_are_proven(tmp_path: Path, backend: str, text: str) -> None:
    _prove(tmp_path, backend, text, "synthetic-sentences@20", purpose="proof")


@pytest.mark.full
@pytest.mark.parametrize("direction", ["reverse", "bidirectional"])
@pytest.mark.parametrize("backend", ["eigen", "cblas", "onednn", *TORCH])
def test_directions_without_lengths_are_proven(tmp_path: Path, backend: str, direction: str) -> None:
    _prove(tmp_path, backend, directed(FULL, direction), "synthetic-series", purpose="proof")


@pytest.mark.parametrize(
    ("text", "mkldnn", "path", "faster"),
    [
        (texts(), "true", "oneDNN's kernel (mkldnn_rnn_layer)", None),
        (texts(), "false", "native loop over the steps", "torch.mkldnn=true"),
        pytest.param(gated(), "true", "native loop over the steps", None, marks=pytest.mark.full),
    ],
)
@pytest.mark.parametrize("backend", TORCH)
def test_torch_says_which_way_it_goes(
    tmp_path: Path, backend: str, text: str, mkldnn: str, path: str, faster: str | None
) -> None:
    pytest.importorskip("torch", reason="machine: the running interpreter has no torch")
    own, settings = network(tmp_path, text), {"threads": "1", "torch.mkldnn": mkldnn}
    record = run_launch(
        make_plan(
            tmp_path / "launch", backend, network=own, dataset="synthetic-sentences@20", settings=settings
        )
    )
    assert record.outcome in ("ok", "unproven"), words(record)
    assert record.facts["one forward"] == f"{path}, all 20 steps of every sample"
    assert record.facts.get("two faster", "").startswith(faster or "")
    assert ("two faster" in record.facts) == (faster is not None)


@pytest.mark.full
@pytest.mark.parametrize("backend", TORCH)
def test_torch_has_no_reset_in_front(tmp_path: Path, backend: str) -> None:
    pytest.importorskip("torch", reason="machine: the running interpreter has no torch")
    own = network(tmp_path, gated(False))
    record = run_launch(
        make_plan(tmp_path / "launch", backend, network=own, dataset="synthetic-sentences@20")
    )
    assert record.outcome == "unavailable", words(record)
    assert "reset_after" in (record.reason or "")


@pytest.mark.parametrize(
    ("backend", "text"),
    _with_others(
        [("eigen", SERIES), ("eigen", FULL), ("onednn", SERIES), ("onednn", FULL)],
        [(backend, text) for backend in ("cblas", *TORCH) for text in (SERIES, FULL)],
    ),
)
def test_series_are_proven(tmp_path: Path, backend: str, text: str) -> None:
    _prove(tmp_path, backend, text, "synthetic-series", purpose="proof")


@pytest.mark.parametrize(
    "backend", ["eigen", *[pytest.param(one, marks=pytest.mark.full) for one in ("cblas", "onednn", *TORCH)]]
)
def test_a_loss_for_each_step_is_proven_and_its_steps_are_scored(tmp_path: Path, backend: str) -> None:
    _prove(tmp_path, backend, LANGUAGE, "synthetic-language@6", purpose="proof")
    shutil.rmtree(tmp_path / "launch")
    record = _launch(tmp_path, backend, LANGUAGE, "synthetic-language@6", 64, purpose="learning")
    answers = read_answers(tmp_path / "launch")
    assert answers is not None
    assert record.evaluations[-1].samples == answers.shape[1]
    assert record.evaluations[-1].accuracy == pytest.approx(np.mean(answers[0] == answers[1]))


@pytest.mark.parametrize(
    ("backend", "how"),
    _with_others(
        [("eigen", "proof"), ("onednn", "proof")],
        [
            ("cblas", "proof"),
            *[(backend, "proof") for backend in TORCH],
            *[(backend, "speed") for backend in (*NATIVE, *TORCH)],
        ],
    ),
)
@pytest.mark.parametrize("bias", ["true", "false"])
def test_a_tied_weight_is_proven(tmp_path: Path, backend: str, how: str, bias: str) -> None:
    text = TIED.replace('tied = "in"', f'tied = "in", bias = {bias}')
    _prove(tmp_path, backend, text, "synthetic-language@6", purpose=how)


@pytest.mark.parametrize(
    ("backend", "task"),
    [
        *[(backend, None) for backend in (*NATIVE, *TORCH)],
        *[
            pytest.param(backend, task, marks=pytest.mark.full)
            for backend in (*NATIVE, *TORCH)
            for task in ("train", "gradient", "forward")
        ],
    ],
)
def test_a_carried_state_is_proven(tmp_path: Path, backend: str, task: str | None) -> None:
    """`task`: of a timed launch."""
    how = {"purpose": "proof"} if task is None else {"purpose": "speed", "task": task}
    _prove(tmp_path, backend, CARRIED, "synthetic-language@6", **how)


@pytest.mark.parametrize(
    "backend", ["eigen", "onednn", *[pytest.param(one, marks=pytest.mark.full) for one in TORCH]]
)
def test_maps_are_read_row_by_row(tmp_path: Path, backend: str) -> None:
    _prove(tmp_path, backend, ROWS, "digits28", purpose="proof")


@pytest.mark.parametrize(
    ("backend", "task"),
    [
        *[(backend, None) for backend in (*NATIVE, *TORCH)],
        ("onednn", "forward"),
        *[
            pytest.param(backend, task, marks=pytest.mark.full)
            for backend in (*NATIVE, *TORCH)
            for task in ("train", "gradient", "forward")
            if (backend, task) != ("onednn", "forward")
        ],
    ],
)
def test_an_encoder_and_its_decoder_are_proven(tmp_path: Path, backend: str, task: str | None) -> None:
    how = {"purpose": "proof"} if task is None else {"purpose": "speed", "task": task}
    _prove(tmp_path, backend, TRANSLATION, "synthetic-pairs@6", **how)


def test_a_network_that_goes_on_learns(tmp_path: Path) -> None:
    record = _launch(tmp_path, "eigen", CARRIED, "synthetic-language@6", 64, purpose="learning")
    assert record.evaluations[-1].loss < record.evaluations[0].loss < 9.2104


@pytest.mark.full
@pytest.mark.parametrize("task", ["train", "gradient", "forward"])
@pytest.mark.parametrize("backend", ["eigen", "cblas", "onednn", *TORCH])
def test_they_are_timed(tmp_path: Path, backend: str, task: str) -> None:
    _prove(tmp_path, backend, texts(), "synthetic-sentences@20", purpose="speed", task=task)


@pytest.mark.parametrize(
    "text",
    [texts(2), gated(), gated(False), directed(texts()), directed(gated()), directed(texts(), "reverse")],
)
def test_the_numpy_framework_passes(tmp_path: Path, text: str) -> None:
    parity = Bench.of(network(tmp_path, text), "synthetic-sentences@20", batch_size=6).proof()
    assert parity.status == "passed", parity.reason


def test_the_recipe_of_the_proof_moves_no_bias_far(tmp_path: Path) -> None:
    """By the weights alone its rate would be 20 times as large, a bias moved by 10 in the first step, and the
    loss 50 soon: what rounding makes of a softmax of ones and zeros no honest contender gets right."""
    bench = Bench.of(network(tmp_path, LANGUAGE), "synthetic-language@6", batch_size=6)
    twin = Twin(bench.stress, "train")
    before = {name: np.array(values) for name, values in twin.dump("parameter").items()}
    losses = twin.run(1)
    after = twin.dump("parameter")
    assert 0.3 < max(np.abs(after[name] - before[name]).max() for name in before) < 0.6
    assert max([*losses, *twin.run(4)]) < 15


def test_the_recipe_of_the_proof_leads_no_further_than_half_of_the_loss(tmp_path: Path) -> None:
    """By the weights alone it would lead further than to 0: the steps behind it climb. Of such a network over
    100 steps without lengths eigen and onednn were refused for what rounding had become."""
    bench = Bench.of(network(tmp_path, texts(1)), "synthetic-sentences@20", batch_size=6)
    twin = Twin(bench.stress, "train")
    twin.stream("proof")
    loss = twin.gradient()
    square = sum(float(np.sum(np.square(one, dtype=float))) for one in twin.dump("gradient").values())
    rate = bench.stress.job["optimizer"]["learning_rate"]
    assert rate * square == pytest.approx(0.5 * loss, rel=0.06)  # the rate has two digits


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("text", "defect", "said"),
    [
        (LANGUAGE, "none", None),
        (LANGUAGE, "mean_over_all", "loss"),
        (LANGUAGE, "skipped_forward_only", "gradient "),
        (LANGUAGE, "half_batch", "loss"),
        (TIED, "none", None),
        (TIED, "tied_without_lookup", "gradient in.weight"),
        (TIED, "tied_without_scores", "gradient in.weight"),
        (TIED, "tied_to_initial", "activation fc"),
        (TIED, "tied_and_moved_twice", "in.weight"),
        (CARRIED, "none", None),
        (CARRIED, "only_hidden_goes_on", "activation one"),
        (CARRIED, "states_unread", "activation one"),
        (CARRIED, "inferred_from_states", "evaluation: output"),
        (CARRIED, "samples_exchanged", "state one.hidden"),
        (CARRIED, "cell_of_before", "state one.cell"),
        (CARRIED, "carried_when_seen", "the way of 5 plain steps"),
    ],
)
def test_a_defect_of_a_language_model_is_caught(
    tmp_path: Path, text: str, defect: str, said: str | None
) -> None:
    """A loss for each step, a tied weight, a carried state."""
    parity = Bench.of(network(tmp_path, text), "synthetic-language@6", batch_size=6).proof(defect)
    assert parity.status == ("passed" if said is None else "failed"), parity.reason
    assert (said or "") in (parity.reason or "")


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("defect", "said"),
    [("none", None), ("samples_exchanged", "state one.hidden"), ("cell_of_before", "state one.cell")],
)
def test_states_behind_a_gradient_are_judged(tmp_path: Path, defect: str, said: str | None) -> None:
    own = network(tmp_path, CARRIED)
    parity = Bench.of(own, "synthetic-language@6", task="gradient", batch_size=6).proof(defect)
    assert parity.status == ("passed" if said is None else "failed"), parity.reason
    assert f"timed step on proof: {said or ''}" in (parity.reason or "timed step on proof: ")


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("defect", "tensor"),
    [
        ("bias_gradient", "gradient two.bias"),
        ("accumulated_gradients", "second batch: "),
        ("lengths_forward_only", "gradient "),
        ("lengths_ignored", "activation "),
        ("carried_state", "loss"),
        ("second_bias", "step 1: velocity two.bias"),
    ],
)
def test_a_defect_is_caught_and_named(tmp_path: Path, defect: str, tensor: str) -> None:
    parity = Bench.of(network(tmp_path, texts()), "synthetic-sentences@20", batch_size=6).proof(defect)
    assert parity.status == "failed"
    assert tensor in (parity.reason or ""), parity.reason


@pytest.mark.attempt
@pytest.mark.parametrize("text", [texts(), pytest.param(gated(), marks=pytest.mark.full)])
@pytest.mark.parametrize(
    ("defect", "tensor"),
    [
        ("reverse_from_padding", "activation one"),
        ("directions_exchanged", "gradient "),
        ("not_turned_back", "activation one"),
    ],
)
def test_a_defect_of_a_direction_is_caught_and_named(
    tmp_path: Path, defect: str, tensor: str, text: str
) -> None:
    own = network(tmp_path, directed(text))
    parity = Bench.of(own, "synthetic-sentences@20", batch_size=6).proof(defect)
    assert parity.status == "failed"
    assert tensor in (parity.reason or ""), parity.reason


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("defect", "tensor"),
    [
        ("lengths_forward_only", "gradient "),
        ("reset_in_front", "activation one"),
        ("bias_gradient", "bias: "),
        ("biases_alike", "gradient two.recurrent_bias"),
    ],
)
def test_a_defect_of_a_gru_is_caught_and_named(tmp_path: Path, defect: str, tensor: str) -> None:
    parity = Bench.of(network(tmp_path, gated()), "synthetic-sentences@20", batch_size=6).proof(defect)
    assert parity.status == "failed"
    assert tensor in (parity.reason or ""), parity.reason


def test_who_takes_no_sequences_says_so(tmp_path: Path) -> None:
    planted = str(Path(__file__).parents[1] / "frameworks" / "planted")
    plan = make_plan(
        tmp_path / "launch", planted, network=network(tmp_path, FULL), dataset="synthetic-series"
    )
    record = run_launch(plan)
    assert record.outcome == "unavailable", words(record)
    assert "takes no sequences; 'each' gives one, (16, 24, 6)" in (record.reason or "")


# What the batches bring.


def test_every_batch_of_the_proof_has_the_longest_and_the_shortest(tmp_path: Path) -> None:
    """Of some the longest is shorter than there is room for: who cuts batches there cuts these."""
    for text, data, longest in ((texts(), "synthetic-sentences@20", 20), (SERIES, "synthetic-series", 24)):
        own = dataclasses.replace(workload(network(tmp_path, text), data), batch_size=5)
        batches = Batches(prepare(own, seed=1, epochs=1).job["streams"])
        for stream, rows in (("proof", range(5)), ("proof2", range(1))):
            for row in rows:
                lengths = batches.batch(stream, row)["lengths"]
                assert lengths.min() == 1
                is_shorter = stream == "proof2" or row in SHORTER
                assert lengths.max() == (longest * 5 // 8 if is_shorter else longest)
                assert len(np.unique(lengths)) > 2


@pytest.mark.attempt
def test_what_the_network_cannot_take_is_named(tmp_path: Path) -> None:
    small = network(tmp_path, texts().replace("vocabulary = 5000", "vocabulary = 4000"))
    with pytest.raises(InputError, match=r"takes tokens from 0 to 3999\. Give 'embed' a vocabulary of"):
        prepare(workload(small, "synthetic-sentences@20"), seed=1, epochs=1)
