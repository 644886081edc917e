"""The runtime's own pieces, as the interpreter that runs them sees them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray


@pytest.mark.parametrize("kind", ["softmax_cross_entropy", "squared_error"])
def test_score(runtime: Any, kind: str) -> None:
    generator = np.random.default_rng(1)
    predictions = generator.normal(size=(37, 5)).astype(np.float32)
    labels = generator.integers(0, 5, 37)
    score = runtime("score").Score(kind)
    score.add(predictions[:20], labels[:20])
    score.add(predictions[20:], labels[20:])
    result = score.result()
    wide = predictions.astype(np.float64)
    if kind == "squared_error":
        expected = ((wide - np.eye(5)[labels]) ** 2).mean()
    else:
        softmax = np.exp(wide) / np.exp(wide).sum(axis=1, keepdims=True)
        expected = -np.log(softmax[np.arange(37), labels]).mean()
    assert result["loss"] == pytest.approx(expected, rel=1e-12)
    assert result["accuracy"] == np.mean(predictions.argmax(axis=1) == labels)
    assert result["samples"] == 37


def test_the_first_of_equal_predictions_is_the_answer_and_nan_is_wrong(runtime: Any) -> None:
    score = runtime("score").Score("softmax_cross_entropy")
    score.add(np.array([[1, 1], [1, 1], [np.nan, 1]], np.float32), np.array([0, 1, 1]))
    assert score.result()["accuracy"] == pytest.approx(1 / 3)


def test_a_row_without_a_label_does_not_count(runtime: Any) -> None:
    score = runtime("score").Score("softmax_cross_entropy")
    score.add(np.array([[0, 5], [np.nan, 1], [1, 0]], np.float32), np.array([-1, -1, 1]))
    result = score.result()
    assert (result["samples"], result["accuracy"]) == (1, 0)
    assert result["loss"] == pytest.approx(np.log(1 + np.e))
    assert runtime("score").answers_of(np.array([[0, 5], [np.nan, 1]])).tolist() == [1, -1]


def test_batches_are_aligned(runtime: Any) -> None:
    for shape in ((1,), (7, 3), (64, 1, 28, 28)):
        array = runtime("data").aligned_empty(shape, np.float32)
        assert array.shape == shape
        assert array.ctypes.data % 64 == 0
        assert array.flags["C_CONTIGUOUS"]


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (MemoryError("x"), "oom"),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate"), "oom"),
        (RuntimeError("CUDA out of memory"), "oom"),
        (ImportError("no framework"), "unavailable"),
        (RuntimeError("else"), "crash"),
        (KeyError("else"), "crash"),
    ],
)
def test_what_an_exception_means(runtime: Any, error: Exception, outcome: str) -> None:
    found, text = runtime("failures").describe(error)
    assert found == outcome
    assert type(error).__name__ in text


def test_a_traceback_inside_an_error_comes_last(runtime: Any) -> None:
    class MXNetError(Exception):
        pass

    error = MXNetError('Traceback (last):\n  File "a.cc", line 7\nMXNetError: Check failed: no')
    _, text = runtime("failures").describe(error)
    assert text.splitlines() == ["MXNetError: Check failed: no", *str(error).splitlines()]
    _, text = runtime("failures").describe(MXNetError("Traceback"))
    assert text == "MXNetError: Traceback"


class FakeJob:
    inputs: ClassVar[dict[str, Any]] = {
        "images": SimpleNamespace(batch_shape=(4, 3), dtype=np.float32, role="input"),
        "labels": SimpleNamespace(batch_shape=(4,), dtype=np.int64, role="target"),
    }
    task = "train"
    target = "labels"
    batch_size = 4
    classes = 2


def files(folder: Path, images: Any, labels: Any, order: Any) -> dict[str, Any]:
    for name, array in (("images", images), ("labels", labels), ("order", order)):
        np.save(folder / f"{name}.npy", array)
    tensors = {name: str(folder / f"{name}.npy") for name in ("images", "labels")}
    return {"tensors": tensors, "order": str(folder / "order.npy")}


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("images", "labels", "order", "said"),
    [
        (
            np.zeros((8, 3), np.float32),
            np.zeros(8, int),
            np.array([[0, 1, 2, 8]]),
            "index 8 is not in 0 to 7",
        ),
        (np.zeros((8, 3), np.float32), np.full(8, 2), np.zeros((1, 4), int), "label 2 is not in 0 to 1"),
        (np.zeros((8, 3), np.float32), np.full(8, -1), np.zeros((1, 4), int), "label -1 is not in 0 to 1"),
        (np.zeros((8, 4), np.float32), np.zeros(8, int), np.zeros((1, 4), int), "expected float32 (n, 3)"),
        (np.zeros((8, 3), np.float64), np.zeros(8, int), np.zeros((1, 4), int), "expected float32"),
        (np.zeros((8, 3), np.float32), np.zeros(7, int), np.zeros((1, 4), int), "expected int64 (8)"),
        (np.zeros((8, 3), np.float32), np.zeros(8, int), np.zeros((1, 3), int), "expected int64 (n, 4)"),
    ],
)
def test_streams_that_do_not_fit(
    runtime: Any, tmp_path: Path, images: Any, labels: Any, order: Any, said: str
) -> None:
    stream = runtime("data").Stream
    with pytest.raises(runtime("failures").ContenderError) as raised:
        stream(files(tmp_path, images, labels, order), FakeJob())
    assert said in str(raised.value)


def test_a_stream_without_order_fills_its_last_batch(runtime: Any, tmp_path: Path) -> None:
    named = files(tmp_path, np.zeros((6, 3), np.float32), np.zeros(6, int), np.zeros((1, 4), int))
    del named["order"]
    stream = runtime("data").Stream(named, FakeJob())
    assert stream.order.tolist() == [[0, 1, 2, 3], [4, 5, 0, 1]]


class JobWithMask(FakeJob):
    inputs: ClassVar[dict[str, Any]] = {
        **FakeJob.inputs,
        "drop.mask": SimpleNamespace(batch_shape=(4, 5), dtype=np.float32, role="mask"),
    }


def test_masks_have_rows_of_their_own_and_inference_needs_none(runtime: Any, tmp_path: Path) -> None:
    named = files(tmp_path, np.zeros((6, 3), np.float32), np.zeros(6, int), np.zeros((2, 4), int))
    stream = runtime("data").Stream
    error = runtime("failures").ContenderError
    with pytest.raises(error, match=r"nothing for the input 'drop\.mask'"):
        stream(named, JobWithMask())
    np.save(tmp_path / "mask.npy", np.ones((7, 5), np.float32))
    drawn = {**named, "drawn": {"drop.mask": str(tmp_path / "mask.npy")}}
    opened = stream(drawn, JobWithMask())
    assert opened.arrays["drop.mask"].shape == (7, 5)
    assert opened.samples == 6
    np.save(tmp_path / "mask.npy", np.ones((7, 4), np.float32))
    with pytest.raises(error, match=r"mask\.npy: float32 \(7, 4\), expected float32 \(n, 5\)"):
        stream(drawn, JobWithMask())
    forward = JobWithMask()
    forward.task = "forward"
    assert list(stream(named, forward).arrays) == ["images", "labels"]
    del named["order"]  # the test stream
    assert list(stream(named, JobWithMask()).arrays) == ["images", "labels"]


@pytest.mark.attempt
def test_another_protocol_is_refused(runtime: Any, tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    path.write_text(json.dumps({"protocol": 1}))
    with pytest.raises(runtime("failures").ContenderError, match="protocol 1, expected 2"):
        runtime("job").Job(str(path))


def _node(kind: str, shape: tuple[int, ...] = (), **attributes: Any) -> Any:
    return SimpleNamespace(name="one", kind=kind, shape=shape, attributes=attributes)


LIMITS = {"conv2d": {"groups": 1, "padding_end_h": "padding_h"}, "lstm": {"biases": (0, 1)}}
LIMITS.update({"gru": {"reset_after": True}, "rnn": {"direction": "forward"}})


@pytest.mark.parametrize(
    ("kind", "attributes", "said"),
    [
        ("conv2d", {"groups": 2, "padding_h": 1, "padding_end_h": 1},
         "the backend has no conv2d with groups 2 ('one'); it has: groups 1"),
        ("conv2d", {"groups": 1, "padding_h": 0, "padding_end_h": 1},
         "the backend has no conv2d with padding_end_h 1 ('one'); it has: padding_end_h as padding_h"),
        ("conv2d", {"groups": 1, "padding_h": 1, "padding_end_h": 1}, None),
        ("max_pool2d", {"groups": 2}, None),
        ("lstm", {"biases": 2}, "the backend has no lstm with biases 2 ('one'); it has: biases 0 or 1"),
        ("lstm", {"biases": 0}, None),
        ("gru", {"reset_after": 0},
         "the backend has no gru with reset_after false ('one'); it has: reset_after true"),
        ("gru", {"reset_after": 1}, None),
        ("rnn", {"direction": "reverse"},
         "the backend has no rnn with direction reverse ('one'); it has: direction forward"),
    ],
)  # fmt: skip
def test_an_adapter_says_what_a_kind_cannot_be_asked_for(
    runtime: Any, kind: str, attributes: dict[str, int], said: str | None
) -> None:
    check = runtime("contender").Contender.check_limits
    if said is None:
        check(_node(kind, **attributes), LIMITS)
        return
    with pytest.raises(runtime("failures").UnsupportedError) as raised:
        check(_node(kind, **attributes), LIMITS)
    assert str(raised.value) == said


@pytest.mark.parametrize(
    ("extent", "kernel", "stride", "dilation", "expected"),
    [(28, 3, 2, 1, (0, 1)), (28, 3, 1, 1, (1, 1)), (28, 4, 1, 1, (1, 2)), (7, 3, 2, 1, (1, 1)),
     (5, 1, 3, 1, (0, 0)), (9, 3, 1, 2, (2, 2)), (6, 2, 2, 3, (1, 1))],
)  # fmt: skip
def test_same_is_what_tensorflow_documents(
    runtime: Any, extent: int, kernel: int, stride: int, dilation: int, expected: tuple[int, int]
) -> None:
    adapter = runtime("timetrial_adapter")
    sizes = {"kernel": kernel, "stride": stride, "dilation": dilation}
    attributes = {f"{key}_{axis}": size for key, size in sizes.items() for axis in "hw"}
    assert adapter.same_borders(_node("conv2d", **attributes), (2, 3, extent, extent)) == (expected,) * 2


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("output", ["last", "all"])
def test_a_layer_goes_in_its_directions(runtime: Any, direction: str, output: str) -> None:
    """Of a layer that gives the sum of all that came before: its last state is the sum of a whole sample."""
    adapter = runtime("timetrial_adapter")
    node = _node("rnn", direction=direction, output=output)
    names = ["one.weight", "one.recurrent_weight"]
    if direction == "bidirectional":
        names += ["one.reverse.weight", "one.reverse.recurrent_weight"]
    node.parameters = [(name, (place,)) for place, name in enumerate(names)]
    parts = adapter.directions(node)
    assert [name for part in parts for name, _ in part.parameters] == names
    assert all(name.startswith(part.name + ".") for part in parts for name, _ in part.parameters)
    assert [part.is_reverse for part in parts] == {"forward": [False], "reverse": [True]}.get(
        direction, [False, True]
    )

    def layer(part: Any, x: NDArray[Any]) -> NDArray[Any]:
        assert part.parameters
        return np.cumsum(x, axis=1) if output == "all" else x.sum(axis=1)

    x = np.array([[[1.0], [2.0], [4.0]]])
    found = adapter.in_directions(
        parts, x, layer, lambda x: x[:, ::-1], lambda found: np.concatenate(found, -1)
    )
    there, back = ([[1], [3], [7]], [[7], [6], [4]]) if output == "all" else ([7], [7])
    expected = {"forward": there, "reverse": back}.get(direction, np.concatenate([there, back], -1))
    np.testing.assert_array_equal(found[0], expected)


def test_alpha_is_that_of_the_other_form(runtime: Any) -> None:
    alpha = runtime("timetrial_adapter").response_alpha
    over = _node("local_response_norm", size=5, alpha=0.5, alpha_over_size=True)
    plain = _node("local_response_norm", size=5, alpha=0.5, alpha_over_size=False)
    assert [alpha(over, over_size=True), alpha(plain, over_size=False)] == [0.5, 0.5]
    assert [alpha(over, over_size=False), alpha(plain, over_size=True)] == [0.1, 2.5]


def test_a_running_variance_is_translated(runtime: Any) -> None:
    adapter, generator = runtime("timetrial_adapter"), np.random.default_rng(1)
    node = _node("batch_norm", shape=(4, 3, 2, 2), momentum=0.1)
    initial = generator.uniform(0.5, 2, 3).astype(np.float32)
    unbiased = biased = initial.astype(np.float64)
    for taken in range(5):
        shown = adapter.biased_variance(node, unbiased, initial, taken)
        np.testing.assert_allclose(shown, biased, rtol=1e-6)
        if taken == 0:
            assert shown.tobytes() == initial.tobytes()
        batch = generator.normal(size=(16, 3))
        unbiased = 0.9 * unbiased + 0.1 * batch.var(axis=0, ddof=1)
        biased = 0.9 * biased + 0.1 * batch.var(axis=0)
    assert adapter.biased_share(node) == 15 / 16


def test_values_in_order_where_a_layer_has_parameters_for_them(runtime: Any) -> None:
    """A batch normalization behind a flatten has its weights in the job's order; an activation has none."""
    keeps_order = runtime("timetrial_adapter").keeps_order

    def job(*, parameters: list[Any]) -> Any:
        nodes = [
            SimpleNamespace(
                name=name, kind=kind, inputs=[source], shape=(2, 8), keeps_places=kind != "dense",
                parameters=given,
            )
            for name, kind, source, given in (
                ("flat", "flatten", "images", []), ("between", "any", "flat", parameters),
                ("fc", "dense", "between", [("fc.weight", (3, 8))]),
            )
        ]  # fmt: skip
        return SimpleNamespace(nodes=nodes, masks=[])

    assert keeps_order(job(parameters=[("between.weight", (8,))]), "flat")
    assert not keeps_order(job(parameters=[]), "flat")
